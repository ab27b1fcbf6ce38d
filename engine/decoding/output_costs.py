"""What outputs cost beside their likelihood."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from .outputs import Bounds


class OutputCosts(ABC):
    """The costs of outputs of some sentences, in nats, none below 0."""

    @abstractmethod
    def total(self, sentences: Tensor, symbols: Tensor) -> Tensor:
        """What outputs (rows, longest) of these sentences (rows,) cost, in double precision.

        Each row has its end, and padding behind it.
        """

    def least(self, sentences: Tensor, symbols: Tensor, left: Bounds) -> Tensor:
        """What outputs that begin with these symbols (rows, written) cost at least; 0 by default.

        `left` says how many symbols may come, the end counted. Where this is close to what outputs cost in
        the end, those that cannot be the best are given up early.
        """
        return torch.zeros(len(symbols), dtype=torch.float64, device=symbols.device)


class NoCosts(OutputCosts):
    """Outputs are compared by their likelihood alone."""

    def total(self, sentences: Tensor, symbols: Tensor) -> Tensor:
        """Nothing."""
        return torch.zeros(len(symbols), dtype=torch.float64, device=symbols.device)
