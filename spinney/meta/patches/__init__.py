"""Patches: JSON patch, merge patch, strategic merge patch and server-side apply.

They take a schema where they must know the keys of lists, and know no kind.
"""
