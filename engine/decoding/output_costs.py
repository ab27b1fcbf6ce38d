"""Costs of outputs beside their likelihood."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from .outputs import Bounds


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
