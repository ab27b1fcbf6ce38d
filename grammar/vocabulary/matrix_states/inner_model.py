"""Heads whose state is the weights of a model that learns while it reads."""

from __future__ import annotations

from ..spec import Cost, CostContext, Parameter, Settings, as_int
from .recurrent_heads import RecurrenceCost, cost_with_maps, register_recurrence


def _ttt(settings: Settings, context: CostContext) -> Cost:
    """A map to the rate of each head, a linear map with a layer norm for each, and its gradients.

    The state is the weights now, and in front of the mini-batch, and the place in it. Saved are at each
    position nine steps of what the inner model gives and learns from, both rows with a one beside them, the
    rate, twice, and what norms divide by; of each mini-batch the weights in front of it and the products of
    queries and keys. For a while the gradients of the four rows and of a mini-batch's part of them hold nine
    numbers of each channel and position, beside that of what the block gives.
    """
    heads, head_width, length = as_int(settings, "heads"), as_int(settings, "head_width"), context.length
    size, rows = as_int(settings, "batch"), heads * length
    whole, rest = divmod(length, size)
    pairs, batches = heads * (whole * size**2 + rest**2), whole + (rest > 0)
    weights, learnt = heads * (head_width + 1) * head_width, length - (rest or size)
    maps = context.width * heads
    recurrence = RecurrenceCost(
        parameters=maps + heads + weights + 2 * heads * head_width,
        flops=2 * length * maps
        + (4 * length + 2 * max(0, learnt)) * weights
        + 2 * pairs * (2 * head_width + 1),
        window=heads * (head_width + 1) * (2 * head_width + 1),
        saved=rows * (11 * head_width + 7) + pairs + batches * weights,
        working=9 * rows * head_width + length * context.width,
        positions=length,
    )
    return cost_with_maps(settings, context, recurrence, raw=False)


TTT = register_recurrence(
    "ttt",
    "test-time training: the state is a linear model that learns values of keys by steps of its gradient",
    "W_t = W_τ − Σ_{τ<s≤t} η_s [k_s ; 1] g_sᵀ, g_s = ∂ ½|k_s + LN(u) − v_s|² / ∂u at u = W_τᵀ [k_s ; 1], τ "
    "the end of the last mini-batch, η_s = σ(W_η x_s + b) / head_width; "
    "y_t = concat_h (q_t + LN(W_tᵀ [q_t ; 1])) · W_o",
    "Sun et al. 2024 (Learning to Learn at Test Time), sections 2.1 to 2.7, TTT-Linear without turned keys",
    _ttt,
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
