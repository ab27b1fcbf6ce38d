"""Holes are filled with levels, and cells become trials with ids; every fault of every cell is told."""
