"""Pathfinder: an image of dashed contours, pixel by pixel, to whether one of them joins the two marks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field, model_validator

from .....grammar.vocabulary.spec import Reach
from ..generated import TaskSizes
from ..spec import TaskKind
from .base import SyntheticTask, add_synthetic

LEVELS = 256
"""The symbols: levels of grey, of which the first two are the classes as well."""

Contour = Annotated[int, Field(ge=2, le=64)]
"""The paddles of a contour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """The sizes by which contours are drawn, in pixels.

    A contour is a chain of `paddle`s with half a `gap` before and behind each. Between two paddles it turns
    by an angle of density cos² (continuity · angle), within a right angle. `apart` is the distance between
    the first ends of the two long contours, and `radius` is the radius of the marks. All distractors together
    have `budget` paddles. There is hardly ever room for two contours of more than `longest` paddles.
    """

    paddle: float
    gap: float
    thickness: float
    radius: float
    apart: float
    continuity: float
    budget: int
    longest: int

    @property
    def link(self) -> float:
        """The distance from the middle of a gap to the next."""
        return self.paddle + self.gap

    @property
    def clearance(self) -> float:
        """The least distance between the centres of contours: strokes are a gap apart."""
        return self.gap + self.thickness

    @property
    def mark_clearance(self) -> float:
        """The least distance between the centres of a mark and a contour, with one dark pixel between."""
        return self.radius + self.thickness / 2 + 2

    @property
    def mark_distance(self) -> float:
        """The least distance between the centres of two marks: a pixel is dark between them."""
        return 2 * self.radius + 2


_OURS = Geometry(paddle=2, gap=2, thickness=0.5, radius=1, apart=4, continuity=1, budget=5, longest=4)

GEOMETRIES = {
    12: replace(_OURS, radius=0.75, apart=3.5, budget=0, longest=2),
    16: _OURS,
    32: Geometry(paddle=2, gap=2, thickness=0.5, radius=1.5, apart=7, continuity=1, budget=20, longest=18),
    64: Geometry(paddle=5, gap=2, thickness=1, radius=2.5, apart=12, continuity=1.8, budget=22, longest=18),
    128: Geometry(paddle=5, gap=4, thickness=1.5, radius=3, apart=20, continuity=1.8, budget=35, longest=32),
    256: Geometry(paddle=5, gap=6, thickness=2, radius=5, apart=27, continuity=1.8, budget=30, longest=32),
}
"""By the least side of an image; from 32 on those with which Long Range Arena has run the papers' program.

There a gap is twice the margin, and of 128 pixels the margin is 2 or 3, here always 2. `longest` is ours.
"""


class PathfinderSettings(SyntheticTask):
    """Settings of pathfinder in `[task]`.

    The defaults give Long Range Arena's Pathfinder; `side = 128` gives its Path-X.
    """

    side: int = Field(default=32, ge=12, le=256)
    """the pixels of a side of the image, whose rows are read one behind the other"""
    contour: Contour = 14
    """the paddles of each of the two long contours: 6, 9 and 14 in the paper"""
    distractors: int | None = Field(default=None, ge=0, le=100)
    """the most short contours, of a third as many paddles, drawn where there is room; by default as many as
    have 20 paddles in all (none below 16 pixels, 5 below 32, 22 from 64 on, 35 from 128, 30 at 256)"""
    test_contours: Annotated[tuple[Contour, ...], Field(strict=False)] = ()
    """contours of the test sets, each a set of images of the same side; by default that of the training"""

    @model_validator(mode="after")
    def _check_room(self) -> PathfinderSettings:
        most = self.geometry.longest * self.side**2 // self._geometry_side**2
        for key, contours in (("contour", (self.contour,)), ("test_contours", self.test_contours)):
            for contour in contours:
                if contour > most:
                    raise ValueError(
                        f"{key}: expected at most {most} paddles in {self.side} pixels, got {contour}"
                    )
        if len(set(self.test_contours)) < len(self.test_contours):
            raise ValueError("expected test_contours that differ, got one twice")
        return self

    @property
    def geometry(self) -> Geometry:
        """The geometry of this side."""
        return GEOMETRIES[self._geometry_side]

    @property
    def _geometry_side(self) -> int:
        return max(side for side in GEOMETRIES if side <= self.side)

    def distractors_beside(self, contour: int) -> tuple[int, int]:
        """Return the number of short contours beside long ones of that many paddles, and their paddles."""
        paddles = max(1, contour // 3)
        return (self.geometry.budget // paddles if self.distractors is None else self.distractors), paddles

    @property
    def test_names(self) -> tuple[str, ...]:
        return tuple(map(str, self.test_contours or (self.contour,)))

    @property
    def chance(self) -> float:
        return 1 / 2

    @property
    def sizes(self) -> TaskSizes:
        """Pixels and levels."""
        return TaskSizes(tokens=self.side**2, vocab=LEVELS)

    @property
    def has_one_shape(self) -> bool:
        return True

    @property
    def required_reach(self) -> Reach:
        return Reach(left=self.side**2 - 1, right=0)


add_synthetic(
    "pathfinder",
    PathfinderSettings,
    "the pixels of an image of dashed contours to whether one joins its two marks, asked at the last pixel",
    "Linsley et al. 2018; Tay et al. 2021 (Long Range Arena) and the settings of its program, drawn anew",
    "Contour",
    kind=TaskKind.TAGGING,
)
