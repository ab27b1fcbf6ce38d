"""How weights begin: Glorot uniform, drawn from one generator in the order of the modules."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn


class Drawn(nn.Module, ABC):
    """A module whose own weights are empty until they are drawn."""

    @abstractmethod
    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw the module's own weights in a fixed order; None draws from the global generator."""


class Linear(nn.Linear, Drawn):
    """A linear map, or several of one input side by side, each Glorot uniform; the bias is zero."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool, maps: int = 1) -> None:
        super().__init__(inputs, maps * outputs, bias=bias)
        self.maps = maps

    def reset_parameters(self) -> None:
        """Nothing, so that building leaves the global generator alone."""

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw the weight, clear the bias."""
        glorot(self.weight, self.in_features, self.out_features // self.maps, generator)
        if self.bias is not None:
            nn.init.zeros_(self.bias)


class Embedding(nn.Embedding, Drawn):
    """Vectors N(0, 1 / width) by token."""

    def reset_parameters(self) -> None:
        """Nothing, so that building leaves the global generator alone."""

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw the vectors."""
        nn.init.normal_(self.weight, std=self.embedding_dim**-0.5, generator=generator)


def glorot(weight: Tensor, inputs: int, outputs: int, generator: torch.Generator | None) -> None:
    """Fill with U(-a, a), a = sqrt(6 / (inputs + outputs)) (Glorot and Bengio 2010, equation 16).

    The fans are given, since one weight may hold several maps side by side.
    """
    bound = math.sqrt(6.0 / (inputs + outputs))
    nn.init.uniform_(weight, -bound, bound, generator=generator)


def initialise(model: nn.Module, generator: torch.Generator | None) -> None:
    """Draw everything inside in one pass, a shared module where it is first met."""
    for module in model.modules():
        if isinstance(module, Drawn):
            module.initialise(generator)
