"""Decoding: the output that a transducer finds most likely, with the score that teacher forcing gives it."""

from .decode import Decoded, DecodingError, decode

__all__ = ["Decoded", "DecodingError", "decode"]
