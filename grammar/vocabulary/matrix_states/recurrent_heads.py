"""The blocks whose state is a matrix for each head, written by keys and values and read by queries.

The state follows a linear recurrence, so that training computes chunks of positions by products and hands the
state from chunk to chunk. They are causal in every model. What papers put around such a recurrence is said
by parameters that all of these blocks have: a short convolution, a normalisation of each head, a gate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..attention import HEAD_WIDTH, HEADS
from ..registry import define
from ..spec import (
    UNBOUNDED,
    CostContext,
    Parameter,
    Reach,
    Role,
    Settings,
    Spec,
    as_int,
    loops_over_positions,
)

SHORT_CONV = Parameter(
    name="short_conv",
    kind="integer",
    default=0,
    low=0,
    high=64,
    meaning="taps of a causal convolution of each channel of queries, keys and values, with SiLU; 0 for none",
)


def qk_norm_parameter(default: str) -> Parameter:
    """Return the parameter that chooses the normalisation of queries and keys."""
    return Parameter(
        name="qk_norm",
        kind="word",
        default=default,
        words=tuple(sorted(("none", "l2"), key=default.__ne__)),
        meaning="normalisation of the queries and keys of each head: l2 is to a length of one",
    )


def head_norm_parameter(default: str) -> Parameter:
    """Return the parameter that chooses the normalisation behind each head."""
    return Parameter(
        name="head_norm",
        kind="word",
        default=default,
        words=tuple(sorted(("none", "rms"), key=default.__ne__)),
        meaning="normalisation of what each head gives, with gains that heads share",
    )


def output_gate_parameter(default: str) -> Parameter:
    """Return the parameter that chooses the gate before the last map."""
    return Parameter(
        name="output_gate",
        kind="word",
        default=default,
        words=("none", "silu", "sigmoid"),
        meaning="what heads give is multiplied by this of a map of the input",
    )


def _reach(_settings: Settings, _context: CostContext) -> Reach:
    """Return a reach over all earlier positions, in a bidirectional model too."""
    return Reach(left=UNBOUNDED, right=0)


def square_state(_settings: Settings, heads: int, head_width: int) -> int:
    """Return the numbers in one square matrix for each head."""
    return heads * head_width**2


def register_recurrence(
    name: str,
    summary: str,
    equation: str,
    source: str,
    state: Callable[[Settings, int, int], int],
    *own: Parameter,
    short_conv: int = 0,
    qk_norm: str = "none",
    head_norm: str,
    output_gate: str,
    least_head_width: int = 1,
    check: Callable[[Settings], str | None] | None = None,
    compiled_for_each_length: Callable[[Settings], bool] | None = None,
    convolved: Callable[[Settings, int], int] = lambda _settings, inner: 3 * inner,
) -> Spec:
    """Register a block of this family.

    Its `own` parameters stand between those of heads and those that all blocks have. `state` maps the
    number and the width of heads to the size of the state; `convolved` gives the channels of the short
    convolution.
    """

    def window(settings: Settings, _context: CostContext) -> int:
        heads, head_width = as_int(settings, "heads"), as_int(settings, "head_width")
        taps = max(1, as_int(settings, "short_conv"))
        return state(settings, heads, head_width) + (taps - 1) * convolved(settings, heads * head_width)

    around = (
        replace(SHORT_CONV, default=short_conv),
        qk_norm_parameter(qk_norm),
        head_norm_parameter(head_norm),
        output_gate_parameter(output_gate),
    )
    return define(
        Spec(
            name=name,
            role=Role.MIXER,
            parameters=(HEADS, replace(HEAD_WIDTH, low=least_head_width), *own, *around),
            summary=summary,
            equation=equation,
            source=source,
            reach=_reach,
            window=window,
            check=check,
            compiled_for_each_length=compiled_for_each_length,
            export_fault=loops_over_positions,
        )
    )
