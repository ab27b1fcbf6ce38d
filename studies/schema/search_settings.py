"""Keys of [search]: what a search optimises, and how it chooses its points."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SerializeAsAny, field_validator, model_validator

from ..text.strict_model import StrictModel
from ..text.units import plural
from .objectives import Direction, Limit, SearchObjective, read_limit, usual_direction
from .search_parts import (
    EPOCHS,
    NONE,
    RACE,
    GpTreesSettings,
    RungSettings,
    SamplerSettings,
    SchedulerSettings,
    read_sampler,
    read_scheduler,
)
from .settings import Names

Directions = Annotated[
    tuple[Direction, ...],
    Field(strict=False),
    BeforeValidator(lambda given: (given,) if isinstance(given, str) else given),
]
"""Which way is better, of one metric or of several."""


class SearchBudget(StrictModel):
    """`budget`: no new point begins once the trainings of this search have reached one of these."""

    trainings: int | None = Field(default=None, ge=1)
    """number of trainings, those that were given up among them"""
    flops: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """operations of all trainings"""
    hours: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """hours of all trainings, added up over those that run at once"""
    gpu_hours: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the same of those on GPUs, times the GPUs that each has, or its share of one"""

    @model_validator(mode="after")
    def check_any(self) -> SearchBudget:
        """Check that one of the four is given."""
        if self.trainings is None and self.flops is None and self.hours is None and self.gpu_hours is None:
            raise ValueError("expected trainings, flops, hours or gpu_hours, got none of them")
        return self

    def words(self) -> str:
        """Return `40 trainings or 2 h of training`."""
        parts = [plural(self.trainings, "training")] if self.trainings is not None else []
        parts += [f"{self.flops:.3g} FLOPs"] if self.flops is not None else []
        parts += [f"{self.hours:g} h of training"] if self.hours is not None else []
        parts += [f"{self.gpu_hours:g} GPU-hours"] if self.gpu_hours is not None else []
        return " or ".join(parts)


class SearchSettings(StrictModel):
    """`[search]`: how points are chosen; `space` names dimensions that fill holes, in the recipe language."""

    sampler: Annotated[SerializeAsAny[SamplerSettings] | None, BeforeValidator(read_sampler)] = None
    """how points are proposed: gp_trees, tpe, evolution, random, quasi_random, cmaes, gp, nsga2, or grid,
    which takes all in order; a name, or a table with the keys below; by default gp_trees, and tpe for several
    metrics or for limits that only a training shows"""
    trials: int = Field(ge=1, le=100_000)
    """number of points, each trained with every seed"""
    metric: Names
    """what is optimised, its mean over the seeds: a metric, or a cost of the training or of the model; a list
    of several asks for all trade-offs between them"""
    direction: Directions = ()
    """which way is better, of several metrics a list in their order; by default as is usual for each"""
    scheduler: Annotated[SerializeAsAny[SchedulerSettings], BeforeValidator(read_scheduler)] = (
        SchedulerSettings(name=NONE)
    )
    """how points that fall behind are given up: asha, hyperband and median after some epochs, race after some
    seeds, or none; a name, or a table with the keys below"""
    budget: SearchBudget | None = None
    """what ends a search before its last point"""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """the sampler's seed"""
    across: Names = ()
    """factors that no point chooses, such as `["task"]`: each point is trained at all of their levels, and
    what is optimised is the mean over these"""
    warm_start: bool = False
    """whether points that other studies have trained on all seeds count as tried, whatever their names"""
    limits: dict[str, str] = Field(default={})
    """what points must keep to, by the metric or cost: `"< 60"`; those that the text tells are never
    exceeded, others are learnt"""
    space: dict[str, str] = Field(default={})
    """dimensions that fill holes, by name: `integer(lo, hi)`, `real(lo, hi)` or `choice(a, b, …)`"""

    @property
    def sampler_name(self) -> str:
        """The name of the sampler; empty as long as the default is not known."""
        return self.sampler.name if self.sampler else ""

    @property
    def prior(self) -> dict[str, Any]:
        """The values that are likely to be near the best, by dimension."""
        return self.sampler.prior if isinstance(self.sampler, GpTreesSettings) else {}

    @property
    def fidelity(self) -> str:
        """The quantity that grows from rung to rung."""
        return self.scheduler.fidelity if isinstance(self.scheduler, RungSettings) else EPOCHS

    @property
    def compares_epochs(self) -> bool:
        """Whether a scheduler compares points after each epoch."""
        return self.scheduler.name not in (NONE, RACE) and self.fidelity == EPOCHS

    @property
    def objectives(self) -> tuple[SearchObjective, ...]:
        """The optimised metrics, in the order of the file."""
        ways = self.direction or tuple(usual_direction(name) or "max" for name in self.metric)
        return tuple(SearchObjective(name, way) for name, way in zip(self.metric, ways, strict=True))

    @property
    def bounds(self) -> tuple[Limit, ...]:
        """The limits on points, in the order of the file."""
        return tuple(read_limit(name, text) for name, text in self.limits.items())

    @model_validator(mode="after")
    def check_directions(self) -> SearchSettings:
        """Check that each metric has a direction, and that none is given twice."""
        if not self.metric:
            raise ValueError("metric: expected at least one, got an empty list")
        if len(set(self.metric)) < len(self.metric):
            raise ValueError(f"metric: expected different ones, got {', '.join(self.metric)}")
        if self.direction and len(self.direction) != len(self.metric):
            raise ValueError(
                f"direction: expected one for each of {', '.join(self.metric)}, "
                f"got {', '.join(self.direction)}"
            )
        return self

    @field_validator("limits")
    @classmethod
    def check_limits(cls, limits: dict[str, str]) -> dict[str, str]:
        """Check that each limit can be read."""
        faults: list[str] = []
        for name, text in limits.items():
            try:
                read_limit(name, text)
            except ValueError as error:
                faults.append(f"{name}: {error}")
        if faults:
            raise ValueError("; ".join(faults))
        return limits
