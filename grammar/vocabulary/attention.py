"""The self-attention blocks of the vocabulary, and their windows.

Projection widths are parameters of the block, not fractions of the model's width. So an `sa` with 8 heads of
width 64 projects to 512 in a model of any width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .spec import (
    CostContext,
    Reach,
    Role,
    Settings,
    Spec,
    as_bool,
    as_float,
    as_int,
    as_word,
    boolean,
    define,
    integer,
    real,
    sees_everything,
    word,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The window of an attention block: the positions that each query sees.

    They are given as distances from the query, positive to the left and negative to the right. In a causal
    model there are `span` distances, from 1 on, or from 0 on if the window `includes_self`; otherwise the
    window reaches `span` positions to both sides. `ramp` belongs to an adaptive span; it is None for a fixed
    one.
    """

    span: int
    head_width: int
    causal: bool
    includes_self: bool
    relative: bool
    ramp: int | None
    pos_values: bool

    @property
    def max_distance(self) -> int:
        """Return the greatest distance from a query to a visible position on its left."""
        return self.span - 1 if self.causal and self.includes_self else self.span

    @property
    def min_distance(self) -> int:
        """Return the smallest distance to a visible position. To the right, distances are negative."""
        return (0 if self.includes_self else 1) if self.causal else -self.span

    @property
    def reach(self) -> Reach:
        """Return how many tokens on each side can affect an output, at the maximum of a learned span."""
        return Reach(left=self.max_distance, right=max(0, -self.min_distance))

    def numbers(self, heads: int) -> int:
        """Return how many numbers an attention block with this window caches while it generates.

        They are the keys and values of the past positions in the window.
        """
        return 2 * heads * self.head_width * self.max_distance

    @property
    def distance_count(self) -> int:
        """Return the number of positions that a query sees if the sequence is long enough."""
        return self.max_distance - self.min_distance + 1

    @property
    def shared_key(self) -> str:
        """Return the name under which blocks with equal windows share their position vectors."""
        itself = ", self=true" if self.causal and self.includes_self else ""
        return f"positions of span={self.span}, head_width={self.head_width}{itself}"


BUCKETS = 32
"""The number of distance buckets of each head with `pos=t5`."""

HEADS = integer("heads", "number of heads", (1, 1024), 8)
HEAD_WIDTH = integer("head_width", "width of one head", (1, 4096), 64)
ADAPTIVE = boolean("adaptive", "whether each head learns its span")
RAMP = integer("ramp", "length in tokens of the ramp at the end of an adaptive span", (2, 65536), 32)
SELF = boolean("self", "whether a causal span of relative positions includes the position itself")
POS_VALUES = boolean("pos_values", "whether position vectors are added to values as well as to keys")


def window_from_settings(settings: Settings, *, causal: bool) -> Window:
    """Return the window of a block with these settings; a span of 0 means no limit."""
    relative = "pos" not in settings or as_word(settings, "pos") == "relative"
    return Window(
        span=as_int(settings, "span"),
        head_width=as_int(settings, "head_width"),
        causal=causal,
        includes_self=as_bool(settings, "self") or not relative,
        relative=relative,
        ramp=as_int(settings, "ramp") if as_bool(settings, "adaptive") else None,
        pos_values=as_bool(settings, "pos_values"),
    )


def check_ramp(settings: Settings) -> str | None:
    """Return a message if `ramp` is set although the span is not `adaptive`, else None."""
    if as_int(settings, "ramp") != RAMP.default and not as_bool(settings, "adaptive"):
        return "ramp needs adaptive=true"
    return None


