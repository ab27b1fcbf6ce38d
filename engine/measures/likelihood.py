"""The likelihood of the right outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Likelihood:
    """Minus the log-probability of outputs in nats, and the numbers of their tokens, words and bytes.

    `bytes` are those of the scored text in UTF-8 as it was given, ends of lines among them; 0 where tokens
    stand for no text.
    The end of a line is a token and a word. A vocabulary that spells rare words has more tokens than words,
    so that only perplexities per word can be compared across vocabularies.
    """

    nats: float
    tokens: int
    words: int
    bytes: int = 0

    @property
    def loss(self) -> float:
        """Return the nats per token."""
        return self.nats / self.tokens

    @property
    def bits_per_token(self) -> float:
        """Return the bits per token: per character where these are the tokens."""
        return self.loss / math.log(2)

    @property
    def bits_per_byte(self) -> float:
        """Return the bits of all scored tokens per byte of their text, whatever the tokens are."""
        return self.nats / math.log(2) / self.bytes if self.bytes else math.nan

    @property
    def word_perplexity(self) -> float:
        """Return the perplexity per word: 1 without words, infinity where no float can hold it."""
        try:
            return math.exp(self.nats / max(self.words, 1))
        except OverflowError:
            return math.inf
