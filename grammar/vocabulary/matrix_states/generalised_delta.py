"""The delta rule with a decay for each channel of keys."""

from __future__ import annotations

from .recurrent_heads import (
    register_recurrence,
    square_state,
)

KDA = register_recurrence(
    "kda",
    "Kimi delta attention: the delta rule, in which each channel of the keys decays by a gate of the input",
    "S_t = (I − β_t k_t k_tᵀ) diag(α_t) S_{t−1} + β_t k_t v_tᵀ, β_t = σ(W_β x_t), "
    "α_t = exp(−min(exp(A_h) softplus(W₂ W₁ x_t + b), 5)); "
    "y_t = concat_h norm(S_tᵀ q_t / √head_width) ⊗ σ(W_g x_t) · W_o",
    "Kimi Team 2025 (Kimi Linear), section 3, with a gate of full rank; decays of fla's safe gate",
    square_state,
    short_conv=4,
    qk_norm="l2",
    head_norm="rms",
    output_gate="sigmoid",
)


RWKV7 = register_recurrence(
    "rwkv7",
    "generalised delta rule: decays, learning rates and keys that are removed and written, by channel",
    "S_t = (diag(w_t) − (a_t ⊗ κ_t) κ_tᵀ) S_{t−1} + k̃_t v_tᵀ, w_t = exp(−e^(−½) σ(W₂ tanh(W₁ x_t) + b)), "
    "a_t = σ(W₄ W₃ x_t + c), κ_t = k_t ⊗ ξ of length one, k̃_t = k_t ⊗ (1 + (a_t − 1) ⊗ η); "
    "y_t = concat_h norm(S_tᵀ q_t + (ρ · q_t ⊗ k̃_t) v_t) ⊗ σ(W_g x_t) · W_o",
    "Peng et al. 2025 (RWKV-7), equations 13 to 20, without token shift and values of the first "
    "layer; the bonus within the norm",
    square_state,
    head_norm="rms",
    output_gate="sigmoid",
)
