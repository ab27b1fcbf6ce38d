"""The feed-forward blocks, which map each position separately."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional

from ...grammar.vocabulary.spec import Settings, as_int, as_word
from ..core.block import Block, Context, register_block
from ..core.dropout import Dropout
from ..core.initialisation import Linear
from ..core.operations import ACTIVATIONS
from .head_parts import GATES

GLU_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor] | None] = {
    **GATES,
    "relu": functional.relu,
    "none": None,
}
"""The activation of one map of a gated linear unit; None for a bilinear unit."""


@register_block("ff")
class FeedForward(Block):
    """Block `ff`: two linear maps, to `filter` channels and back, with an activation and dropout between."""

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        filter_width, std = as_int(settings, "filter"), context.config.settings.feedforward_std
        self.inner = Linear(context.width, filter_width, bias=True, std=std)
        self.outer = Linear(filter_width, context.width, bias=True, std=std)
        self.act = ACTIVATIONS[as_word(settings, "act")]
        self.dropout = Dropout(context.config.settings.inner_dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        rows = self.act(self.inner(x.flatten(0, 1)))  # a 2-d matrix needs fewer operations
        return self.outer(self.dropout(rows) if self.dropout.rate else rows).view(x.shape)


@register_block("glu")
class GatedLinearUnit(Block):
    """Block `glu`: y = W₂ (act(W x) ⊙ V x), a gated linear unit without biases (Shazeer 2020).

    Dropout applies to the input of W₂, as in a feed-forward layer.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        filter_width, std = as_int(settings, "filter"), context.config.settings.feedforward_std
        self.inner = Linear(context.width, filter_width, bias=False, maps=2, std=std)
        self.outer = Linear(filter_width, context.width, bias=False, std=std)
        self.act = GLU_ACTIVATIONS[as_word(settings, "act")]
        self.dropout = Dropout(context.config.settings.inner_dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        gate, value = self.inner(x).chunk(2, -1)
        return self.outer(self.dropout((gate if self.act is None else self.act(gate)) * value))


@register_block("activation")
class Activation(Block):
    """Block `activation`: y = act(x)."""

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        self.act = ACTIVATIONS[as_word(settings, "act")]

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.act(x)


@register_block("dense")
class Dense(Block):
    """Block `dense`: y = act(W x + b), as wide as the input."""

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        self.map = Linear(context.width, context.width, bias=True)
        self.act = ACTIVATIONS[as_word(settings, "act")]

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.act(self.map(x))
