"""The blocks whose state is a matrix for each head, written by keys and values and read by queries.

The state follows a linear recurrence, so that training computes chunks of positions by products and hands the
state from chunk to chunk. They are causal in every model. What papers put around such a recurrence is said
by parameters that all of these blocks have: a short convolution, a normalisation of each head, a gate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..attention import HEAD_WIDTH, HEADS
from ..registry import register
from ..spec import (
    UNBOUNDED,
    Cost,
    CostContext,
    Parameter,
    Reach,
    Role,
    Settings,
    Spec,
    Working,
    as_int,
    as_word,
)

MAX_CHUNK_LENGTH, MAX_VECTOR_CHUNK_LENGTH = 64, 16
"""A longer sequence is computed in chunks of about one size, none longer than this.

With one decay for a head, or none; and with one for each channel of keys.
"""


def chunk_shape(length: int, most: int) -> tuple[int, int]:
    """In how many chunks of at most so many a sequence is computed, and how long each is.

    The last may end behind the sequence.
    """
    count = max(1, -(-length // most))
    return count, -(-length // count)


def longest_chunk(keys: int) -> int:
    """The most positions of a chunk by products of pairs, each head's keys being so wide."""
    return min(MAX_CHUNK_LENGTH, max(32, keys))


LEAST_LOG_DECAY = -5.0
"""A channel of keys keeps at least the exponential of this, so that chunks stay within single precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorChunks:
    """What chunks have that divide by decays: `states` after the first, `pairs`, numbers in a `plane`.

    A `square` is the state of all heads; a chunk has `size` positions.
    """

    size: int
    states: int
    pairs: int
    plane: int
    square: int

    @classmethod
    def of(cls, settings: Settings, context: CostContext) -> VectorChunks:
        """Those of a block on one sequence."""
        heads, head_width = as_int(settings, "heads"), as_int(settings, "head_width")
        count, size = chunk_shape(context.length, MAX_VECTOR_CHUNK_LENGTH)
        return cls(
            size=size,
            states=count - 1,
            pairs=heads * count * size**2,
            plane=count * size * heads * head_width,
            square=heads * head_width**2,
        )

    @property
    def positions(self) -> int:
        """Of all chunks, the last of which may end behind the sequence."""
        return (self.states + 1) * self.size


SHORT_CONV = Parameter(
    name="short_conv",
    kind="integer",
    default=0,
    low=0,
    high=64,
    meaning="taps of a causal convolution of each channel of queries, keys and values, with SiLU; 0 for none",
)


def qk_norm_parameter(default: str) -> Parameter:
    """Which normalisation queries and keys have."""
    return Parameter(
        name="qk_norm",
        kind="word",
        default=default,
        words=tuple(sorted(("none", "l2"), key=default.__ne__)),
        meaning="normalisation of the queries and keys of each head: l2 is to a length of one",
    )


def head_norm_parameter(default: str) -> Parameter:
    """Which normalisation stands behind each head."""
    return Parameter(
        name="head_norm",
        kind="word",
        default=default,
        words=tuple(sorted(("none", "rms"), key=default.__ne__)),
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
    """What a recurrence costs on one sequence, the maps around it left out; `window` is its state.

    For a while it holds `working` numbers beside what is saved. What heads give stands in `positions`, the
    last of which may be behind the sequence. Queries, keys and values have so many `channels` together, and
    queries and keys so many `key_heads`; 0 is as of values. A position `writes` so many keys.
    """

    parameters: int = 0
    flops: int = 0
    window: int
    saved: int
    saved_once: int = 0
    working: int = 0
    positions: int = 0
    channels: int = 0
    key_heads: int = 0
    writes: int = 1


def cost_with_maps(
    settings: Settings, context: CostContext, recurrence: RecurrenceCost, *, raw: bool
) -> Cost:
    """The recurrence with the maps in front of it and behind it, and with what stands between them.

    Saved are, of a convolution, its input; of maps as they are, where the recurrence keeps them `raw`; of a
    normalisation alone, its input before and after it is divided, and by what; of a gate, what heads give
    and its map; and the input of the last map. The gradients of a gate and of what it is of hold six numbers
    of each channel and position for a while, with a norm eight.
    """
    length, width = context.length, context.width
    inner = as_int(settings, "heads") * as_int(settings, "head_width")
    taps, plane = as_int(settings, "short_conv"), length * inner
    normed, gated = as_word(settings, "head_norm") != "none", as_word(settings, "output_gate")
    channels = recurrence.channels or 3 * inner
    mapped = width * (channels + (1 + (gated != "none")) * inner)
    saved = recurrence.saved + plane
    if taps:
        saved += length * channels
    unit = as_word(settings, "qk_norm") != "none"
    if raw or unit:
        saved += length * channels
    if unit:
        saved += (1 + recurrence.writes) * length * (recurrence.key_heads or as_int(settings, "heads"))
    if gated != "none":
        saved += recurrence.positions * inner + plane
    elif normed:
        saved += plane + recurrence.positions * inner + length * as_int(settings, "heads")
    gating = (6 + 2 * normed) * plane if gated != "none" else 0
    return Cost(
        parameters=mapped + taps * channels + normed * as_int(settings, "head_width") + recurrence.parameters,
        flops=2 * length * mapped + recurrence.flops,
        window=recurrence.window + max(0, taps - 1) * channels,
        saved=saved,
        saved_once=recurrence.saved_once,
        working=Working(numbers=max(recurrence.working, gating)),
    )


def chunked_cost(length: int, *, heads: int, keys: int, values: int, decays: bool = False) -> RecurrenceCost:
    """What chunks of a recurrence cost, with a fixed decay for each head or without.

    Saved are queries, keys and values in chunks, the weights of each chunk, what chunks write, and the states
    before them that are sums of it; of decays what was multiplied by them, and once those of each pair and
    position.
    """
    count, size = chunk_shape(length, longest_chunk(keys))
    states, pairs = count - 1, heads * count * size**2
    sums = max(0, states - 1)  # of what chunks write: the states before all but the first two
    saved = count * size * heads * (2 * keys + values) + pairs
    saved += (states + sums) * heads * keys * values
    once = 0
    if decays:
        saved += 2 * states * heads * size * keys
        once = pairs + 2 * states * heads * size + sums * heads
    return RecurrenceCost(
        flops=2 * count * size**2 * heads * (keys + values) + 4 * states * heads * size * keys * values,
        window=heads * keys * values,
        saved=saved,
        saved_once=once,
        positions=count * size,
    )


def _reach(_settings: Settings, _context: CostContext) -> Reach:
    """All that came before, in a bidirectional model too."""
    return Reach(left=UNBOUNDED, right=0)


def register_recurrence(
    name: str,
    summary: str,
    equation: str,
    source: str,
    cost: Callable[[Settings, CostContext], Cost],
    *own: Parameter,
    short_conv: int = 0,
    qk_norm: str = "none",
    head_norm: str,
    output_gate: str,
    least_head_width: int = 1,
    check: Callable[[Settings], str | None] | None = None,
    compiled_for_each_length: Callable[[Settings], bool] | None = None,
) -> Spec:
    """A block of this family, with its own parameters between those of heads and those that all have."""
    around = (
        replace(SHORT_CONV, default=short_conv),
        qk_norm_parameter(qk_norm),
        head_norm_parameter(head_norm),
        output_gate_parameter(output_gate),
    )
    return register(
        Spec(
            name=name,
            role=Role.MIXER,
            parameters=(HEADS, replace(HEAD_WIDTH, low=least_head_width), *own, *around),
            summary=summary,
            equation=equation,
            source=source,
            cost=cost,
            reach=_reach,
            check=check,
            compiled_for_each_length=compiled_for_each_length,
        )
    )


def head_rates_cost(heads: int, context: CostContext) -> RecurrenceCost:
    """How fast heads forget: a map with biases, and rates; saved are what it maps to, steps and rates."""
    return RecurrenceCost(
        parameters=context.width * heads + 2 * heads,
        flops=2 * context.length * context.width * heads,
        window=0,
        saved=2 * context.length * heads,
        saved_once=heads,
    )
