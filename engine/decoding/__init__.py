"""Decoders: searches for the output that a transducer finds most likely, scored as in teacher forcing.

`decode` takes sentences and gives `outputs`; `greedy`, `beam` and `length_search` are the searches,
`length_penalty` compares outputs of different lengths, `length_line` estimates a length, and `output_costs`
are costs of outputs beside their likelihood.
"""

from .decode import Decoded, DecodingError, decode
from .length_line import LengthLine
from .length_search import SizeSearch
from .output_costs import OutputCosts
from .outputs import Bounds

__all__ = ["Bounds", "Decoded", "DecodingError", "LengthLine", "OutputCosts", "SizeSearch", "decode"]
