"""A measure says what outputs are worth, by the rules of the tool that papers use.

`bleu` is for translations, `evalb` for trees, `classification` for classes and their probabilities,
`likelihood` for how likely the right outputs were.
"""

from .bleu import Bleu, LengthBucket, bleu, bleu_by_length
from .classification import ClassificationScore
from .evalb import BracketScore, score_brackets
from .likelihood import Likelihood

__all__ = [
    "Bleu",
    "BracketScore",
    "ClassificationScore",
    "LengthBucket",
    "Likelihood",
    "bleu",
    "bleu_by_length",
    "score_brackets",
]
