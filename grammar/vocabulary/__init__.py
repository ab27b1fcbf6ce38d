"""Every block is data: parameters, role, reach and source; the file names are those of `blocks`.

`spec` is what a block states and `registry` where it is found. `attention`,
`attention_variants`, `all_attention`, `convolutions`, `recurrent`, `matrix_states`, `vector_states`,
`feedforward`, `pooling` and `neural_gpu` are the families. `output_kinds` checks what
parts give.
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
