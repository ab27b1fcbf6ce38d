"""The delta rule: a state that forgets what its keys held before they are written anew."""

from __future__ import annotations

from ..spec import Parameter, as_int
from .recurrent_heads import (
    register_recurrence,
    square_state,
)

GATE = Parameter(
    name="gate",
    kind="boolean",
    default=False,
    meaning="whether the state of each head decays by a gate of the input",
)
NEGATIVE = Parameter(
    name="negative",
    kind="boolean",
    default=False,
    meaning="whether β goes to 2, so that eigenvalues of the state's transition go to −1",
)

DELTA = register_recurrence(
    "delta",
    "the delta rule: what a key holds in the state is moved towards its value",
    "S_t = a_t (I − β_t k_t k_tᵀ) S_{t−1} + β_t k_t v_tᵀ, β_t = σ(W_β x_t), twice that if negative; "
    "a_t = 1, with a gate exp(−exp(A_h) softplus(W_a x_t + b_h)); "
    "y_t = concat_h norm(S_tᵀ q_t / √head_width) · W_o",
    "Schlag et al. 2021; Yang et al. 2024 (Parallelizing Linear Transformers with the Delta Rule); "
    "gate: Yang, Kautz and Hatamizadeh 2025 (Gated Delta Networks); negative: Grazzi et al. 2025",
    square_state,
    GATE,
    NEGATIVE,
    qk_norm="l2",
    head_norm="rms",
    output_gate="none",
)

DELTA_PRODUCT = register_recurrence(
    "delta_product",
    "the delta rule with several keys and values at each position, one after the other",
    "S_tj = (I − β_tj k_tj k_tjᵀ) S_t,j−1 + β_tj k_tj v_tjᵀ, j = 1 … n, S_t0 = a_t S_{t−1,n}; β and a as of "
    "delta; y_t = concat_h norm(S_tnᵀ q_t / √head_width) · W_o",
    "Siems et al. 2025 (DeltaProduct), section 3",
    square_state,
    Parameter(
        name="n", kind="integer", default=2, low=1, high=16, meaning="steps of the delta rule a position"
    ),
    GATE,
    NEGATIVE,
    convolved=lambda settings, inner: (1 + 2 * as_int(settings, "n")) * inner,
    qk_norm="l2",
    head_norm="rms",
    output_gate="none",
)
