"""A decoder finds the output that a transducer holds most likely, with the score of teacher forcing.

`decode` takes sentences and gives `outputs`; `greedy`, `beam` and `length_search` are ways to look for
them, `length_penalty` compares those of different lengths, `length_line` estimates a length, and
`output_costs` are what outputs cost beside their likelihood.
"""

from .decode import Decoded, DecodingError, decode
from .length_line import LengthLine
from .length_search import SizeSearch
from .output_costs import OutputCosts
from .outputs import Bounds

__all__ = ["Bounds", "Decoded", "DecodingError", "LengthLine", "OutputCosts", "SizeSearch", "decode"]
