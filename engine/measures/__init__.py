"""What outputs are worth: scores of translations and trees, and how likely the right ones were."""

from .bleu import Bleu, LengthBucket, bleu, bleu_by_length
from .evalb import BracketScore, score_brackets
from .likelihood import Likelihood

__all__ = ["Bleu", "BracketScore", "LengthBucket", "Likelihood", "bleu", "bleu_by_length", "score_brackets"]
