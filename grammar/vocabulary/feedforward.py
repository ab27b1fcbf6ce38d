"""The channel blocks of the vocabulary: they work on each position by itself.

They reach no other position and keep no state.
"""

from __future__ import annotations

from .registry import register
from .spec import Cost, CostContext, Parameter, Reach, Role, Settings, Spec, Working, as_int, as_word

ACT = Parameter(
    name="act",
    kind="word",
    default="relu",
    words=("relu", "gelu", "gelu_tanh", "tanh", "leaky_relu"),
    meaning="activation",
)


DERIVATIVE_FROM_OUTPUT = ("relu", "tanh")
"""The activations whose derivative is taken from what they give, so that it alone is saved."""


def _cost(settings: Settings, context: CostContext) -> Cost:
    """Two linear layers with bias: to the inner width and back.

    Saved are the activation's input or output and the second layer's input, and with dropout its mask. For a
    while the gradients of both are held.
    """
    inner = as_int(settings, "filter")
    plane, dropped = context.length * inner, context.config.inner_dropout > 0
    planes = 2 if dropped or as_word(settings, "act") not in DERIVATIVE_FROM_OUTPUT else 1
    return Cost(
        parameters=2 * context.width * inner + inner + context.width,
        flops=2 * context.length * 2 * context.width * inner,
        saved=planes * plane + (context.dropout_mask(plane) if dropped else 0),
        working=Working(numbers=2 * plane),
    )


GLU_SAVES = {"silu": 1, "gelu": 1, "relu": 1, "sigmoid": 1, "none": 0}
"""The functions of a gated linear unit, and whether what one gives is saved beside the two maps."""


def _glu(settings: Settings, context: CostContext) -> Cost:
    """Two maps side by side to the inner width and one back, without biases.

    Saved are both maps, what the function gives, and the last map's input, with dropout its mask too. For a
    while two gradients of such a width are held.
    """
    inner = as_int(settings, "filter")
    plane, planes = context.length * inner, 3 + GLU_SAVES[as_word(settings, "act")]
    parameters = 3 * context.width * inner
    return Cost(
        parameters=parameters,
        flops=2 * context.length * parameters,
        saved=planes * plane + (context.dropout_mask(plane) if context.config.inner_dropout else 0),
        working=Working(numbers=2 * plane),
    )


def _activation(settings: Settings, context: CostContext) -> Cost:
    """Nothing is trained; what the activation gives or takes is saved."""
    takes = as_word(settings, "act") not in DERIVATIVE_FROM_OUTPUT
    plane = context.length * context.width
    return Cost(parameters=0, flops=0, saved=0 if takes else plane, saves_input=takes, saves_output=not takes)


def _dense(settings: Settings, context: CostContext) -> Cost:
    """One linear layer with bias; what the activation gives or takes is saved."""
    plane = context.length * context.width
    parameters = context.width**2 + context.width
    gives = as_word(settings, "act") in DERIVATIVE_FROM_OUTPUT
    return Cost(parameters=parameters, flops=2 * plane * context.width, saved=plane, saves_output=gives)


def _reach(_settings: Settings, _context: CostContext) -> Reach:
    """The position itself."""
    return Reach(left=0, right=0)


FILTER = Parameter(
    name="filter", kind="integer", low=1, high=1048576, positional=True, meaning="width of the inner layer"
)

FF = register(
    Spec(
        name="ff",
        role=Role.CHANNEL,
        parameters=(FILTER, ACT),
        summary="feed-forward layer on each position",
        equation="y = W₂ · act(W₁ · x + b₁) + b₂",
        source="Vaswani et al. 2017, section 3.3",
        cost=_cost,
        reach=_reach,
    )
)

GLU = register(
    Spec(
        name="glu",
        role=Role.CHANNEL,
        parameters=(
            FILTER,
            Parameter(
                name="act",
                kind="word",
                default="silu",
                words=tuple(GLU_SAVES),
                meaning="what one of the maps passes: silu is SwiGLU, gelu GEGLU, none bilinear",
            ),
        ),
        summary="gated linear unit on each position",
        equation="y = W₂ · (act(W x) ⊗ V x)",
        source="Shazeer 2020 (GLU Variants Improve Transformer), equations 5 and 6",
        cost=_glu,
        reach=_reach,
    )
)

ACTIVATION = register(
    Spec(
        name="activation",
        role=Role.CHANNEL,
        parameters=(ACT,),
        summary="activation by itself",
        equation="y = act(x)",
        source="Raffel and Ellis 2016, section 2",
        cost=_activation,
        reach=_reach,
    )
)

DENSE = register(
    Spec(
        name="dense",
        role=Role.CHANNEL,
        parameters=(ACT,),
        summary="one linear layer on each position",
        equation="y = act(W · x + b)",
        source="Raffel and Ellis 2016, section 2",
        cost=_dense,
        reach=_reach,
    )
)
