"""Where gangs of pods go: pure functions over a snapshot of machines, in whole numbers."""
