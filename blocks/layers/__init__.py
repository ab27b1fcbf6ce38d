"""A layer maps a sequence to a sequence of the same length, or to a vector: one family of blocks a file."""

from . import (  # each registers its blocks
    all_attention,
    attention,
    convolutions,
    feedforward,
    pooling,
    recurrent,
)

__all__ = ["all_attention", "attention", "convolutions", "feedforward", "pooling", "recurrent"]
