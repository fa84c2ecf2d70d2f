"""Rehearsing: what controllers would do, played on a copy of the objects, in memory."""
