"""Scores of outputs, by the rules of the tools that papers use.

`bleu` scores translations, `evalb` trees, `classification` classes and their probabilities, and `likelihood`
the probability of the right outputs.
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
