"""The blocks whose channels each decay by themselves, so that all positions are computed by a scan."""

from __future__ import annotations

from dataclasses import replace

from ..attention import HEAD_WIDTH, HEADS
from ..spec import Parameter, Settings, as_int
from .recurrent_channels import (
    CHANNELS,
    SHORT_CONV,
    gate_parameter,
    register_channels,
)

MIN_GRU = register_channels(
    "min_gru",
    "gated recurrent unit whose gate and candidate do not see the state, so that it is a scan",
    "z_t = σ(W_z x_t + b_z); h_t = (1−z_t)⊗h_{t−1} + z_t⊗g(W_h x_t + b_h); y_t = W_o h_t; "
    "g(u) = u + 0.5 if u ≥ 0, else σ(u); or u",
    "Feng et al. 2024 (Were RNNs All We Needed?), section 3.1 and appendix B",
    lambda settings: as_int(settings, "channels"),
    CHANNELS,
    Parameter(
        name="candidate",
        kind="word",
        default="positive",
        words=("positive", "linear"),
        meaning="whether candidates pass g, which makes them positive, or are taken as they are",
    ),
    SHORT_CONV,
    gate_parameter("none"),
    convolved=lambda settings: 2 * as_int(settings, "channels"),
)


def _channels_of_heads(settings: Settings) -> int:
    """Return the channels of all heads together."""
    return as_int(settings, "heads") * as_int(settings, "head_width")


RG_LRU = register_channels(
    "rg_lru",
    "real-gated linear recurrent unit: channels decay by a learned rate and a gate of the input",
    "u = conv(W x); r_t = σ(W_r u_t + b_r); i_t = σ(W_i u_t + b_i); a_t = σ(Λ)^(8 r_t); "
    "h_t = a_t⊗h_{t−1} + √(1−a_t²)⊗i_t⊗u_t; y_t = W_o (h_t ⊗ gelu(W_g x_t)); W_r and W_i by blocks",
    "De et al. 2024 (Griffin), section 2.4",
    _channels_of_heads,
    HEADS,
    HEAD_WIDTH,
    replace(
        SHORT_CONV,
        default=4,
        meaning="taps of a causal convolution of each channel of what is mapped; 0 for none",
    ),
    gate_parameter("gelu"),
    convolved=_channels_of_heads,
)
