"""Pathfinder: classify whether a dashed contour in an image, read pixel by pixel, joins the two marks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field, model_validator

from .....grammar.vocabulary.spec import Reach
from ..generated import TaskSizes
from ..spec import TaskKind
from .base import SyntheticTask, add_synthetic

LEVELS = 256
"""The number of symbols: grey levels, of which the first two are also the classes."""

Contour = Annotated[int, Field(ge=2, le=64)]
"""The paddles of a contour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """The sizes of drawn contours, in pixels.

    A contour is a chain of `paddle`s with half a `gap` before and after each. Between two paddles it turns by
    a random angle with density cos² (continuity · angle), at most a right angle. `apart` is the distance
    between the first ends of the two long contours, and `radius` is the radius of the marks. All distractors
    together have `budget` paddles. Two contours of more than `longest` paddles hardly ever fit.
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
        """The distance between the middles of neighbouring gaps."""
        return self.paddle + self.gap

    @property
    def clearance(self) -> float:
        """The minimum distance between the centres of two contours: strokes are a gap apart."""
        return self.gap + self.thickness

    @property
    def mark_clearance(self) -> float:
        """The minimum distance between the centres of a mark and a contour, with one dark pixel between."""
        return self.radius + self.thickness / 2 + 2

    @property
    def mark_distance(self) -> float:
        """The minimum distance between the centres of two marks: a pixel is dark between them."""
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
"""Geometries by the minimum side of an image; from 32 on they are those of the papers' program as run by Long
Range Arena. There a gap is twice the margin. At 128 pixels the margin is 2 or 3, here always 2. `longest` is
not from the papers."""


class PathfinderSettings(SyntheticTask):
    """Settings of pathfinder in `[task]`.

    The defaults give Long Range Arena's Pathfinder; `side = 128` gives its Path-X.
    """

    side: int = Field(default=32, ge=12, le=256)
    """the side of the image in pixels; its rows are read one after the other"""
    contour: Contour = 14
    """the number of paddles of each of the two long contours: 6, 9 or 14 in the paper"""
    distractors: int | None = Field(default=None, ge=0, le=100)
    """the maximum number of short contours, which have a third as many paddles and are drawn where they fit
    (default: 20 paddles in total; none below 16 pixels, 5 below 32, 22 from 64, 35 from 128, 30 at 256)"""
    test_contours: Annotated[tuple[Contour, ...], Field(strict=False)] = ()
    """contour lengths of the test sets, each a set of images of the same side (default: the training's
    contour)"""

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
            raise ValueError("expected different test_contours, got one twice")
        return self

    @property
    def geometry(self) -> Geometry:
        """The geometry of this side."""
        return GEOMETRIES[self._geometry_side]

    @property
    def _geometry_side(self) -> int:
        return max(side for side in GEOMETRIES if side <= self.side)

    def distractors_beside(self, contour: int) -> tuple[int, int]:
        """Return the number and the paddles of short contours, given `contour` paddles in a long one."""
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
        """Return the sizes; tokens are pixels, and symbols are grey levels."""
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
