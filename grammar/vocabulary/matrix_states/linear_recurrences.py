"""Heads whose state is a sum of keys by values, kept or decayed: the plain ones, and those with gates."""

from __future__ import annotations

from dataclasses import replace

from ..spec import Cost, CostContext, Parameter, Settings, as_bool, as_int, as_word
from .recurrent_heads import (
    RecurrenceCost,
    VectorChunks,
    chunk_shape,
    chunked_cost,
    cost_with_maps,
    head_rates_cost,
    longest_chunk,
    register_recurrence,
)

GATE_RANK, GATE_TEMPERATURE = 16, 16.0
"""The width between the two maps to the decays of `gla`, and the root of them that is taken."""


def _linear_attn(settings: Settings, context: CostContext) -> Cost:
    """The recurrence with one value more, which counts; saved are what is divided and by what."""
    heads, head_width = as_int(settings, "heads"), as_int(settings, "head_width")
    count, size = chunk_shape(context.length, longest_chunk(head_width))
    found = chunked_cost(context.length, heads=heads, keys=head_width, values=head_width + 1)
    divided = count * size * heads * (head_width + 1) + context.length * heads
    if as_word(settings, "qk_norm") != "none":  # features are of what is normalised
        divided += 2 * context.length * heads * head_width
    recurrence = replace(found, saved=found.saved + divided, positions=context.length)
    return cost_with_maps(settings, context, recurrence, raw=True)


LINEAR_ATTN = register_recurrence(
    "linear_attn",
    "attention without a softmax: positive features of queries and keys, and a state of one size",
    "S_t = S_{t−1} + φ(k_t) v_tᵀ; z_t = z_{t−1} + φ(k_t); "
    "y_t = concat_h S_tᵀ φ(q_t) / (z_tᵀ φ(q_t) + 10⁻⁶) · W_o",
    "Katharopoulos et al. 2020, equations 9 to 12",
    _linear_attn,
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


def _retention(settings: Settings, context: CostContext) -> Cost:
    """The recurrence with fixed decays; of a rotation sines and cosines are saved."""
    heads, head_width, length = as_int(settings, "heads"), as_int(settings, "head_width"), context.length
    found = chunked_cost(length, heads=heads, keys=head_width, values=head_width, decays=True)
    angles = length * head_width if as_bool(settings, "rotate") else 0
    recurrence = replace(found, saved_once=found.saved_once + angles)
    return cost_with_maps(settings, context, recurrence, raw=False)


def _check_rotation(settings: Settings) -> str | None:
    """What is wrong with heads that are rotated, or None."""
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
    _retention,
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


def _gla(settings: Settings, context: CostContext) -> Cost:
    """Maps to a decay for each channel, and the recurrence.

    Saved are, of the maps, what is between them, what softplus is of, and what it gives; in chunks queries,
    keys, values, both decays of each channel and what is multiplied by them, the weights, and of states what
    is written and what is left of it, before and after it decays.
    """
    heads, head_width = as_int(settings, "heads"), as_int(settings, "head_width")
    length, inner = context.length, heads * head_width
    chunks = VectorChunks.of(settings, context)
    square, sums = chunks.square, max(0, chunks.states - 1)
    recurrence = RecurrenceCost(
        parameters=context.width * GATE_RANK + GATE_RANK * inner + inner,
        flops=2 * length * GATE_RANK * (context.width + inner)
        + 4 * chunks.pairs * head_width
        + 4 * chunks.states * chunks.size * square,
        window=square,
        saved=7 * chunks.plane
        + chunks.pairs
        + length * (GATE_RANK + 2 * inner)
        + chunks.states * (2 * square + inner)
        + sums * (square + inner),
        positions=chunks.positions,
    )
    return cost_with_maps(settings, context, recurrence, raw=False)


GLA = register_recurrence(
    "gla",
    "gated linear attention: each channel of the keys decays by a gate of the input",
    "S_t = diag(α_t) S_{t−1} + k_t v_tᵀ, α_t = max(σ(W₂ W₁ x_t + b)^(1/16), e⁻⁵); "
    "y_t = concat_h norm(S_tᵀ q_t / √head_width) ⊗ silu(W_g x_t) · W_o",
    "Yang et al. 2024 (Gated Linear Attention Transformers), sections 4.1 to 4.4; keys as wide as values",
    _gla,
    head_norm="rms",
    output_gate="silu",
)


def _ssd(settings: Settings, context: CostContext) -> Cost:
    """The recurrence with learned decays and shared queries and keys, and a rate and a skip of each head.

    Saved are the logarithms of decays, queries and keys that are normalised, and the states before all chunks
    but the first; what heads give is what a norm, a gate or the last map saves. While weights of pairs are
    computed anew, they are held with their decays and one step between, and values with their gradients.
    """
    heads, state, length = as_int(settings, "heads"), as_int(settings, "state"), context.length
    inner = heads * as_int(settings, "head_width")
    count, size = chunk_shape(length, longest_chunk(state))
    rates = head_rates_cost(heads, context)
    unit = as_word(settings, "qk_norm") != "none"
    recurrence = RecurrenceCost(
        parameters=rates.parameters + heads,
        flops=2 * count * size**2 * (state + inner) + 4 * (count - 1) * size * state * inner + rates.flops,
        window=state * inner,
        saved=rates.saved + length * heads + (count - 1) * state * inner + 2 * unit * length * state,
        saved_once=rates.saved_once,
        working=3 * heads * count * size**2 + 2 * count * size * inner,
        positions=length,
        channels=2 * state + inner,
        key_heads=1,
    )
    return cost_with_maps(settings, context, recurrence, raw=True)


SSD = register_recurrence(
    "ssd",
    "state space duality: heads that share queries and keys, each with a decay by the input",
    "Δ_t = softplus(W_Δ x_t + b); S_t = exp(−exp(A_h) Δ_t) S_{t−1} + Δ_t k_t v_tᵀ; "
    "y_t = concat_h norm(S_tᵀ q_t + D_h v_t) ⊗ silu(W_g x_t) · W_o",
    "Dao and Gu 2024 (Mamba-2), sections 6 and 7; the norm is of each head and before the gate",
    _ssd,
    Parameter(
        name="state",
        kind="integer",
        default=64,
        low=1,
        high=4096,
        meaning="width of queries and keys, which all heads share",
    ),
    short_conv=4,
    head_norm="rms",
    output_gate="silu",
)
