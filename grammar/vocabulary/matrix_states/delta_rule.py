"""The delta rule: a state that forgets what its keys held before they are written anew."""

from __future__ import annotations

from ..spec import Cost, CostContext, Parameter, Settings, as_bool, as_int
from .recurrent_heads import (
    RecurrenceCost,
    chunk_shape,
    cost_with_maps,
    head_rates_cost,
    register_recurrence,
)

MAX_DELTA_CHUNK_LENGTH = 32
"""A longer sequence is computed in chunks of about one size, none longer than this."""


def _delta(settings: Settings, context: CostContext, writes: int = 1) -> Cost:
    """A map to the strength of each write, and the rule; the solving of triangular systems is left out.

    Saved are the strength, twice; in chunks queries, keys, values, keys times strength, what is solved, the
    triangle and the weights; and of each chunk but the first what it writes, and the state before it. A gate
    adds the scores of both and their decay, that of each position, and queries and keys with theirs. While
    the gradient of what is solved is computed, it is held, those of the triangle, whole and below the
    diagonal, and that of the weights.
    """
    heads, head_width, length = as_int(settings, "heads"), as_int(settings, "head_width"), context.length
    count, size = chunk_shape(length, max(1, MAX_DELTA_CHUNK_LENGTH // writes))
    states, rows, square = count - 1, heads * count * size, heads * head_width**2
    later, pairs, triangle = heads * states * size, rows * size * writes, rows * size * writes**2
    saved = rows * (head_width + writes * (5 * head_width + 1)) + writes * length * heads
    saved += triangle + pairs + later * writes * head_width + states * square
    parameters = writes * context.width * heads
    flops, once = 2 * length * parameters, (size**2 * writes + 3) // 4 if writes > 1 else 0
    flops += 2 * head_width * (triangle + 2 * pairs) + 2 * states * size * square * (1 + 2 * writes)
    if as_bool(settings, "gate"):
        rates = head_rates_cost(heads, context)
        parameters, flops, once = parameters + rates.parameters, flops + rates.flops, rates.saved_once
        once += ((size * writes) ** 2 + 3) // 4
        saved += rates.saved + 2 * triangle + pairs + rows * writes + max(0, states - 1) * heads
        saved += later * (head_width * (1 + writes) + writes)
    recurrence = RecurrenceCost(
        parameters=parameters,
        flops=flops,
        window=square,
        saved=saved,
        saved_once=once,
        working=2 * rows * writes * head_width + 2 * triangle + pairs,
        positions=count * size,
        channels=(1 + 2 * writes) * heads * head_width,
        writes=writes,
    )
    return cost_with_maps(settings, context, recurrence, raw=False)


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
    _delta,
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
    lambda settings, context: _delta(settings, context, as_int(settings, "n")),
    Parameter(
        name="n", kind="integer", default=2, low=1, high=16, meaning="steps of the delta rule a position"
    ),
    GATE,
    NEGATIVE,
    qk_norm="l2",
    head_norm="rms",
    output_gate="none",
)
