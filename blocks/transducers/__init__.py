"""A transducer maps a source to a target of another length: whole models, and what they are made of.

`seq2seq` is an encoder with one of the `decoders`, which attend by `alignment` or by `cross_attention`.
`neural_gpu` and `extended_neural_gpu` work on a `neural_gpu_image`.
"""

from . import extended_neural_gpu, neural_gpu, seq2seq  # each registers its blocks

__all__ = ["extended_neural_gpu", "neural_gpu", "seq2seq"]
