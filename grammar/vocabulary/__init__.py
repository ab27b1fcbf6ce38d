"""Every block is data: parameters, role, cost, reach and source; the file names are those of `blocks`.

`spec` is what a block states and `registry` where it is found. `attention`,
`attention_variants`, `all_attention`, `convolutions`, `recurrent`, `matrix_states`, `vector_states`,
`feedforward`, `pooling` and `neural_gpu` are the families. `cost_tree` adds costs up, `output_kinds` checks
what parts give, and `entry_points` finds blocks of other packages.
"""

from . import (  # each registers its blocks
    all_attention,
    attention,
    attention_variants,
    convolutions,
    feedforward,
    matrix_states,
    neural_gpu,
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
    "pooling",
    "recurrent",
    "vector_states",
]
