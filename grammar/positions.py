"""Positional encodings by the names that `position` takes, including encodings of plug-ins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from ..plugins import Registry, contract_faults

if TYPE_CHECKING:
    from torch import nn

MAX_POSITIONS = 2048
"""The default number of positions where it must be known, as in Ruoss et al. 2023."""


class PositionKind:
    """Vectors by position, added to what enters the body; `source` names their author."""

    source = ""

    adds_vectors: ClassVar[bool] = True
    """Whether vectors are added."""

    before_mixers: ClassVar[bool] = False
    """Whether vectors are added again before each sub-layer that mixes positions."""

    by_length: ClassVar[bool] = False
    """Whether the vector of a position depends on the length of its sequence."""

    longest: int | None = None
    """The number of positions that have vectors, or None for any number."""

    def sized_to(self, count: int) -> PositionKind:
        """Return the same kind for `count` positions, where their number must be known."""
        del count
        return self


class NoPosition(PositionKind):
    """No position vectors: only mixers distinguish positions."""

    adds_vectors = False


class TimingPosition(PositionKind):
    """Sinusoids of geometric timescales."""

    source = "Vaswani et al. 2017"
    before_mixers = True


class SizedPosition(PositionKind):
    """Vectors for `count` positions, and for no later ones."""

    def __init__(self, count: int = MAX_POSITIONS) -> None:
        self.count = self.longest = count

    def sized_to(self, count: int) -> Self:
        """Return the same kind for `count` positions."""
        return type(self)(count)


class LearnedPosition(SizedPosition):
    """A learned vector for each position, added to what enters the body."""

    source = "Gehring et al. 2017"


class RandomisedPosition(SizedPosition):
    """Sinusoids of random positions, as many as the sequence is long, in increasing order.

    Each batch draws new positions. So sequences longer than in training contain no unseen positions. A
    trained model uses the same positions for all sequences of a length.
    """

    source = "Ruoss et al. 2023"
    before_mixers = True
    by_length = True


class RandomisedPairs(SizedPosition):
    """Random positions, drawn as by RandomisedPosition, for mixers that compare positions; nothing is added.

    Each mixer draws its own numbers for a batch, as the authors' program does. Rotations use the drawn
    positions in increasing order. A bias at distance d uses the d-th of the drawn distances in increasing
    order.
    """

    source = "Ruoss et al. 2023"
    adds_vectors = False
    by_length = True


class PluginPosition(PositionKind, ABC):
    """Vectors by position of a plug-in."""

    @abstractmethod
    def build(self, width: int) -> nn.Module:
        """Return the module: positions (length,), integers from 0, to their vectors (length, width)."""


POSITIONS: Registry[PositionKind] = Registry(
    "position",
    {
        "timing": TimingPosition(),
        "learned": LearnedPosition(),
        "randomised": RandomisedPosition(),
        "randomised_pairs": RandomisedPairs(),
        "none": NoPosition(),
    },
)
"""Every positional encoding by its name."""

PositionT = TypeVar("PositionT", bound=PluginPosition)


def register_position(name: str, *, source: str) -> Callable[[type[PositionT]], type[PositionT]]:
    """Return a decorator that adds a positional encoding; `source` names its author.

    Raises ValueError for a taken name, and for a class that lacks something.
    """

    def register(cls: type[PositionT]) -> type[PositionT]:
        if faults := contract_faults(cls, PluginPosition):
            raise ValueError("; ".join(faults))
        kind = cls()
        kind.source = source
        POSITIONS.register(name, kind)
        return cls

    return register
