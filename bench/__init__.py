"""Benchmarks: every number is a ratio from one run on one machine."""
