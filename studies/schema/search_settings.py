"""Keys of [search]: objectives, the sampler and the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny, field_validator, model_validator

from ..catalog.samplers import SAMPLERS, SCHEDULERS
from ..text.strict_model import (
    InvalidTableError,
    PartReader,
    PartSettings,
    StrictModel,
    ValidationProblem,
    format_value,
)
from ..text.units import plural
from .limits import find_quantity, quantity_fault
from .settings import EXPANSIONS, Level, Names, NonEmptyNames, find_expansion, wrap_in_list

Direction = Literal["max", "min"]
"""Whether the highest or the lowest values of a quantity are the best."""


@dataclass(frozen=True, slots=True)
class SearchObjective:
    """A quantity that a search maximises or minimises. It is averaged over a point's seeds."""

    name: str
    direction: Direction

    @property
    def maximise(self) -> bool:
        """True if higher values of the objective are better."""
        return self.direction == "max"

    @property
    def sign(self) -> int:
        """1 if higher values of the objective are better, else -1."""
        return 1 if self.maximise else -1

    def loss(self, value: float) -> float:
        """Return the value, or its negative, so that lower is better."""
        return -self.sign * value


def usual_direction(name: str) -> Direction | None:
    """Return "max" or "min", whichever is better for a quantity, or None if unknown."""
    metric = find_quantity(name)
    if metric is None or metric.higher_is_better is None:
        return None
    return "max" if metric.higher_is_better else "min"


EPOCHS, LENGTH, DATA = "epochs", "length", "data"
"""The quantities that can grow from rung to rung, besides a dimension of the study."""

NONE = "none"
"""The scheduler that drops no point."""

REDUCTION = 4
"""One in how many points is promoted to the next rung by default."""


@dataclass(frozen=True, kw_only=True)
class Rungs:
    """The rungs of a search, and the setting that grows from rung to rung, such as the width.

    `rungs` has its values; a search without such a setting has none, and one rung. One in `reduction` points
    on a rung is promoted to the next.
    """

    name: str = ""
    rungs: tuple[int, ...] = ()
    reduction: int = REDUCTION

    @property
    def top(self) -> int:
        """The index of the last rung, counted from 0."""
        return max(0, len(self.rungs) - 1)

    def level(self, rung: int) -> dict[str, Level]:
        """Return the name of the growing setting and its value on a rung."""
        return {self.name: self.rungs[rung]} if self.rungs else {}

    def rung_of(self, levels: Mapping[str, Level]) -> int | None:
        """Return the rung for a trial with these levels, or None if there is no such rung.

        Levels without the growing setting belong to the last rung.
        """
        if not self.rungs:
            return 0
        value = levels.get(self.name, self.rungs[-1])
        return self.rungs.index(value) if isinstance(value, int) and value in self.rungs else None

    def planned(self, points: int, *, has_baseline: bool = False) -> list[int]:
        """Return the expected number of points on each rung, from the lowest up.

        The actual number is higher if a later point overtakes one that is already promoted. A baseline is one
        of the points and is trained on the last rung only.
        """
        counts = [points - has_baseline]
        for _ in range(self.top):
            counts.append(self.promoted(counts[-1]))
        counts[-1] += has_baseline
        return counts

    def promoted(self, ended: int) -> int:
        """Return how many points continue to the next rung after `ended` have finished this one."""
        return ended // self.reduction


def scheduler_keys(name: str) -> type[PartSettings]:
    """Return the class of a scheduler's keys, which may be those of an optional feature."""
    keys = find_expansion(name).scheduler_keys if name in EXPANSIONS else None
    return keys or PartSettings


_SAMPLER = PartReader("sampler", PartSettings, SAMPLERS, lambda name: SAMPLERS[name].settings, is_short=True)
_SCHEDULER = PartReader("scheduler", PartSettings, SCHEDULERS, scheduler_keys, is_short=True)


def _read_dimension(given: object) -> object:
    """Return a dimension's text unchanged, or raise ValueError with what to write instead."""
    if isinstance(given, str):
        return given
    meant = 'expected a text such as "integer(2, 9)", "real(0.0, 0.3)" or "choice(64, 128)"'
    if isinstance(given, list | tuple) and given:
        meant = f'expected "choice({", ".join(map(str, given))})"'
    raise ValueError(f"{meant}, got {format_value(given)}")


