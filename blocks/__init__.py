"""How it computes: a block maps (batch, length, width) to the same, from its arguments and its mask alone."""
