"""Models: a body with embeddings before it and an output layer after it.

`sequence_model` has the model of a recipe and `build`, `seq2seq_model` that of a transducer, and `base_model`
their common parts. `adaptive_softmax` is for large vocabularies. `released_weights` loads weights saved by
the program of the all-attention paper.
"""

from ...lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