class SearchBudget(StrictModel):
    """Keys of `[search] budget`: limits on all trainings of a search, beyond which no new point begins."""

    trainings: int | None = Field(default=None, ge=1)
    """number of trainings, pruned ones included"""
    flops: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """FLOPs of all trainings"""
    hours: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """hours of all trainings, summed over parallel ones"""
    gpu_hours: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """GPU hours: hours of trainings on GPUs, times the number or share of GPUs of each"""

    @model_validator(mode="after")
    def _check_any(self) -> SearchBudget:
        if self.trainings is None and self.flops is None and self.hours is None and self.gpu_hours is None:
            raise ValueError("expected at least one of trainings, flops, hours and gpu_hours, got none")
        return self

    def words(self) -> str:
        """Describe the limits: `40 trainings or 2 h of training`."""
        parts = [plural(self.trainings, "training")] if self.trainings is not None else []
        parts += [f"{self.flops:.3g} FLOPs"] if self.flops is not None else []
        parts += [f"{self.hours:g} h of training"] if self.hours is not None else []
        parts += [f"{self.gpu_hours:g} GPU-hours"] if self.gpu_hours is not None else []
        return " or ".join(parts)


class SearchSettings(StrictModel, table="search"):
    """Keys of `[search]`: the search space, the objectives, and how points are chosen.

    `space` defines dimensions that fill holes, in the recipe language.
    """

    sampler: Annotated[SerializeAsAny[PartSettings] | None, _SAMPLER] = None
    """the sampler: gp_trees, tpe, evolution, random, gp, nsga2, or grid (all points in order); a
    name, or a table with the keys below (default: gp_trees, or tpe for several metrics or for
    limits on trained values)"""
    trials: int = Field(ge=1, le=100_000)
    """number of points, each trained with every seed"""
    metric: NonEmptyNames
    """the objective, averaged over the seeds: a metric, or a cost of the training or the model; a list of
    several asks for their Pareto front"""
    direction: Annotated[tuple[Direction, ...], Field(strict=False), BeforeValidator(wrap_in_list)] = ()
    """whether the highest or the lowest values are the best; a list for several metrics (default: as usual
    for each metric)"""
    scheduler: Annotated[SerializeAsAny[PartSettings], _SCHEDULER] = PartSettings(name=NONE)
    """when points that fall behind are pruned: asha and median after some epochs, or none; a name, or a
    table with the keys below"""
    budget: SearchBudget | None = None
    """limits that end a search before its last point"""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """the sampler's seed"""
    across: Names = ()
    """factors that points do not choose, such as `["task"]`: each point is trained at all of their levels,
    and the objective is the mean over them"""
    warm_start: bool = False
    """whether a run first copies the points that other studies have trained on all seeds, even if their
    factors have other names"""
    space: dict[str, Annotated[str, BeforeValidator(_read_dimension)]] = Field(default={})
    """dimensions by the name of the hole `{name}` that they fill: `integer(lo, hi)`, `real(lo, hi)` or
    `choice(a, b, …)`"""

    @property
    def sampler_name(self) -> str:
        """The name of the sampler, or "" until a default is chosen."""
        return self.sampler.name if self.sampler else ""

    @property
    def startup(self) -> int:
        """The number of points that the sampler draws at random before it learns from results."""
        declared = SAMPLERS[self.sampler.name].startup if self.sampler else 0
        return declared if isinstance(declared, int) else getattr(self.sampler, declared)

    @property
    def fidelity(self) -> str:
        """The quantity that grows from one rung to the next, such as `epochs`."""
        return getattr(self.scheduler, "fidelity", EPOCHS)

    @property
    def compares_epochs(self) -> bool:
        """True if a scheduler compares points after each epoch. It stops the worse points."""
        return self.scheduler.name != NONE and self.fidelity == EPOCHS

    @property
    def objectives(self) -> tuple[SearchObjective, ...]:
        """The optimised metrics, in the order of the file."""
        ways = self.direction or tuple(usual_direction(name) or "max" for name in self.metric)
        return tuple(SearchObjective(name, way) for name, way in zip(self.metric, ways, strict=True))

    @model_validator(mode="after")
    def _check_directions(self) -> SearchSettings:
        if len(set(self.metric)) < len(self.metric):
            raise ValueError(f"metric: expected each metric once, got {', '.join(self.metric)}")
        if self.direction and len(self.direction) != len(self.metric):
            raise ValueError(
                f"direction: expected one direction for each of {', '.join(self.metric)}, "
                f"got {', '.join(self.direction)}"
            )
        return self

    @field_validator("metric")
    @classmethod
    def _check_metric(cls, metric: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [name for name in metric if find_quantity(name) is None]:
            raise InvalidTableError(tuple(ValidationProblem((), quantity_fault(name)) for name in unknown))
        return metric
