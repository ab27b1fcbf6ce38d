"""A layer maps a sequence to a sequence of the same length, or to a vector: one family of blocks a file."""