def _faults(settings: Settings) -> Iterator[str]:
    pos, span = as_word(settings, "pos"), as_int(settings, "span")
    heads, shared = as_int(settings, "heads"), as_int(settings, "kv_heads")
    if pos == "relative" and not span:
        yield "pos=relative needs a span: add span=512, for example"
    if as_bool(settings, "adaptive") and not span:
        yield "adaptive=true needs a span: add span=512, for example"
    if as_bool(settings, "self") and pos != "relative":
        yield "self=true needs pos=relative: with other positions, the span always includes the current token"
    if pos in ("alibi", "t5") and span:
        yield f"pos={pos} needs span=0"
    if pos == "relative" and as_float(settings, "logit_cap"):
        yield "logit_cap cannot be combined with pos=relative"
    if as_bool(settings, "pos_values") and pos != "relative":
        yield "pos_values=true needs pos=relative"
    if shared and heads % shared:
        yield f"kv_heads must divide heads: expected a divisor of {heads}, got {shared}"


def _check(settings: Settings) -> str | None:
    return next(_faults(settings), None) or check_ramp(settings) or check_turns(settings)


def odd_width_fault(settings: Settings, rotation: str, name: str = "head_width") -> str | None:
    """Return a message if the width `name` is odd, so that its channels cannot be rotated in pairs."""
    width = as_int(settings, name)
    if width % 2:
        return f"{rotation} rotates pairs of channels: expected an even {name}, got {width}"
    return None


def check_turns(settings: Settings) -> str | None:
    """Return a message if `pos=rope` rotates heads of an odd width, else None."""
    return odd_width_fault(settings, "pos=rope") if as_word(settings, "pos") == "rope" else None


def window_reach(settings: Settings, context: CostContext) -> Reach:
    """Return how many tokens to the left and to the right a block with a `span` sees."""
    return window_from_settings(settings, causal=context.causal).reach


def _reach(settings: Settings, context: CostContext) -> Reach:
    return (window_reach if as_int(settings, "span") else sees_everything)(settings, context)


def _key_value_heads(settings: Settings) -> int:
    return as_int(settings, "kv_heads") or as_int(settings, "heads")


def _state(settings: Settings, _context: CostContext) -> int:
    return 0 if as_int(settings, "span") else 2 * _key_value_heads(settings) * as_int(settings, "head_width")


def _window(settings: Settings, context: CostContext) -> int:
    window = window_from_settings(settings, causal=context.causal)
    return window.numbers(_key_value_heads(settings)) if window.span else 0


define(
    Spec(
        name="sa",
        role=Role.MIXER,
        parameters=(
            HEADS,
            HEAD_WIDTH,
            word(
                "pos",
                "relative: distance vectors added to keys; rope: rotated queries and keys; alibi: scores "
                "decreasing with distance; t5: a learned bias for each bucket of distances",
                ("none", "relative", "rope", "alibi", "t5"),
            ),
            integer("span", "sliding window: visible tokens on each side, 0 for all", (0, 65536), 0),
            ADAPTIVE,
            RAMP,
            SELF,
            POS_VALUES,
            real("temperature", "divisor of the scores in addition to √head_width", (1e-6, 1e6), 1.0),
            integer(
                "kv_heads",
                "number of key/value heads, each shared by equally many query heads; 0: as many as heads",
                (0, 1024),
                0,
            ),
            word(
                "qk_norm",
                "normalisation of each head's queries and keys, with gains shared by heads",
                ("none", "rms"),
            ),
            real("logit_cap", "cap c of scores: s becomes c tanh(s / c); 0 for none", (0.0, 1e6), 0.0),
        ),
        summary="multi-head softmax self-attention",
        equation="y = concat_h softmax(Q_h K_hᵀ / (√head_width · temperature)) V_h · W_o, without biases",
        source=(
            "Vaswani et al. 2017; widths of the program of Dowdell and Zhang 2019; "
            "positions and spans of Sukhbaatar et al. 2019; rope: Su et al. 2021; "
            "alibi: Press et al. 2022, with slopes 2^(−8 h / heads) for 3, 6 or 12 heads too, for which the "
            "program of its authors interpolates; t5: Raffel et al. 2020; kv_heads: Ainslie et al. 2023; "
            "qk_norm: Henry et al. 2020; logit_cap: Gemma Team 2024 (Gemma 2), section 2"
        ),
        reach=_reach,
        state=_state,
        window=_window,
        check=_check,
        compares_positions=lambda settings: as_word(settings, "pos") in ("rope", "alibi", "t5"),
    )
)
