"""The vocabulary: the specification of every block, such as its parameters, reach and publication.

`spec` defines a block's specification, the registry, and whether parts give sequences or vectors. The
families are `attention`, `attention_variants`, `all_attention`, `convolutions`, `recurrent`, `matrix_states`,
`vector_states`, `feedforward`, `pooling`, `neural_gpu` and `other_packages`. A family's modules are in the
file of the same name in `blocks`.
"""

from . import (  # each registers its blocks
    all_attention,
    attention,
    attention_variants,
    convolutions,
    feedforward,
    matrix_states,
    neural_gpu,
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
    "matrix_states",
    "neural_gpu",
    "other_packages",
    "pooling",
    "recurrent",
    "vector_states",
]

from ...lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
