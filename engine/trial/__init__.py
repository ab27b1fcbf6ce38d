"""A trial goes from its checkpoint to its row, whatever happens to it."""
