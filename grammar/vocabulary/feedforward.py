"""The feed-forward blocks of the vocabulary, which map each position separately (role "channel").

They see no other position and keep no state.
"""

from __future__ import annotations

from .spec import Role, Spec, define, integer, sees_itself, word

ACT = word("act", "activation", ("relu", "gelu", "gelu_tanh", "tanh", "leaky_relu", "relu2"))
FILTER = integer("filter", "width of the inner layer", (1, 1048576), positional=True)

define(
    Spec(
        name="ff",
        role=Role.CHANNEL,
        parameters=(FILTER, ACT),
        summary="feed-forward layer at each position",
        equation="y = W₂ · act(W₁ · x + b₁) + b₂",
        source="Vaswani et al. 2017, section 3.3",
        reach=sees_itself,
    ),
    Spec(
        name="glu",
        role=Role.CHANNEL,
        parameters=(
            FILTER,
            word(
                "act",
                "activation of one of the maps: silu is SwiGLU, gelu GEGLU, none bilinear",
                ("silu", "gelu", "relu", "sigmoid", "none"),
            ),
        ),
        summary="gated linear unit at each position",
        equation="y = W₂ · (act(W x) ⊙ V x)",
        source="Shazeer 2020 (GLU Variants Improve Transformer), equations 5 and 6",
        reach=sees_itself,
    ),
    Spec(
        name="activation",
        role=Role.CHANNEL,
        parameters=(ACT,),
        summary="activation function only",
        equation="y = act(x)",
        source="Raffel and Ellis 2016, section 2",
        reach=sees_itself,
    ),
    Spec(
        name="dense",
        role=Role.CHANNEL,
        parameters=(ACT,),
        summary="linear layer at each position",
        equation="y = act(W · x + b)",
        source="Raffel and Ellis 2016, section 2",
        reach=sees_itself,
    ),
)
