"""The line: one local connection between a control plane and the agent of a node."""
