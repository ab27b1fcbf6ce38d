"""Recurrent blocks whose state is one number, or a few numbers, for each channel.

They are causal in every model. The channels of `min_gru` and `rg_lru` decay independently; `mamba` has
several numbers per channel, and the gates of `slstm` depend on the state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .attention import HEAD_WIDTH, HEADS
from .matrix_states import FORGET, SHORT_CONV, head_norm
from .spec import (
    CostContext,
    Parameter,
    Role,
    Settings,
    Spec,
    as_int,
    boolean,
    define,
    integer,
    sees_the_past,
    word,
)

CHANNELS = integer("channels", "width of the recurrence", (1, 1048576), 512)


def _output_gate(default: str) -> Parameter:
    meaning = "activation of the output gate, a linear map of the input"
    return word("output_gate", meaning, ("none", "sigmoid", "silu", "gelu"), default)


def _channels(settings: Settings) -> int:
    return as_int(settings, "channels")


def _channels_of_heads(settings: Settings) -> int:
    return as_int(settings, "heads") * as_int(settings, "head_width")


def _recurrence(
    name: str,
    summary: str,
    equation: str,
    source: str,
    *parameters: Parameter,
    state: Callable[[Settings], int],
    convolved: Callable[[Settings], int] = lambda _settings: 0,
) -> Spec:
    """Return a specification; `convolved` returns the channels of the short convolution."""

    def window(settings: Settings, _context: CostContext) -> int:
        taps = as_int(settings, "short_conv") if "short_conv" in settings else 0
        return state(settings) + max(0, taps - 1) * convolved(settings)

    return Spec(
        name=name,
        role=Role.MIXER,
        parameters=parameters,
        summary=summary,
        equation=equation,
        source=source,
        reach=sees_the_past,
        window=window,
    )


define(
    _recurrence(
        "min_gru",
        "gated recurrent unit with gate and candidate independent of the state, computed as a scan",
        "z_t = σ(W_z x_t + b_z); h_t = (1−z_t)⊙h_{t−1} + z_t⊙g(W_h x_t + b_h); y_t = W_o h_t; "
        "g(u) = u + 0.5 if u ≥ 0, else σ(u); or u",
        "Feng et al. 2024 (Were RNNs All We Needed?), section 3.1 and appendix B",
        CHANNELS,
        word(
            "candidate",
            "whether candidates pass through g, which makes them positive",
            ("positive", "linear"),
        ),
        replace(
            SHORT_CONV,
            meaning="kernel size of a causal depthwise convolution of W_z x and W_h x, before both are used; "
            "0 for none",
        ),
        _output_gate("none"),
        state=_channels,
        convolved=lambda settings: 2 * _channels(settings),
    ),
    _recurrence(
        "rg_lru",
        "real-gated linear recurrent unit: channels decay by a learned rate and an input-dependent gate",
        "u = conv(W x); r_t = σ(W_r u_t + b_r); i_t = σ(W_i u_t + b_i); a_t = σ(Λ)^(8 r_t); "
        "h_t = a_t⊙h_{t−1} + √(1−a_t²)⊙i_t⊙u_t; y_t = W_o (h_t ⊙ gelu(W_g x_t)); W_r and W_i by blocks",
        "De et al. 2024 (Griffin), section 2.4",
        HEADS,
        HEAD_WIDTH,
        replace(
            SHORT_CONV,
            default=4,
            meaning="kernel size of a causal depthwise convolution after the linear map; 0 for none",
        ),
        _output_gate("gelu"),
        state=_channels_of_heads,
        convolved=_channels_of_heads,
    ),
    _recurrence(
        "mamba",
        "selective state space: a state per channel, with input-dependent steps, keys and queries",
        "u = silu(conv(W x)); Δ_t = softplus(W₂ W₁ u_t + b); "
        "h_t = a_t ⊙ h_{t−1} + (Δ_t ⊙ u_t) (W_B u_t)ᵀ, a_t = exp(−exp(A) Δ_t), "
        "if negative 2 exp(−exp(A) Δ_t) − 1; "
        "y_t = W_o ((h_t W_C u_t + D ⊙ u_t) ⊙ silu(W_g x_t))",
        "Gu and Dao 2023 (Mamba), sections 3.2 to 3.6; negative: Grazzi et al. 2025",
        CHANNELS,
        integer("state", "state size per channel", (1, 4096), 16),
        boolean("negative", "whether the decay is between −1 and 1, instead of 0 and 1"),
        replace(
            SHORT_CONV,
            default=4,
            meaning="kernel size of a causal depthwise convolution with SiLU; 0 for none",
        ),
        _output_gate("silu"),
        state=lambda settings: _channels(settings) * as_int(settings, "state"),
        convolved=_channels,
    ),
    _recurrence(
        "slstm",
        "scalar memory of the xLSTM: exponential gates that depend on the state",
        "z_t = tanh(W x_t + R h_{t−1} + b); of such maps i_t = exp(…), f_t = σ(…), or exp, o_t = σ(…); "
        "c_t = f_t⊙c_{t−1} + i_t⊙z_t; n_t = f_t⊙n_{t−1} + i_t; h_t = o_t⊙c_t / n_t; "
        "y_t = concat_h norm(h_t) · W_o; R by heads",
        "Beck et al. 2024 (xLSTM), section 2.2, without the layers around it",
        HEADS,
        HEAD_WIDTH,
        FORGET,
        head_norm("rms"),
        state=lambda settings: 4 * _channels_of_heads(settings),
    ),
)
