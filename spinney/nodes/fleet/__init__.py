"""Simulated nodes: any number of them in one process, for scale, demos and tests."""
