"""Inputs and results of all searches: bounds on lengths, likelihoods of symbols, outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The fewest and the most symbols of each output, its end among them, each (batch,).

    An output may not end before the fewest, and must end with the most.
    """

    min_length: Tensor
    max_length: Tensor

    def select(self, index: Tensor) -> Self:
        """Return the outputs at these indices."""
        return type(self)(min_length=self.min_length[index], max_length=self.max_length[index])

    def after(self, place: int) -> Self:
        """Return how many symbols may follow `place` symbols of an output that has not ended."""
        return type(self)(
            min_length=(self.min_length - place).clamp(min=1), max_length=self.max_length - place
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Symbols (batch, longest), each row with its end and padding behind it, and scores (batch,) in nats.

    A score is the sum of the log-probabilities of a row's symbols, in double precision. It is minus infinity
    if a model that gives no numbers has written nothing but an end.
    """

    symbols: Tensor
    scores: Tensor

    def select(self, index: Tensor) -> Self:
        """Return the rows at these indices."""
        return type(self)(symbols=self.symbols[index], scores=self.scores[index])


def log_probabilities(logits: Tensor) -> Tensor:
    """Return the log-probabilities of all symbols, at least in single precision."""
    return torch.log_softmax(logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32))


class OutputCosts(ABC):
    """The costs of outputs of some sentences, in nats, none below 0."""

    @abstractmethod
    def total(self, sentences: Tensor, symbols: Tensor) -> Tensor:
        """Return the costs of outputs (rows, longest) of these sentences (rows,), in float64.

        Each row has its end, and padding after it.
        """

    def least(self, sentences: Tensor, symbols: Tensor, left: Bounds) -> Tensor:
        """Return a lower bound of the costs of outputs with these beginnings (rows, written); 0 by default.

        `left` is the number of symbols that may follow, with the end. A bound close to the final cost lets
        the search drop hopeless outputs early.
        """
        return torch.zeros(len(symbols), dtype=torch.float64, device=symbols.device)


class NoCosts(OutputCosts):
    """Outputs are compared by their likelihood alone."""

    def total(self, sentences: Tensor, symbols: Tensor) -> Tensor:
        """Nothing."""
        return torch.zeros(len(symbols), dtype=torch.float64, device=symbols.device)
