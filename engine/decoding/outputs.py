"""Inputs and results of all searches: length bounds, log-probabilities, and outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds on the number of symbols of each output, its end included, each (batch,).

    An output must not end before `min_length` symbols, and ends after at most `max_length`.
    """

    min_length: Tensor
    max_length: Tensor

    def select(self, index: Tensor) -> Self:
        """Select the bounds of these outputs."""
        return type(self)(min_length=self.min_length[index], max_length=self.max_length[index])

    def after(self, place: int) -> Self:
        """Return the bounds on the symbols that remain after `place` symbols."""
        return type(self)(
            min_length=(self.min_length - place).clamp(min=1), max_length=self.max_length - place
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Decoded symbols (batch, longest), each row with its end and then padding, and scores (batch,) in nats.

    A score is the sum of the log-probabilities of a row's symbols, in double precision. It is minus infinity
    if the model outputs NaN, and the row then holds only an end.
    """

    symbols: Tensor
    scores: Tensor

    def select(self, index: Tensor) -> Self:
        """Select these rows."""
        return type(self)(symbols=self.symbols[index], scores=self.scores[index])


def log_probabilities(logits: Tensor) -> Tensor:
    """Return the log-probabilities of all symbols, at least in single precision."""
    return torch.log_softmax(logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32))


class OutputCosts(ABC):
    """Costs of outputs in nats, none below 0."""

    @abstractmethod
    def total(self, sentences: Tensor, symbols: Tensor) -> Tensor:
        """Return the costs of outputs (rows, longest) of these sentences (rows,), in float64.

        Each row has its end, and padding after it.
        """

    def least(self, sentences: Tensor, symbols: Tensor, left: Bounds) -> Tensor:
        """Return a lower bound on the costs of outputs that begin with (rows, written); 0 by default.

        `left` bounds the number of symbols that may follow, end included. A tight bound lets the search drop
        hopeless outputs early.
        """
        return torch.zeros(len(symbols), dtype=torch.float64, device=symbols.device)


class NoCosts(OutputCosts):
    """No costs: outputs are compared only by their likelihood."""

    def total(self, sentences: Tensor, symbols: Tensor) -> Tensor:
        """Return zeros."""
        return torch.zeros(len(symbols), dtype=torch.float64, device=symbols.device)
