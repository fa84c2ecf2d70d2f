"""Spinney: a control plane for AI workloads made of gangs of pods."""

__version__ = "0.1.0"
