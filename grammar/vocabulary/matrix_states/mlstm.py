"""The matrix memory of the xLSTM: exponential gates, and a sum of keys by which what is read is divided."""

from __future__ import annotations

from ..spec import Parameter
from .recurrent_heads import (
    register_recurrence,
)

FORGET = Parameter(
    name="forget",
    kind="word",
    default="sigmoid",
    words=("sigmoid", "exp"),
    meaning="what the forget gate is of its map",
)


MLSTM = register_recurrence(
    "mlstm",
    "matrix memory with exponential gates, the one of the xLSTM",
    "C_t = f_t C_{t−1} + i_t k_t v_tᵀ; n_t = f_t n_{t−1} + i_t k_t; i_t = exp(w_i x_t + b_i), "
    "f_t = σ(w_f x_t + b_f), or exp; y_t = concat_h norm(C_tᵀ q_t / max(|n_tᵀ q_t|, 1)) ⊗ σ(W_g x_t) · W_o",
    "Beck et al. 2024 (xLSTM), section 2.3, without projections around it; keys are divided by √head_width",
    lambda _settings, heads, width: heads * (width * (width + 1) + 1),
    FORGET,
    head_norm="rms",
    output_gate="sigmoid",
)
