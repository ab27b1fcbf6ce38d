"""The vocabulary: the specification of every block, such as its parameters, reach and publication.

`spec` defines a block's specification, the registry, and whether parts give sequences or vectors. The
families are `attention`, `attention_variants`, `all_attention`, `convolutions`, `recurrent`, `matrix_states`,
`vector_states`, `feedforward`, `pooling` and `neural_gpu`. A family's modules are in the file of the same
name in `blocks`.
"""

# each registers its blocks
from . import all_attention as all_attention
from . import attention as attention
from . import attention_variants as attention_variants
from . import convolutions as convolutions
from . import feedforward as feedforward
from . import matrix_states as matrix_states
from . import neural_gpu as neural_gpu
from . import pooling as pooling
from . import recurrent as recurrent
from . import vector_states as vector_states
