"""A transducer maps a source to a target of another length: whole models, and what they are made of."""

from . import extended_neural_gpu, neural_gpu, seq2seq  # each registers its blocks

__all__ = ["extended_neural_gpu", "neural_gpu", "seq2seq"]
