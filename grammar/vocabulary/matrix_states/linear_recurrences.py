"""Heads whose state is a sum of keys by values, kept or decayed: the plain ones, and those with gates."""

from __future__ import annotations

from ..spec import Parameter, Settings, as_bool, as_int
from .recurrent_heads import (
    register_recurrence,
    square_state,
)

LINEAR_ATTN = register_recurrence(
    "linear_attn",
    "attention without a softmax: positive features of queries and keys, and a state of one size",
    "S_t = S_{t−1} + φ(k_t) v_tᵀ; z_t = z_{t−1} + φ(k_t); "
    "y_t = concat_h S_tᵀ φ(q_t) / (z_tᵀ φ(q_t) + 10⁻⁶) · W_o",
    "Katharopoulos et al. 2020, equations 9 to 12",
    lambda _settings, heads, width: heads * width * (width + 1),
    Parameter(
        name="feature",
        kind="word",
        default="elu",
        words=("elu", "relu"),
        meaning="the features φ: elu(x) + 1 or relu(x)",
    ),
    head_norm="none",
    output_gate="none",
)


def _check_rotation(settings: Settings) -> str | None:
    """Return what is wrong with the rotation of heads, or None."""
    width = as_int(settings, "head_width")
    if as_bool(settings, "rotate") and width % 2:
        return f"rotate=true turns channels two by two: expected an even head_width, got {width}"
    return None


RETENTION = register_recurrence(
    "retention",
    "linear attention with a fixed decay for each head, queries and keys rotated by their place",
    "S_t = γ_h S_{t−1} + (R^t k_t) v_tᵀ, γ_h = 1 − 2^(−5−h); "
    "y_t = concat_h norm(S_tᵀ R^t q_t / √head_width) ⊗ silu(W_g x_t) · W_o",
    "Sun et al. 2023, equations 5 to 8; root mean square for its group norm",
    square_state,
    Parameter(
        name="rotate",
        kind="boolean",
        default=True,
        meaning="whether queries and keys are turned by angles that grow with their place",
    ),
    head_norm="rms",
    output_gate="silu",
    check=_check_rotation,
)


GLA = register_recurrence(
    "gla",
    "gated linear attention: each channel of the keys decays by a gate of the input",
    "S_t = diag(α_t) S_{t−1} + k_t v_tᵀ, α_t = max(σ(W₂ W₁ x_t + b)^(1/16), e⁻⁵); "
    "y_t = concat_h norm(S_tᵀ q_t / √head_width) ⊗ silu(W_g x_t) · W_o",
    "Yang et al. 2024 (Gated Linear Attention Transformers), sections 4.1 to 4.4; keys as wide as values",
    square_state,
    head_norm="rms",
    output_gate="silu",
)


SSD = register_recurrence(
    "ssd",
    "state space duality: heads that share queries and keys, each with a decay by the input",
    "Δ_t = softplus(W_Δ x_t + b); S_t = exp(−exp(A_h) Δ_t) S_{t−1} + Δ_t k_t v_tᵀ; "
    "y_t = concat_h norm(S_tᵀ q_t + D_h v_t) ⊗ silu(W_g x_t) · W_o",
    "Dao and Gu 2024 (Mamba-2), sections 6 and 7; the norm is of each head and before the gate",
    lambda settings, heads, width: as_int(settings, "state") * heads * width,
    Parameter(
        name="state",
        kind="integer",
        default=64,
        low=1,
        high=4096,
        meaning="width of queries and keys, which all heads share",
    ),
    short_conv=4,
    convolved=lambda settings, inner: 2 * as_int(settings, "state") + inner,
    head_norm="rms",
    output_gate="silu",
)
