"""Channels with several numbers each as their state, which decay and are written as the input selects."""

from __future__ import annotations

from dataclasses import replace

from ..spec import Parameter, as_int
from .recurrent_channels import (
    CHANNELS,
    SHORT_CONV,
    gate_parameter,
    register_channels,
)

MAMBA = register_channels(
    "mamba",
    "selective state space: every channel has a state whose steps, keys and queries are of the input",
    "u = silu(conv(W x)); Δ_t = softplus(W₂ W₁ u_t + b); "
    "h_t = a_t ⊗ h_{t−1} + (Δ_t ⊗ u_t) (W_B u_t)ᵀ, a_t = exp(−exp(A) Δ_t), "
    "if negative 2 exp(−exp(A) Δ_t) − 1; "
    "y_t = W_o ((h_t W_C u_t + D ⊗ u_t) ⊗ silu(W_g x_t))",
    "Gu and Dao 2023 (Mamba), sections 3.2 to 3.6; negative: Grazzi et al. 2025",
    lambda settings: as_int(settings, "channels") * as_int(settings, "state"),
    CHANNELS,
    Parameter(
        name="state", kind="integer", default=16, low=1, high=4096, meaning="numbers of the state a channel"
    ),
    Parameter(
        name="negative",
        kind="boolean",
        default=False,
        meaning="whether a state is multiplied by −1 to 1 at each position, instead of 0 to 1",
    ),
    replace(
        SHORT_CONV, default=4, meaning="taps of a causal convolution of each channel, with SiLU; 0 for none"
    ),
    gate_parameter("silu"),
    convolved=lambda settings: as_int(settings, "channels"),
)
