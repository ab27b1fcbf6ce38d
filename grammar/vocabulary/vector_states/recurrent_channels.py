"""What the blocks with a vector as their state share: maps in front and behind, a short convolution, a gate.

They are causal in every model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..matrix_states.recurrent_heads import SHORT_CONV
from ..registry import register
from ..spec import (
    NO_WORKING,
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

CHANNELS = Parameter(
    name="channels", kind="integer", default=512, low=1, high=1048576, meaning="width of the recurrence"
)

GATES = ("none", "sigmoid", "silu", "gelu")
"""What a gate makes of a map of the input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelCost:
    """What a recurrence costs on one sequence without the maps around it; `window` is its state."""

    parameters: int = 0
    flops: int = 0
    window: int
    saved: int
    saved_once: int = 0
    working: Working = NO_WORKING


def gate_parameter(default: str) -> Parameter:
    """Which gate stands before the last map."""
    return Parameter(
        name="output_gate",
        kind="word",
        default=default,
        words=GATES,
        meaning="what the recurrence gives is multiplied by this of a map of the input",
    )


def cost_with_maps(
    channels: int,
    settings: Settings,
    context: CostContext,
    recurrence: ChannelCost,
    *,
    maps: int = 1,
    biased: bool = False,
) -> Cost:
    """The recurrence with `maps` of the input in front of it, and the gate and the map behind it.

    Saved are, of a convolution, its input, and of a gate its map and the product. What the recurrence gives
    is in what it has `saved` itself.
    """
    length, taps, gate = context.length, as_int(settings, "short_conv"), as_word(settings, "output_gate")
    mapped = context.width * channels * (maps + 1 + (gate != "none"))
    saved = recurrence.saved + 2 * (gate != "none") * length * channels
    if taps:
        saved += length * maps * channels
    return Cost(
        parameters=mapped + (biased + taps) * maps * channels + recurrence.parameters,
        flops=2 * length * mapped + recurrence.flops,
        window=recurrence.window + max(0, taps - 1) * maps * channels,
        saved=saved,
        saved_once=recurrence.saved_once,
        working=recurrence.working,
    )


def register_channels(
    name: str,
    summary: str,
    equation: str,
    source: str,
    cost: Callable[[Settings, CostContext], Cost],
    *parameters: Parameter,
) -> Spec:
    """A block of this family."""
    return register(
        Spec(
            name=name,
            role=Role.MIXER,
            parameters=parameters,
            summary=summary,
            equation=equation,
            source=source,
            cost=cost,
            reach=_reach,
            compiled_for_each_length=lambda _settings: True,
        )
    )


def _reach(_settings: Settings, _context: CostContext) -> Reach:
    """All that came before, in a bidirectional model too."""
    return Reach(left=UNBOUNDED, right=0)


__all__ = [
    "CHANNELS",
    "SHORT_CONV",
    "ChannelCost",
    "cost_with_maps",
    "gate_parameter",
    "register_channels",
]
