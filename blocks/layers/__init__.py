"""Layers: modules that map a sequence to a sequence of the same length or to a vector.

- `attention`, `attention_variants` and `all_attention` attend. `window_attention` limits them to windows,
  which `windows` computes.
- `convolutions` and `recurrent` are the active memories.
- `long_convolutions` convolves each channel separately.
- `matrix_states` and `vector_states` are recurrences: their state is a matrix for each head, or a vector for
  each channel. They share `head_parts`.
- `feedforward` maps each position.
- `other_packages` builds layers of other packages.
- `pooling` reduces a sequence to one vector, for mapped inputs in pieces that stay in a processor's cache.
"""

from . import (  # each registers its blocks
    all_attention,
    attention,
    attention_variants,
    convolutions,
    feedforward,
    long_convolutions,
    matrix_states,
    other_packages,
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
    "other_packages",
    "pooling",
    "recurrent",
    "vector_states",
]

from ...lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
