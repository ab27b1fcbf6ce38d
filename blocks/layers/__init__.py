"""Layers: modules that map a sequence to a sequence of the same length or to a vector.

- `attention`, `attention_variants` and `all_attention` attend. `window_attention` limits them to windows,
  which `window_products` computes.
- `convolutions` and `recurrent` are the active memories.
- `long_convolutions` convolves each channel separately.
- `matrix_states` and `vector_states` are recurrences: their state is a matrix for each head, or a vector for
  each channel. They share `head_parts`.
- `feedforward` maps each position.
- `pooling` reduces a sequence to one vector, for mapped inputs in pieces that stay in a processor's cache.
"""

# each registers its blocks
from . import all_attention as all_attention
from . import attention as attention
from . import attention_variants as attention_variants
from . import convolutions as convolutions
from . import feedforward as feedforward
from . import long_convolutions as long_convolutions
from . import matrix_states as matrix_states
from . import pooling as pooling
from . import recurrent as recurrent
from . import vector_states as vector_states
