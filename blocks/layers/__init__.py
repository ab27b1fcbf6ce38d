"""Layers: modules that map a sequence to one of the same length, or to a vector; one family for each file.

`attention`, `attention_variants` and `all_attention` attend, within windows by `window_attention`, which
`windows` compute, with `pair_positions`. `convolutions` and `recurrent` are the active memories;
`long_convolutions` convolve each channel separately; `matrix_states` and `vector_states` are recurrences
with a matrix for each head or a vector for each channel, with `head_parts` in common. `feedforward` maps
each position, `pooling` reduces a sequence to one vector, and `fused_pooling` does so in pieces that stay
in a processor's cache. On a GPU `kernels` of other programs compute some of them.
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
