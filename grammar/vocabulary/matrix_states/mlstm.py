"""The matrix memory of the xLSTM: exponential gates, and a sum of keys by which what is read is divided."""

from __future__ import annotations

from ..spec import Cost, CostContext, Parameter, Settings, as_int, as_word
from .recurrent_heads import (
    RecurrenceCost,
    chunk_shape,
    cost_with_maps,
    longest_chunk,
    register_recurrence,
)

FORGET = Parameter(
    name="forget",
    kind="word",
    default="sigmoid",
    words=("sigmoid", "exp"),
    meaning="what the forget gate is of its map",
)


def _mlstm(settings: Settings, context: CostContext) -> Cost:
    """A map to two gates of each head, and the recurrence with one value more, which adds keys up.

    Saved are two numbers of a sigmoid; in chunks queries, keys and values, products of queries and keys,
    what remains of each pair and both together; of each chunk but the first what remains, keys and queries
    times that, and the state before it; and what is read, and the three steps of what it is divided by.
    """
    heads, keys, length = as_int(settings, "heads"), as_int(settings, "head_width"), context.length
    values = keys + 1
    count, size = chunk_shape(length, longest_chunk(keys))
    states, pairs, positions = count - 1, heads * count * size**2, heads * count * size
    sums, later = max(0, states - 1), heads * states * size
    saved = positions * 2 * (keys + values) + 3 * pairs + 3 * length * heads + sums * heads
    saved += later * 2 * (keys + 1) + (states + sums) * heads * keys * values
    if as_word(settings, "forget") == "sigmoid":
        saved += 2 * length * heads
    return cost_with_maps(
        settings,
        context,
        RecurrenceCost(
            parameters=2 * context.width * heads + 2 * heads,
            flops=4 * length * context.width * heads
            + 2 * pairs * (keys + values)
            + 4 * states * heads * size * keys * values,
            window=heads * (keys * values + 1),
            saved=saved,
            saved_once=(size**2 + 3) // 4,
            positions=length,
        ),
        raw=False,
    )


MLSTM = register_recurrence(
    "mlstm",
    "matrix memory with exponential gates, the one of the xLSTM",
    "C_t = f_t C_{t−1} + i_t k_t v_tᵀ; n_t = f_t n_{t−1} + i_t k_t; i_t = exp(w_i x_t + b_i), "
    "f_t = σ(w_f x_t + b_f), or exp; y_t = concat_h norm(C_tᵀ q_t / max(|n_tᵀ q_t|, 1)) ⊗ σ(W_g x_t) · W_o",
    "Beck et al. 2024 (xLSTM), section 2.3, without projections around it; keys are divided by √head_width",
    _mlstm,
    FORGET,
    head_norm="rms",
    output_gate="sigmoid",
)
