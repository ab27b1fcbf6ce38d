"""One module in place of several models, whose batches follow one another: a layer is one product for all.

The blocks are the ones of the models: what has no weights of its own works on each sequence by itself, and
does not see how many models there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ...grammar.positions import NoPosition, TimingPosition
from ..core.dropout import Dropout
from ..core.initialisation import Embedding, Linear
from ..core.positional_encoding import PositionalEncoding
from ..core.residual_stack import ResidualStack, Sublayer, Sum
from ..layers.attention import SelfAttention
from ..layers.convolutions import (
    Conv,
    Convolution,
    ConvolutionalGRU,
    HighwayConv,
    LearnedPadding,
    PersistentConv,
)
from ..layers.feedforward import Activation, Dense, FeedForward, GatedLinearUnit
from ..layers.head_parts import HeadNorm
from ..layers.pair_positions import PairPositions
from ..models.adaptive_softmax import TiedLinear
from ..models.sequence_model import Model
from . import leaves

_LEAVES: dict[type[nn.Module], Callable[[Sequence[Any]], nn.Module]] = {
    Linear: leaves.StackedLinear,
    TiedLinear: leaves.StackedLinear,
    Embedding: leaves.StackedEmbedding,
    nn.LayerNorm: leaves.StackedLayerNorm,
    nn.RMSNorm: leaves.StackedGain,
    HeadNorm: leaves.StackedGain,
    Convolution: leaves.StackedConvolution,
    LearnedPadding: leaves.StackedPadding,
}
"""What stands for modules with weights."""

_AS_THEY_ARE: tuple[type[nn.Module], ...] = (
    Model,
    ResidualStack,
    nn.ModuleList,
    Sublayer,
    Sum,
    Dropout,
    PositionalEncoding,
    PairPositions,
    FeedForward,
    GatedLinearUnit,
    Activation,
    Dense,
    Conv,
    HighwayConv,
    ConvolutionalGRU,
)
"""What has no weights but in modules that it calls, and computes each sequence by itself."""

_REWRITTEN: dict[type[nn.Module], type[nn.Module]] = {
    PersistentConv: leaves.StackedPersistentConv,
    SelfAttention: leaves.StackedSelfAttention,
}
"""What is so, but looks into the modules that have its weights, or has a faster way for many models."""


class StackedModels(nn.Module):
    """Models of one recipe as one, with their weights and in their mode.

    Its parameters have the names of theirs. Models may differ in how many symbols there are.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        super().__init__()
        self._count = len(models)
        self.model = _stacked(models, {})
        _share_weights(models[0], self.model)

    @property
    def weights(self) -> dict[str, Tensor]:
        """(models, …) by the names that they have in a model."""
        return dict(self.model.named_parameters())

    def forward(self, inputs: Tensor) -> Tensor:
        """(models, batch, length) symbols to the outputs of all, (models, batch, length, symbols)."""
        return self.model(inputs.flatten(0, 1)).unflatten(0, (self._count, -1))

    def outputs_at(self, inputs: Tensor, places: Tensor) -> Tensor:
        """The outputs of each at places (models, places) of its own batch alone, (models, places, …)."""
        assert isinstance(self.model, Model), "as those that it stands for"
        positions = inputs.shape[1] * inputs.shape[2]
        first = positions * torch.arange(self._count, device=places.device)
        found = self.model.outputs_at(inputs.flatten(0, 1), (places + first.unsqueeze(1)).flatten())
        return found.unflatten(0, (self._count, -1))


def can_be_stacked(model: nn.Module) -> bool:
    """Whether all that a model is made of can be computed for several at once."""
    return isinstance(model, Model) and all(map(_is_known, model.modules()))


def _is_known(module: nn.Module) -> bool:
    """Whether what stands for several such modules is known."""
    match module:
        case Model():
            return module.config.logit_cap is None and module.config.output_act == "none"
        case PositionalEncoding():
            return type(module.kind) in (NoPosition, TimingPosition)
        case PairPositions():
            return module.count is None
        case nn.LayerNorm():
            return module.bias is not None
        case _:
            return type(module) in (*_LEAVES, *_AS_THEY_ARE, *_REWRITTEN)


def _share_weights(model: nn.Module, stacked: nn.Module) -> None:
    """Have the softmax share the embedding's weights, if it does in a model."""
    if isinstance(model, Model) and isinstance(model.output, TiedLinear):
        output, embedding = stacked.get_submodule("output"), stacked.get_submodule("embedding")
        output.register_parameter("weight", embedding.get_parameter("weight"))


def _stacked(modules: Sequence[nn.Module], made: dict[nn.Module, nn.Module]) -> nn.Module:
    """One module for several; for those that come again the same."""
    first = modules[0]
    if first not in made:
        if make := _LEAVES.get(type(first)):
            made[first] = make(modules)
        else:
            made[first] = _copied(first)
            for name, _ in first.named_children():
                parts = [module.get_submodule(name) for module in modules]
                made[first].add_module(name, _stacked(parts, made))
    return made[first]


def _copied(module: nn.Module) -> nn.Module:
    """A module as it is but for the modules in it, of which it has none yet."""
    kind = _REWRITTEN.get(type(module), type(module))
    copied = kind.__new__(kind)
    vars(copied).update(vars(module))
    vars(copied)["_modules"] = {}
    return copied
