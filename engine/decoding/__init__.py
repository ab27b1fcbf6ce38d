"""A decoder finds the output that a transducer holds most likely, with the score of teacher forcing.

`decode` takes sentences and gives `outputs`; `greedy`, `beam` and `length_search` are ways to look for
them, `length_penalty` compares those of different lengths, and `length_line` estimates a length.
"""

from .decode import Decoded, DecodingError, decode
from .length_line import LengthLine
from .length_search import SizeSearch

__all__ = ["Decoded", "DecodingError", "LengthLine", "SizeSearch", "decode"]
