"""How a model tells positions apart, by the names of `position`: what comes along, and those of plug-ins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from ..plugins import OpenRegistry, contract_faults, count_faults

if TYPE_CHECKING:
    from torch import nn

MAX_POSITIONS = 2048
"""So many positions there are by default where their number is to be known, as in Ruoss et al. 2023."""


class PositionKind:
    """Vectors by position, added to what enters the body; `source` is who has thought of them."""

    source = ""

    adds_vectors: ClassVar[bool] = True
    """Whether there are any."""

    before_mixers: ClassVar[bool] = False
    """Whether they are added again in front of each sub-layer in which positions mix."""

    by_length: ClassVar[bool] = False
    """Whether what tells a position depends on how long its sequence is."""

    longest: int | None = None
    """For how many positions there are vectors, if not for any number."""

    def sized_to(self, count: int) -> PositionKind:
        """The same for so many positions, where their number is to be known."""
        del count
        return self

    def parameters(self, width: int) -> int:
        """How many numbers it learns for vectors so wide."""
        return 0

    def saved(self, width: int, length: int) -> int:
        """How many numbers training keeps of it for the backward pass, once for a batch of that length."""
        return 0


class NoPosition(PositionKind):
    """Positions are not told apart, but by mixers."""

    adds_vectors = False


class TimingPosition(PositionKind):
    """Sinusoids of geometric timescales."""

    source = "Vaswani et al. 2017"
    before_mixers = True


class SizedPosition(PositionKind):
    """Vectors for a number of positions that the model says; there are no more."""

    def __init__(self, count: int = MAX_POSITIONS) -> None:
        self.count = self.longest = count

    def sized_to(self, count: int) -> Self:
        """The same for so many positions."""
        return type(self)(count)


class LearnedPosition(SizedPosition):
    """A learned vector for each position, added to what enters the body."""

    source = "Gehring et al. 2017"

    def parameters(self, width: int) -> int:
        """A vector for each position."""
        return self.count * width

    def saved(self, width: int, length: int) -> int:
        """The positions, whole numbers of eight bytes."""
        return 2 * length


class RandomisedPosition(SizedPosition):
    """Sinusoids of as many of the positions as a sequence is long, drawn anew for each batch, in their order.

    So longer sequences than those of the training have no positions that it has not seen. A trained model has
    the same ones for all sequences of a length.
    """

    source = "Ruoss et al. 2023"
    before_mixers = True
    by_length = True


class RandomisedPairs(SizedPosition):
    """Nothing is added: mixers that compare positions do so with numbers drawn as by RandomisedPosition.

    Each mixer draws its own for a batch, as the authors' program does: what is turned gets positions in their
    order, a bias of the distance d the d-th of distances in their order.
    """

    source = "Ruoss et al. 2023"
    adds_vectors = False
    by_length = True


class PluginPosition(PositionKind, ABC):
    """Vectors by position of a plug-in: what they cost, and their module."""

    @abstractmethod
    def build(self, width: int) -> nn.Module:
        """The module: positions (length,), whole numbers from 0 on, to their vectors (length, width)."""


POSITIONS: OpenRegistry[PositionKind] = OpenRegistry(
    "position",
    {
        "timing": TimingPosition(),
        "learned": LearnedPosition(),
        "randomised": RandomisedPosition(),
        "randomised_pairs": RandomisedPairs(),
        "none": NoPosition(),
    },
)
"""Every way to tell positions apart by its name."""

PositionT = TypeVar("PositionT", bound=PluginPosition)


def register_position(name: str, *, source: str) -> Callable[[type[PositionT]], type[PositionT]]:
    """A decorator that adds a way to tell positions apart; `source` is who has thought of it.

    Raises ValueError for a taken name, and for a class that lacks something.
    """

    def register(cls: type[PositionT]) -> type[PositionT]:
        if faults := contract_faults(cls, PluginPosition):
            raise ValueError("; ".join(faults))
        kind = cls()
        if faults := [*count_faults(kind.parameters, 8), *count_faults(kind.saved, 8, 3)]:
            raise ValueError("; ".join(faults))
        kind.source = source
        POSITIONS.register(name, kind)
        return cls

    return register
