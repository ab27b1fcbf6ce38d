"""The blocks whose state is a matrix for each head, written by keys and values and read by queries.

The state follows a linear recurrence, so that training computes chunks of positions by products and hands the
state from chunk to chunk. They are causal in every model. What papers put around such a recurrence is said
by parameters that all of these blocks have: a short convolution, a normalisation of each head, a gate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .attention import HEAD_WIDTH, HEADS
from .registry import register
from .spec import (
    UNBOUNDED,
    Cost,
    CostContext,
    Parameter,
    Reach,
    Role,
    Settings,
    Spec,
    as_int,
    as_word,
)

MAX_CHUNK_LENGTH = 64
"""A longer sequence is computed in chunks of about one size, none longer than this."""


def chunk_shape(length: int) -> tuple[int, int]:
    """In how many chunks a sequence is computed, and how long each is; the last may end behind it."""
    count = max(1, -(-length // MAX_CHUNK_LENGTH))
    return count, -(-length // count)


SHORT_CONV = Parameter(
    name="short_conv",
    kind="integer",
    default=0,
    low=0,
    high=64,
    meaning="taps of a causal convolution of each channel of queries, keys and values, with SiLU; 0 for none",
)


def head_norm_parameter(default: str) -> Parameter:
    """Which normalisation stands behind each head."""
    return Parameter(
        name="head_norm",
        kind="word",
        default=default,
        words=("none", "rms"),
        meaning="normalisation of what each head gives, with gains that heads share",
    )


def output_gate_parameter(default: str) -> Parameter:
    """Which gate stands before the last map."""
    return Parameter(
        name="output_gate",
        kind="word",
        default=default,
        words=("none", "silu", "sigmoid"),
        meaning="what heads give is multiplied by this of a map of the input",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrenceCost:
    """What a recurrence costs on one sequence, the maps around it left out; `window` is its state."""

    parameters: int = 0
    flops: int = 0
    window: int
    saved: int
    saved_once: int = 0


def cost_with_maps(
    settings: Settings, context: CostContext, recurrence: RecurrenceCost, *, raw: bool
) -> Cost:
    """The recurrence with the maps in front of it and behind it, and with what stands between them.

    Saved are, of a convolution, its padded input and its output; of maps as they are, where the recurrence
    keeps them `raw`; of a normalisation, its input before and after it is divided, and by what; of a gate,
    both of its factors and its map; and the input of the last map.
    """
    length, width = context.length, context.width
    inner = as_int(settings, "heads") * as_int(settings, "head_width")
    taps, plane = as_int(settings, "short_conv"), length * inner
    normed, gated = as_word(settings, "head_norm") != "none", as_word(settings, "output_gate")
    maps = 4 + (gated != "none")
    saved = recurrence.saved + plane
    if taps:
        saved += 3 * (length + taps - 1) * inner + 3 * plane
    if raw:
        saved += 3 * plane
    if normed:
        saved += 2 * plane + length * as_int(settings, "heads")
    if gated != "none":
        saved += {"silu": 3, "sigmoid": 2}[gated] * plane
    return Cost(
        parameters=maps * width * inner
        + 3 * taps * inner
        + normed * as_int(settings, "head_width")
        + recurrence.parameters,
        flops=2 * length * maps * width * inner + recurrence.flops,
        window=recurrence.window + 3 * max(0, taps - 1) * inner,
        saved=saved,
        saved_once=recurrence.saved_once,
    )


def chunked_cost(length: int, *, heads: int, keys: int, values: int, decays: str = "none") -> RecurrenceCost:
    """What chunks of a recurrence cost whose decays are "none", "fixed" for each head, or "learned".

    Saved are queries, keys and values in chunks, the weights of each chunk, what chunks write, and the states
    before them that are sums of it; of decays also the scores, the decay of each pair and position, and what
    was multiplied by it.
    """
    count, size = chunk_shape(length)
    states, pairs = count - 1, heads * count * size**2
    sums = max(0, states - 1)  # of what chunks write: the states before all but the first two
    saved = heads * count * size * (2 * keys + values) + pairs + (states + sums) * heads * keys * values
    once = 0
    if decays != "none":
        saved += 2 * states * heads * size * keys
        of_decays = pairs + 2 * states * heads * size
        if decays == "learned":
            saved += pairs + of_decays + sums * heads
            once = (size**2 + 3) // 4
        else:
            once = of_decays + sums * heads
    return RecurrenceCost(
        flops=2 * heads * count * size**2 * (keys + values) + 4 * states * heads * size * keys * values,
        window=heads * keys * values,
        saved=saved,
        saved_once=once,
    )


def _reach(_settings: Settings, _context: CostContext) -> Reach:
    """All that came before, in a bidirectional model too."""
    return Reach(left=UNBOUNDED, right=0)


def _register_recurrence(
    name: str,
    summary: str,
    equation: str,
    source: str,
    cost: Callable[[Settings, CostContext], Cost],
    *own: Parameter,
    head_norm: str,
    output_gate: str,
) -> Spec:
    around = (SHORT_CONV, head_norm_parameter(head_norm), output_gate_parameter(output_gate))
    return register(
        Spec(
            name=name,
            role=Role.MIXER,
            parameters=(HEADS, HEAD_WIDTH, *own, *around),
            summary=summary,
            equation=equation,
            source=source,
            cost=cost,
            reach=_reach,
        )
    )


def _linear_attn(settings: Settings, context: CostContext) -> Cost:
    """The recurrence with one value more, which counts; saved are what is divided and by what."""
    heads, head_width = as_int(settings, "heads"), as_int(settings, "head_width")
    count, size = chunk_shape(context.length)
    found = chunked_cost(context.length, heads=heads, keys=head_width, values=head_width + 1)
    divided = count * size * heads * (head_width + 1) + context.length * heads
    recurrence = RecurrenceCost(flops=found.flops, window=found.window, saved=found.saved + divided)
    return cost_with_maps(settings, context, recurrence, raw=True)


LINEAR_ATTN = _register_recurrence(
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
