"""Initial weights: drawn from one generator in the order of the modules, by default Glorot uniform."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from ...grammar.model_config import BiasInit, EmbeddingInit, Init
from .weight_roles import WeightRole, roles


class Initialisable(nn.Module, ABC):
    """A module whose own weights are empty until they are drawn; `weight_roles` says what each one is."""

    weight_roles: ClassVar[Mapping[str, WeightRole]]

    @abstractmethod
    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw the module's own weights in a fixed order; None draws from the global generator."""

    def fan_in(self, weight: nn.Parameter) -> int:
        """Return how many inputs an output of one of its matrices adds up."""
        return weight[0].numel()

    def split_maps(self, name: str, tensor: Tensor) -> Sequence[Tensor]:
        """Return views of the separate maps in the weight of this name, or in a tensor of its shape."""
        return [tensor]


class Linear(nn.Linear, Initialisable):
    """A linear map, or several maps of one input side by side, drawn by the model's rule or as N(0, std²).

    `outputs` is the size of each of `maps` equal maps, or a size for each of several unequal ones. Each map
    has its own bound, unless they are `drawn_as_one`, as in programs that hold a single map.
    """

    weight_roles = roles(weight=WeightRole.MATRIX, bias=WeightRole.BIAS)

    def __init__(
        self,
        inputs: int,
        outputs: int | Sequence[int],
        *,
        bias: bool,
        maps: int = 1,
        drawn_as_one: bool = False,
        std: float | None = None,
        bias_init: BiasInit = "zero",
    ) -> None:
        sizes = (outputs,) * maps if isinstance(outputs, int) else tuple(outputs)
        super().__init__(inputs, sum(sizes), bias=bias)
        self.map_sizes, self.drawn_as_one = sizes, drawn_as_one
        self.std = std
        self.bias_init: BiasInit = bias_init

    def reset_parameters(self) -> None:
        """Leave the weights empty, so that building leaves the global generator alone."""

    def split_maps(self, name: str, tensor: Tensor) -> Sequence[Tensor]:
        return tensor.split(self.map_sizes)

    def initialise(
        self, generator: torch.Generator | None, rule: Init = "glorot", *, uniform_bias: bool = False
    ) -> None:
        """Draw the weight, then the bias by its rule, or uniform as one map's."""
        inputs, sizes = self.in_features, (self.out_features,) if self.drawn_as_one else self.map_sizes
        match "given" if self.std is not None else rule:
            case "given":
                nn.init.normal_(self.weight, std=self.std or 0.0, generator=generator)
            case "glorot":
                # equal maps share a bound and are drawn at once
                parts = [self.weight] if len(set(sizes)) == 1 else self.weight.split(sizes)
                for part, outputs in zip(parts, sizes, strict=False):
                    glorot(part, inputs, outputs, generator)
            case "he":  # He et al. 2015, equation 10
                nn.init.normal_(self.weight, std=math.sqrt(2.0 / inputs), generator=generator)
            case "lecun":  # LeCun et al. 1998, equation 16
                nn.init.normal_(self.weight, std=inputs**-0.5, generator=generator)
            case "uniform":
                bound = inputs**-0.5
                nn.init.uniform_(self.weight, -bound, bound, generator=generator)
        if self.bias is not None:
            bias_init = "uniform" if uniform_bias else self.bias_init
            draw_bias(self.bias, bias_init, generator, inputs=inputs, sizes=sizes)


class Embedding(nn.Embedding, Initialisable):
    """Vectors by token, drawn by a rule; what they are multiplied by is left to the model."""

    weight_roles = roles(weight=WeightRole.EMBEDDING)

    def __init__(self, symbols: int, width: int, *, rule: EmbeddingInit = "scaled") -> None:
        super().__init__(symbols, width)
        self.rule: EmbeddingInit = rule

    def reset_parameters(self) -> None:
        """Leave the weights empty, so that building leaves the global generator alone."""

    def initialise(self, generator: torch.Generator | None) -> None:
        match self.rule:
            case "scaled":
                nn.init.normal_(self.weight, std=self.embedding_dim**-0.5, generator=generator)
            case "unit" | "unit_scaled":
                nn.init.normal_(self.weight, generator=generator)
            case "uniform":  # the default of Keras
                nn.init.uniform_(self.weight, -0.05, 0.05, generator=generator)
            case "unit_uniform":  # the program of Kaiser and Bengio 2016
                nn.init.uniform_(self.weight, -1.7, 1.7, generator=generator)


def glorot(weight: Tensor, inputs: int, outputs: int, generator: torch.Generator | None) -> None:
    """Fill with U(-a, a), a = sqrt(6 / (inputs + outputs)) (Glorot and Bengio 2010, equation 16).

    The fans are given, since one weight may hold several maps side by side.
    """
    bound = math.sqrt(6.0 / (inputs + outputs))
    nn.init.uniform_(weight, -bound, bound, generator=generator)


@torch.no_grad()
def widen_output(output: Linear, base: int, rule: Init) -> None:
    """Scale a map that was drawn by a rule as if it had `base` inputs (Yang et al. 2022, Table 8)."""
    if output.std is None:
        outputs = output.out_features if rule == "glorot" else 0
        output.weight.mul_(math.sqrt((output.in_features + outputs) / (base + outputs)))


def draw_bias(
    bias: Tensor, rule: BiasInit, generator: torch.Generator | None, *, inputs: int, sizes: Sequence[int]
) -> None:
    """Clear or draw the biases of maps with this many inputs and these sizes.

    Glorot uniform follows TensorFlow, which counts a bias's outputs as its inputs; uniform follows torch.
    """
    match rule:
        case "zero":
            nn.init.zeros_(bias)
        case "glorot":
            parts = [bias] if len(set(sizes)) == 1 else bias.split(list(sizes))
            for part, outputs in zip(parts, sizes, strict=False):
                glorot(part, outputs, outputs, generator)
        case "uniform":
            nn.init.uniform_(bias, -(inputs**-0.5), inputs**-0.5, generator=generator)


def initialise(
    model: nn.Module,
    generator: torch.Generator | None,
    rule: Init = "glorot",
    *,
    uniform_bias: bool = False,
) -> None:
    """Draw everything inside in one pass, a shared module where it is first met; all maps by one rule."""
    for module in model.modules():
        if isinstance(module, Linear):
            module.initialise(generator, rule, uniform_bias=uniform_bias)
        elif isinstance(module, Initialisable):
            module.initialise(generator)
