"""The channel blocks of the vocabulary: they work on each position by itself.

They reach no other position and keep no state.
"""

from __future__ import annotations

from .vocabulary import Context, Cost, Parameter, Reach, Role, Settings, Spec, register, whole, word

ACT = Parameter(
    name="act",
    kind="word",
    default="relu",
    words=("relu", "gelu", "tanh", "leaky_relu"),
    meaning="activation",
)


_FROM_OUTPUT = ("relu", "tanh")
"""The activations whose derivative is taken from what they give, so that it alone is saved."""


def _cost(settings: Settings, context: Context) -> Cost:
    """Two linear layers with bias: to the inner width and back.

    Saved are the activation's input or output and the second layer's input, and with dropout its mask.
    """
    inner = whole(settings, "filter")
    saved = 3 if context.dropout else 1 if word(settings, "act") in _FROM_OUTPUT else 2
    return Cost(
        parameters=2 * context.width * inner + inner + context.width,
        flops=2 * context.length * 2 * context.width * inner,
        saved=saved * context.length * inner,
    )


def _reach(_settings: Settings, _context: Context) -> Reach:
    """The position itself."""
    return Reach(left=0, right=0)


FF = register(
    Spec(
        name="ff",
        role=Role.CHANNEL,
        parameters=(
            Parameter(
                name="filter",
                kind="integer",
                low=1,
                high=1048576,
                bare=True,
                meaning="width of the inner layer",
            ),
            ACT,
        ),
        summary="feed-forward layer on each position",
        equation="y = W₂ · act(W₁ · x + b₁) + b₂",
        source="Vaswani et al. 2017, section 3.3",
        cost=_cost,
        reach=_reach,
    )
)
