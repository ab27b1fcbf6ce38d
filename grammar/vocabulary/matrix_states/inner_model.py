"""Heads whose state is the weights of a model that learns while it reads."""

from __future__ import annotations

from ..spec import Parameter
from .recurrent_heads import register_recurrence

TTT = register_recurrence(
    "ttt",
    "test-time training: the state is a linear model that learns values of keys by steps of its gradient",
    "W_t = W_τ − Σ_{τ<s≤t} η_s [k_s ; 1] g_sᵀ, g_s = ∂ ½|k_s + LN(u) − v_s|² / ∂u at u = W_τᵀ [k_s ; 1], τ "
    "the end of the last mini-batch, η_s = σ(W_η x_s + b) / head_width; "
    "y_t = concat_h (q_t + LN(W_tᵀ [q_t ; 1])) · W_o",
    "Sun et al. 2024 (Learning to Learn at Test Time), sections 2.1 to 2.7, TTT-Linear without turned keys",
    lambda _settings, heads, width: heads * (width + 1) * (2 * width + 1),
    Parameter(
        name="batch",
        kind="integer",
        default=16,
        low=1,
        high=65536,
        meaning="positions of a mini-batch, whose gradients are all taken at the weights in front of it",
    ),
    head_norm="none",
    output_gate="none",
    least_head_width=4,  # a layer norm of two numbers leaves their order alone
    compiled_for_each_length=lambda _settings: True,
)
