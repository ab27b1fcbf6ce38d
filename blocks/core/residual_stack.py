"""Modules that combine blocks: sums of parts, and residual stacks of sub-layers.

A sub-layer adds a norm, dropout and the timing signal (position vectors) around its part. After a pool the
vector continues as a sequence of one position, without mask and timing signal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from torch import Tensor, nn

from ...grammar import nodes
from ...grammar.canonical import identity
from ...grammar.model_config import ModelConfig
from ...grammar.norms import NORMS, PluginNorm
from ...grammar.vocabulary.spec import VECTOR, mixes_positions, output_kind
from .block import Block, BuildError, Context, StreamChunk, build_block
from .dropout import Dropout
from .initialisation import WeightRole, declare_role
from .plugin_parts import build_plugin_part


def build_norm(config: ModelConfig) -> nn.Module:
    """Build one normalisation layer of the kind `norm_kind`. It maps (…, width) to the same shape."""
    kind = NORMS[config.settings.norm_kind]
    if isinstance(kind, PluginNorm):
        build = partial(kind.build, config.settings.d_model, config.settings.norm_eps)
        made = build_plugin_part(NORMS, config.settings.norm_kind, kind, build)
        declare_role(made, WeightRole.NORM)
        return made
    made = nn.RMSNorm if config.settings.norm_kind == "rms_norm" else nn.LayerNorm
    return made(config.settings.d_model, eps=config.settings.norm_eps)


def build_final_norm(config: ModelConfig) -> nn.Module | None:
    """Build the normalisation after the last sub-layer of a model.

    Return None unless norms come before sub-layers (`norm` is "pre").
    """
    return build_norm(config) if config.settings.norm == "pre" else None


class SideInputs(NamedTuple):
    """Inputs that a residual stack needs besides the sequence; each may be None.

    `mask` (batch, length) is true at valid positions, which come first. `signal` is the timing signal,
    (length, width), or (batch, length, width) if it differs between sequences. `chunk` is a piece of a
    stream, which has each block's state.
    """

    mask: Tensor | None = None
    signal: Tensor | None = None
    chunk: StreamChunk | None = None


_NO_SIDE_INPUTS = SideInputs()


class CompositeBlock(nn.Module, ABC):
    """Base class of modules that consist of blocks: sums, sub-layers and residual stacks."""

    @abstractmethod
    def forward(self, x: Tensor, side: SideInputs = _NO_SIDE_INPUTS) -> Tensor:
        """Map (batch, length, width) to the same shape, or to (batch, 1, width) after a pool."""


class Sum(CompositeBlock):
    """A module that applies all its parts to the same input and adds their outputs."""

    def __init__(self, parts: Sequence[Block | CompositeBlock]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x: Tensor, side: SideInputs = _NO_SIDE_INPUTS) -> Tensor:
        first, *others = (_apply(part, x, side) for part in self.parts)
        return sum(others, start=first)


class ResidualStep(nn.Module):
    """One step of a residual stream: x + drop(f(norm(x))), or with post-norm norm(x + drop(f(x))).

    Without residuals the step is f(norm(x)), or norm(f(x)).
    """

    norm: nn.Module | None
    dropout: Dropout | None
    normalises_input: bool

    def _add_norm_and_dropout(self, context: Context) -> None:
        self.norm = None if context.config.settings.norm == "none" else build_norm(context.config)
        self.normalises_input = context.config.settings.norm == "pre"
        self.dropout = Dropout(context.config.settings.dropout) if context.config.settings.residual else None

    def _step(self, x: Tensor, function: Callable[..., Tensor], *given: Any) -> Tensor:  # noqa: ANN401 -- of the function
        norm, dropout = self.norm, self.dropout
        y = function(norm(x) if norm is not None and self.normalises_input else x, *given)
        if dropout is not None:
            y = x + dropout(y)
        return y if norm is None or self.normalises_input else norm(y)


class Sublayer(CompositeBlock, ResidualStep):
    """A residual step around one part of a recipe, such as a block or a sum of blocks.

    The timing signal is added to the input if the part mixes positions.
    """

    def __init__(self, part: Block | CompositeBlock, *, mixes: bool, context: Context) -> None:
        super().__init__()
        self._add_norm_and_dropout(context)
        self.part, self.is_composite = part, isinstance(part, CompositeBlock)
        self.mixes = mixes

    def forward(self, x: Tensor, side: SideInputs = _NO_SIDE_INPUTS) -> Tensor:
        mask, signal, chunk = side
        if signal is not None and self.mixes:
            x = x + signal
        if self.is_composite:
            return self._step(x, self.part, side)
        block = cast("Block", self.part)
        if chunk is None:
            return self._step(x, block.call_unchecked, mask)
        return self._step(x, chunk.apply, block)


class PoolingLayer(CompositeBlock):
    """The layer of a pool, or of a sum of pools, which reduces a sequence to one vector.

    It has neither a norm nor a residual connection.
    """

    def __init__(self, part: Block | CompositeBlock) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor, side: SideInputs = _NO_SIDE_INPUTS) -> Tensor:
        y = _apply(self.part, x, side)
        return y if y.dim() == x.dim() else y.unsqueeze(1)


class ResidualStack(CompositeBlock):
    """A module that applies its sub-layers in order. A sub-layer with tied weights occurs several times."""

    def __init__(self, sublayers: Sequence[Sublayer | PoolingLayer]) -> None:
        super().__init__()
        distinct = list(dict.fromkeys(sublayers))
        self.order = tuple(distinct.index(sublayer) for sublayer in sublayers)
        self.layers = nn.ModuleList(distinct)

    def forward(self, x: Tensor, side: SideInputs = _NO_SIDE_INPUTS) -> Tensor:
        layers = list(self.layers)
        for place in self.order:
            layer = layers[place]
            x = layer(x, side)
            if type(layer) is PoolingLayer:  # its output is one vector, which needs no mask and no signal
                side = SideInputs(chunk=side.chunk)
        return x


def build_body(root: nodes.Node, context: Context) -> ResidualStack:
    """Build the residual stack of a part of a recipe, such as the whole recipe.

    A single block or sum gives a stack of one sub-layer.
    """
    return ResidualStack(_sublayers(root, context))


def _build_part(node: nodes.Node, context: Context) -> Block | CompositeBlock:
    match node:
        case nodes.BlockNode():
            block = build_block(node, context)
            return PoolingLayer(block) if output_kind(node) == VECTOR else block
        case nodes.SumNode():
            # one order for all spellings, so that a + b and b + a are the same model to the last bit
            return Sum([_build_part(part, context) for part in sorted(node.parts, key=identity)])
        case _:
            return build_body(node, context)


def _sublayers(node: nodes.Node, context: Context) -> list[Sublayer | PoolingLayer]:
    match node:
        case nodes.SeriesNode():
            return [sublayer for part in node.parts for sublayer in _sublayers(part, context)]
        case nodes.RepeatNode(count=int() as count):
            return [sublayer for _ in range(count) for sublayer in _sublayers(node.body, context)]
        case nodes.TiedNode(body=nodes.RepeatNode(count=int() as count)):
            return _sublayers(node.body.body, context) * count
        case nodes.BlockNode() | nodes.SumNode():
            part = _build_part(node, context)
            if output_kind(node) == VECTOR:
                return [part if isinstance(part, PoolingLayer) else PoolingLayer(part)]
            return [Sublayer(part, mixes=mixes_positions(node), context=context)]
        case _:
            raise BuildError(f"expected a block, a sum or a series, got {identity(node)}")


def _apply(part: nn.Module, x: Tensor, side: SideInputs) -> Tensor:
    if isinstance(part, CompositeBlock):
        return part(x, side)
    block = cast("Block", part)
    return block.call_unchecked(x, side.mask) if side.chunk is None else side.chunk.apply(x, block)
