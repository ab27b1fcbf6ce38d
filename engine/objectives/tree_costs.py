"""Costs of outputs that are no trees of their sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from ..data.trees.linearised import bracket_of
from ..data.vocabularies.base import END, PADDING, Vocabulary
from ..decoding import Bounds, OutputCosts

TAG_COST, BRACKET_COST = 1000.0, 100.0
"""In nats per missing or surplus tag or bracket, if trees are preferred (the program of Kaiser and Bengio
2016)."""


class TreeCosts(OutputCosts):
    """Costs for outputs that are no trees of sentences with these numbers of words (sentences,).

    That are tags too many or too few, and opening brackets that have no closing one or the other way round,
    whatever the labels and their order. Of each symbol `tags` and `brackets` (vocab,) say what it is: 1 for
    a tag, 1 for an opening bracket and -1 for a closing one.
    """

    def __init__(self, words: Tensor, *, tags: Tensor, brackets: Tensor) -> None:
        self._words, self._tags, self._brackets = words, tags, brackets

    @classmethod
    def of(cls, sentences: Sequence[str], target: Vocabulary) -> Self:
        """Return the costs of outputs for these sentences; a start symbol in them is one tag too many."""
        words = torch.tensor([len(sentence.split(" ")) for sentence in sentences])
        brackets = [bracket_of(target.decode_symbols([number])) for number in range(target.size)]
        tags = torch.tensor([not bracket for bracket in brackets]).long()
        tags[[PADDING, END]] = 0
        return cls(words, tags=tags, brackets=torch.tensor(brackets))

    def select(self, sentences: Tensor) -> Self:
        """Return the costs for some sentences, (rows,), on the device of these."""
        tables = (self._words[sentences.to(self._words.device)], self._tags, self._brackets)
        words, tags, brackets = (table.to(sentences.device) for table in tables)
        return type(self)(words, tags=tags, brackets=brackets)

    def total(self, sentences: Tensor, symbols: Tensor) -> Tensor:
        """Return the costs of outputs (rows, longest) of these sentences (rows,)."""
        tags, open_brackets = self._tags[symbols].sum(1), self._brackets[symbols].sum(1)
        return _cost((self._words[sentences] - tags).abs(), open_brackets.abs())

    def least(self, sentences: Tensor, symbols: Tensor, left: Bounds) -> Tensor:
        """Return the least cost of outputs that begin so: missing tags come first, then brackets."""
        missing = self._words[sentences] - self._tags[symbols].sum(1)
        most = left.max_length - 1
        tags = torch.minimum(missing.clamp(min=0), most)
        open_brackets, room = self._brackets[symbols].sum(1).abs(), most - tags
        odd = (left.min_length == left.max_length) & ((room - open_brackets) % 2 == 1)
        return _cost((missing - tags).abs(), torch.where(odd, 1, 0).maximum(open_brackets - room))


def _cost(tags: Tensor, brackets: Tensor) -> Tensor:
    """Return the cost of so many tags and brackets that are missing or too many."""
    return TAG_COST * tags.double() + BRACKET_COST * brackets.double()
