"""Why something is not ready, told from the objects as they stand, whoever wrote them."""
