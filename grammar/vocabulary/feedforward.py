"""The channel blocks of the vocabulary, which map each position separately.

They reach no other position and keep no state.
"""

from __future__ import annotations

from .registry import define
from .spec import CostContext, Parameter, Reach, Role, Settings, Spec

ACT = Parameter(
    name="act",
    kind="word",
    default="relu",
    words=("relu", "gelu", "gelu_tanh", "tanh", "leaky_relu"),
    meaning="activation",
)


def _reach(_settings: Settings, _context: CostContext) -> Reach:
    """Return a reach over the position alone."""
    return Reach(left=0, right=0)


FILTER = Parameter(
    name="filter", kind="integer", low=1, high=1048576, positional=True, meaning="width of the inner layer"
)

FF = define(
    Spec(
        name="ff",
        role=Role.CHANNEL,
        parameters=(FILTER, ACT),
        summary="feed-forward layer on each position",
        equation="y = W₂ · act(W₁ · x + b₁) + b₂",
        source="Vaswani et al. 2017, section 3.3",
        reach=_reach,
    )
)

GLU = define(
    Spec(
        name="glu",
        role=Role.CHANNEL,
        parameters=(
            FILTER,
            Parameter(
                name="act",
                kind="word",
                default="silu",
                words=("silu", "gelu", "relu", "sigmoid", "none"),
                meaning="what one of the maps passes: silu is SwiGLU, gelu GEGLU, none bilinear",
            ),
        ),
        summary="gated linear unit on each position",
        equation="y = W₂ · (act(W x) ⊗ V x)",
        source="Shazeer 2020 (GLU Variants Improve Transformer), equations 5 and 6",
        reach=_reach,
    )
)

ACTIVATION = define(
    Spec(
        name="activation",
        role=Role.CHANNEL,
        parameters=(ACT,),
        summary="activation by itself",
        equation="y = act(x)",
        source="Raffel and Ellis 2016, section 2",
        reach=_reach,
    )
)

DENSE = define(
    Spec(
        name="dense",
        role=Role.CHANNEL,
        parameters=(ACT,),
        summary="one linear layer on each position",
        equation="y = act(W · x + b)",
        source="Raffel and Ellis 2016, section 2",
        reach=_reach,
    )
)
