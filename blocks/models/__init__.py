"""Models: a body with embeddings before it and an output layer after it.

`model` has the models of recipes and `build`. `adaptive_softmax` is for large vocabularies.
"""

from ...lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
