"""The delta rule with a decay for each channel of keys."""

from __future__ import annotations

from ..spec import Cost, CostContext, Settings, as_int, as_word
from .recurrent_heads import (
    RecurrenceCost,
    VectorChunks,
    cost_with_maps,
    register_recurrence,
)

RWKV_RANK = 32
"""The width between the two maps to the decays of `rwkv7`, and to its learning rates."""


def _unit(settings: Settings) -> bool:
    """Whether queries and keys are divided by their length."""
    return as_word(settings, "qk_norm") != "none"


def _kda(settings: Settings, context: CostContext) -> Cost:
    """Maps to the strength of each head and to a decay for each channel, and the rule.

    Saved are the strength, what is between the maps, and three steps of the decays; and what every chunk
    keeps: both decays of each channel, queries, keys and what is read before and after it is multiplied by
    them, what is solved, the triangle and the weights; and of each chunk but the first what it writes, and
    the state before it, twice.
    """
    heads, head_width, length = as_int(settings, "heads"), as_int(settings, "head_width"), context.length
    inner, width = heads * head_width, context.width
    chunks = VectorChunks.of(settings, context)
    maps = width * heads + width * head_width + head_width * inner
    saved = length * (heads + head_width + (3 + 2 * _unit(settings)) * inner)
    saved += 10 * chunks.plane + 2 * chunks.pairs + chunks.states * (2 * chunks.square + chunks.size * inner)
    return cost_with_maps(
        settings,
        context,
        RecurrenceCost(
            parameters=maps + heads + inner,
            flops=2 * length * maps
            + 6 * chunks.pairs * head_width
            + 6 * chunks.states * chunks.size * chunks.square,
            window=chunks.square,
            saved=saved,
            saved_once=heads,
            positions=chunks.positions,
        ),
        raw=True,
    )


KDA = register_recurrence(
    "kda",
    "Kimi delta attention: the delta rule, in which each channel of the keys decays by a gate of the input",
    "S_t = (I − β_t k_t k_tᵀ) diag(α_t) S_{t−1} + β_t k_t v_tᵀ, β_t = σ(W_β x_t), "
    "α_t = exp(−min(exp(A_h) softplus(W₂ W₁ x_t + b), 5)); "
    "y_t = concat_h norm(S_tᵀ q_t / √head_width) ⊗ σ(W_g x_t) · W_o",
    "Kimi Team 2025 (Kimi Linear), section 3, with a gate of full rank; decays of fla's safe gate",
    _kda,
    short_conv=4,
    qk_norm="l2",
    head_norm="rms",
    output_gate="sigmoid",
)


def _rwkv7(settings: Settings, context: CostContext) -> Cost:
    """Maps to decays and to learning rates, weights of channels, and the rule with a second key.

    Saved are what is between the maps, eight steps of gates, keys and the bonus, and two of each head; and
    what chunks keep, as of `kda`, with the second key, its values and their weights.
    """
    heads, head_width, length = as_int(settings, "heads"), as_int(settings, "head_width"), context.length
    inner, width = heads * head_width, context.width
    chunks = VectorChunks.of(settings, context)
    maps = 2 * RWKV_RANK * (width + inner)
    saved = length * (2 * RWKV_RANK + 2 * heads + (8 + 2 * _unit(settings)) * inner)
    saved += 14 * chunks.plane + 4 * chunks.pairs + chunks.states * (2 * chunks.square + chunks.size * inner)
    return cost_with_maps(
        settings,
        context,
        RecurrenceCost(
            parameters=maps + 5 * inner,
            flops=2 * length * maps
            + 14 * chunks.pairs * head_width
            + 8 * chunks.states * chunks.size * chunks.square,
            window=chunks.square,
            saved=saved,
            positions=length,
        ),
        raw=True,
    )


RWKV7 = register_recurrence(
    "rwkv7",
    "generalised delta rule: decays, learning rates and keys that are removed and written, by channel",
    "S_t = (diag(w_t) − (a_t ⊗ κ_t) κ_tᵀ) S_{t−1} + k̃_t v_tᵀ, w_t = exp(−e^(−½) σ(W₂ tanh(W₁ x_t) + b)), "
    "a_t = σ(W₄ W₃ x_t + c), κ_t = k_t ⊗ ξ of length one, k̃_t = k_t ⊗ (1 + (a_t − 1) ⊗ η); "
    "y_t = concat_h norm(S_tᵀ q_t + (ρ · q_t ⊗ k̃_t) v_t) ⊗ σ(W_g x_t) · W_o",
    "Peng et al. 2025 (RWKV-7), equations 13 to 20, without token shift and values of the first "
    "layer; the bonus within the norm",
    _rwkv7,
    head_norm="rms",
    output_gate="sigmoid",
)
