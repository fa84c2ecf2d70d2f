"""Rolling updates, level by level: what is taken next, and what an update waits for."""
