"""A layer maps a sequence to a sequence of the same length, or to a vector: one family of blocks a file.

`attention`, `attention_variants` and `all_attention` attend, within windows by `window_attention`, which
`windows` compute, with `pair_positions` and `pair_positions`; `convolutions` and `recurrent` are the active
memories, `long_convolutions` those of each channel by itself, `matrix_states` those of heads with a matrix as
their state and `vector_states` those whose channels have one, with `head_parts` in common; `feedforward`
works on each position, `pooling` makes one vector, and `fused_pooling` does so in pieces that stay in a
processor's cache. On a GPU `kernels` of other programs compute some of them.
"""

from . import (  # each registers its blocks
    all_attention,
    attention,
    attention_variants,
    convolutions,
    feedforward,
    long_convolutions,
    matrix_states,
    pooling,
    recurrent,
    vector_states,
)

__all__ = [
    "all_attention",
    "attention",
    "attention_variants",
    "convolutions",
    "feedforward",
    "long_convolutions",
    "matrix_states",
    "pooling",
    "recurrent",
    "vector_states",
]
