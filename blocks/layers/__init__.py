"""A layer maps a sequence to a sequence of the same length, or to a vector: one family of blocks a file.

`attention` and `all_attention` attend, both by `window_attention`; `convolutions` and `recurrent` are the
active memories, `linear_recurrences` those that `chunked_recurrence` and `delta_rule` compute in chunks;
`feedforward` works on each position, `pooling` makes one vector, and `fused_pooling` does so in pieces that
stay in a processor's cache.
"""

from . import (  # each registers its blocks
    all_attention,
    attention,
    convolutions,
    delta_rule,
    feedforward,
    linear_recurrences,
    pooling,
    recurrent,
)

__all__ = [
    "all_attention",
    "attention",
    "convolutions",
    "delta_rule",
    "feedforward",
    "linear_recurrences",
    "pooling",
    "recurrent",
]
