"""How likely the right outputs were."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Likelihood:
    """Summed negative log-probabilities of outputs, and the tokens and words that these are.

    The end of a sentence is a token and a word. A vocabulary that spells rare words has more tokens than
    words, so that only perplexities per word can be compared across vocabularies.
    """

    nats: float = 0.0
    tokens: int = 0
    words: int = 0

    def __add__(self, other: Likelihood) -> Likelihood:
        return Likelihood(
            nats=self.nats + other.nats, tokens=self.tokens + other.tokens, words=self.words + other.words
        )

    @property
    def per_token(self) -> float:
        """The perplexity per token; infinite where it is beyond all numbers."""
        return perplexity(self.nats, self.tokens)

    @property
    def per_word(self) -> float:
        """The perplexity per word."""
        return perplexity(self.nats, self.words)


def perplexity(nats: float, count: int) -> float:
    """The exponential of the mean of so many losses, infinite where it is beyond all numbers."""
    if count < 1:
        raise ValueError(f"expected at least 1 output, got {count}")
    try:
        return math.exp(nats / count)
    except OverflowError:
        return math.inf
