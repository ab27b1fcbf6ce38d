"""Transducers, which map a source to a target of another length.

`seq2seq` is an encoder with one of several decoders, and `neural_gpu` the family that works on an image.
"""

from . import neural_gpu, seq2seq  # each registers its blocks

__all__ = ["neural_gpu", "seq2seq"]

from ...lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
