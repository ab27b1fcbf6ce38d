"""Transducers, which map a source to a target of another length.

`seq2seq` is an encoder with one of several decoders, and `neural_gpu` the family that works on an image.
"""

# each registers its blocks
from . import neural_gpu as neural_gpu
from . import seq2seq as seq2seq
