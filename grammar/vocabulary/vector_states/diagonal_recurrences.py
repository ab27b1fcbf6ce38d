"""The blocks whose channels each decay by themselves, so that all positions are computed by a scan."""

from __future__ import annotations

import math
from dataclasses import replace

from ..attention import HEAD_WIDTH, HEADS
from ..spec import Cost, CostContext, Parameter, Settings, Working, as_int, as_word
from .recurrent_channels import (
    CHANNELS,
    SHORT_CONV,
    ChannelCost,
    cost_with_maps,
    gate_parameter,
    register_channels,
)


def _scan_working(length: int, channels: int) -> Working:
    """What the gradient of a scan holds for a while.

    Its own gradient, the decays after each position, both turned round, and padded where pieces of about the
    root of the length are no whole number; states within pieces, one by one and side by side, products of
    decays, and what is found.
    """
    size = math.isqrt(max(0, length - 1)) + 1
    return Working(numbers=(8 + 2 * (length % size > 0)) * length * channels)


def _min_gru(settings: Settings, context: CostContext) -> Cost:
    """Two maps of the input with biases, and the scan.

    Saved are the gate, what it leaves, the state, and the candidate: linear with the map beside it, positive
    with one of its cases and which of them it is.
    """
    channels, plane = as_int(settings, "channels"), context.length * as_int(settings, "channels")
    positive = as_word(settings, "candidate") == "positive"
    recurrence = ChannelCost(
        window=channels,
        saved=5 * plane + positive * (plane + 3) // 4,
        working=_scan_working(context.length, channels),
    )
    return cost_with_maps(channels, settings, context, recurrence, maps=2, biased=True)


MIN_GRU = register_channels(
    "min_gru",
    "gated recurrent unit whose gate and candidate do not see the state, so that it is a scan",
    "z_t = σ(W_z x_t + b_z); h_t = (1−z_t)⊗h_{t−1} + z_t⊗g(W_h x_t + b_h); y_t = W_o h_t; "
    "g(u) = u + 0.5 if u ≥ 0, else σ(u); or u",
    "Feng et al. 2024 (Were RNNs All We Needed?), section 3.1 and appendix B",
    _min_gru,
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
)


def _rg_lru(settings: Settings, context: CostContext) -> Cost:
    """A map of the input, two gates by blocks of channels with biases, and rates of decay.

    Saved are what is mapped, both gates, the decay, three steps of what is added, and the state; and of
    the rates what softplus is of, and gives.
    """
    heads, head_width = as_int(settings, "heads"), as_int(settings, "head_width")
    channels = heads * head_width
    recurrence = ChannelCost(
        parameters=2 * channels * head_width + 3 * channels,
        flops=4 * context.length * channels * head_width,
        window=channels,
        saved=8 * context.length * channels,
        saved_once=2 * channels,
        working=_scan_working(context.length, channels),
    )
    return cost_with_maps(channels, settings, context, recurrence)


RG_LRU = register_channels(
    "rg_lru",
    "real-gated linear recurrent unit: channels decay by a learned rate and a gate of the input",
    "u = conv(W x); r_t = σ(W_r u_t + b_r); i_t = σ(W_i u_t + b_i); a_t = σ(Λ)^(8 r_t); "
    "h_t = a_t⊗h_{t−1} + √(1−a_t²)⊗i_t⊗u_t; y_t = W_o (h_t ⊗ gelu(W_g x_t)); W_r and W_i by blocks",
    "De et al. 2024 (Griffin), section 2.4",
    _rg_lru,
    HEADS,
    HEAD_WIDTH,
    replace(
        SHORT_CONV,
        default=4,
        meaning="taps of a causal convolution of each channel of what is mapped; 0 for none",
    ),
    gate_parameter("gelu"),
)
