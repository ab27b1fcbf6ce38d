"""The positional encodings that the setting `position` can name, including those of plug-ins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeVar

from ..plugins import Registry
from .norms import kind_registrar

if TYPE_CHECKING:
    from torch import nn

MAX_POSITIONS = 2048
"""The default number of positions, for encodings that need a maximum, as in Ruoss et al. 2023."""


class PositionKind:
    """Base class of positional encodings; most add a vector to the model's input at each position.

    `source` names the publication or author.
    """

    source = ""

    adds_vectors: ClassVar[bool] = True
    """Whether vectors are added."""

    before_mixers: ClassVar[bool] = False
    """Whether vectors are added again before each sub-layer that mixes positions."""

    by_length: ClassVar[bool] = False
    """Whether a position's vector depends on the length of its sequence."""

    longest: int | None = None
    """The number of positions with vectors; None for any number."""


class NoPosition(PositionKind):
    """No positional encoding. Without a block that mixes positions, the model ignores the input's order."""

    adds_vectors = False


class TimingPosition(PositionKind):
    """Sinusoidal positional encoding, with wavelengths that form a geometric series."""

    source = "Vaswani et al. 2017"
    before_mixers = True


class SizedPosition(PositionKind):
    """Base class of positional encodings for sequences of at most `count` positions."""

    def __init__(self, count: int = MAX_POSITIONS) -> None:
        self.count = self.longest = count


class LearnedPosition(SizedPosition):
    """A learned vector for each position, added to the body's input."""

    source = "Gehring et al. 2017"


class RandomisedPosition(SizedPosition):
    """Sinusoidal encoding of random position numbers, which increase along the sequence.

    Each batch draws new positions. So sequences longer than in training contain no unseen positions. A
    trained model uses the same positions for all sequences of a length.
    """

    source = "Ruoss et al. 2023"
    before_mixers = True
    by_length = True


class RandomisedPairs(SizedPosition):
    """Random position numbers for blocks that compare pairs of positions, such as `sa(pos=rope)`.

    No vectors are added to the model's input. Each mixer draws its own numbers for a batch, as in the
    authors' program. Rotations use the drawn positions in increasing order. A bias at distance d uses the
    d-th of the drawn distances in increasing order.
    """

    source = "Ruoss et al. 2023"
    adds_vectors = False
    by_length = True


class PluginPosition(PositionKind, ABC):
    """Base class of positional encodings from plug-ins."""

    @abstractmethod
    def build(self, width: int) -> nn.Module:
        """Return a module that maps positions (length,), counted from 0, to vectors (length, width)."""


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
    """Return a decorator that registers a positional encoding; `source` names its publication or author.

    Raise PluginError for a taken name, and for an incomplete class.
    """
    return kind_registrar(POSITIONS, PluginPosition, name, source)
