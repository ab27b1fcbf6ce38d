"""The recurrent blocks of the vocabulary, which pass a state from left to right.

The state is as wide as the model. They are causal in every model. Each position's product with the state
depends on the previous one.
"""

from __future__ import annotations

from dataclasses import replace

from .spec import Role, Spec, as_int, define, integer, sees_the_past

RECURRENT = ("lstm", "gru")
"""The blocks whose last state can start a decoder."""

_WIDTH = "; the width of the state is the model's d_model"
"""The advice for more layers than a model has, which are meant as a width, as in lstm(64)."""


def _recurrent(name: str, summary: str, equation: str, source: str, states: int) -> Spec:
    return Spec(
        name=name,
        role=Role.MIXER,
        parameters=(replace(integer("layers", "number of stacked layers", (1, 16), 1), advice=_WIDTH),),
        summary=summary,
        equation=equation,
        source=source,
        reach=sees_the_past,
        window=lambda settings, context: states * as_int(settings, "layers") * context.width,
    )


define(
    _recurrent(
        "lstm",
        "long short-term memory (LSTM), from left to right",
        "i, f, o = σ(W x_t + U h_{t−1} + b); s_t = f⊙s_{t−1} + i⊙tanh(W_g x_t + U_g h_{t−1} + b_g); "
        "y_t = h_t = o⊙tanh(s_t)",
        "Hochreiter and Schmidhuber 1997; forget gate of Gers, Schmidhuber and Cummins 2000",
        2,
    ),
    _recurrent(
        "gru",
        "gated recurrent unit (GRU), from left to right",
        "r, z = σ(W x_t + U h_{t−1} + b); n = tanh(W_n x_t + b_n + r⊙(U_n h_{t−1} + c)); "
        "y_t = h_t = (1−z)⊙n + z⊙h_{t−1}",
        "Cho et al. 2014, section 2.3; the reset gate after the map, as in cuDNN",
        1,
    ),
)
