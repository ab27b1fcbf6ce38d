"""The common parts of blocks with a vector as their state: outer maps, a short convolution, a gate.

They are causal in every model.
"""

from __future__ import annotations

from collections.abc import Callable

from ..matrix_states.recurrent_heads import SHORT_CONV
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

CHANNELS = Parameter(
    name="channels", kind="integer", default=512, low=1, high=1048576, meaning="width of the recurrence"
)

GATES = ("none", "sigmoid", "silu", "gelu")
"""What a gate makes of a map of the input."""


def gate_parameter(default: str) -> Parameter:
    """Return the parameter that chooses the gate before the last map."""
    return Parameter(
        name="output_gate",
        kind="word",
        default=default,
        words=GATES,
        meaning="what the recurrence gives is multiplied by this of a map of the input",
    )


def register_channels(
    name: str,
    summary: str,
    equation: str,
    source: str,
    state: Callable[[Settings], int],
    *parameters: Parameter,
    convolved: Callable[[Settings], int] = lambda _settings: 0,
) -> Spec:
    """Register a block of this family.

    `state` gives the numbers of its state, `convolved` the channels of its short convolution.
    """

    def window(settings: Settings, _context: CostContext) -> int:
        taps = as_int(settings, "short_conv") if "short_conv" in settings else 0
        return state(settings) + max(0, taps - 1) * convolved(settings)

    return define(
        Spec(
            name=name,
            role=Role.MIXER,
            parameters=parameters,
            summary=summary,
            equation=equation,
            source=source,
            reach=_reach,
            window=window,
            compiled_for_each_length=lambda _settings: True,
            export_fault=loops_over_positions,
        )
    )


def _reach(_settings: Settings, _context: CostContext) -> Reach:
    """Return a reach over all earlier positions, in a bidirectional model too."""
    return Reach(left=UNBOUNDED, right=0)


__all__ = [
    "CHANNELS",
    "SHORT_CONV",
    "gate_parameter",
    "register_channels",
]
