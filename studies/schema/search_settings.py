"""[search]: the keys of what a search optimises and how it chooses its points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ..catalog.samplers import SAMPLERS, SCHEDULERS, WITH_PRIOR
from ..text.strict_model import StrictModel
from ..text.units import plural
from .objectives import Direction, Limit, SearchObjective, read_limit, usual_direction
from .settings import Names

Directions = Annotated[
    tuple[Direction, ...],
    Field(strict=False),
    BeforeValidator(lambda given: (given,) if isinstance(given, str) else given),
]
"""Which way is better, of one metric or of several."""

EVOLUTION_POPULATION, EVOLUTION_SAMPLE = 20, 10
"""The sizes of evolution by default."""

REDUCTIONS = {"asha": 4, "hyperband": 3}
"""How many points each rung has for one that goes on, by default, of the schedulers that have rungs."""

EPOCHS, LENGTH, DATA = "epochs", "length", "data"
"""What grows from rung to rung, if it is no dimension of the study."""

RACE, RACE_RISK = "race", 0.05
"""The scheduler that compares points after each seed, and the chance of an error by default."""

PRIOR_CONFIDENCE = 0.5
"""How likely a prior is right, by default."""

_SAMPLER_KEYS = {
    "evolution": ("population", "sample"),
    "tpe": ("multivariate", "group", "constant_liar"),
}
"""The keys of `[search]` that only one sampler has."""


class SearchBudget(StrictModel):
    """`budget`: no point is begun any more once trainings of this search have come to one of these."""

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
        """One of the four is there."""
        if self.trainings is None and self.flops is None and self.hours is None and self.gpu_hours is None:
            raise ValueError("expected trainings, flops, hours or gpu_hours, got none of them")
        return self

    def words(self) -> str:
        """`40 trainings or 2 h of training`."""
        parts = [plural(self.trainings, "training")] if self.trainings is not None else []
        parts += [f"{self.flops:.3g} FLOPs"] if self.flops is not None else []
        parts += [f"{self.hours:g} h of training"] if self.hours is not None else []
        parts += [f"{self.gpu_hours:g} GPU-hours"] if self.gpu_hours is not None else []
        return " or ".join(parts)


class SearchSettings(StrictModel):
    """`[search]`: how points are chosen; `space` names dimensions that fill holes, in the recipe language."""

    sampler: str = "tpe"
    """how points are proposed: tpe, evolution, gp_trees, random, quasi_random, cmaes, gp, nsga2,
    or grid: all in order"""
    trials: int = Field(ge=1, le=100_000)
    """number of points, each trained with every seed"""
    metric: Names
    """what is optimised, its mean over the seeds: a metric, or a cost of the training or of the model; a list
    of several asks for all trade-offs between them"""
    direction: Directions = ()
    """which way is better, of several metrics a list in their order; by default as is usual for each"""
    scheduler: str = "none"
    """how points that fall behind are given up: asha, hyperband and median after some epochs, race after some
    seeds, or none"""
    fidelity: str = EPOCHS
    """for asha and hyperband: what grows from rung to rung: epochs; length, the longest of a training; data,
    the steps of an epoch; or a dimension of whole numbers that fills a hole, such as a width. But for epochs
    each rung is a training of its own, and the points' results are those of the last"""
    min_fidelity: int | None = Field(default=None, ge=1)
    """for asha and hyperband: where the first rung is; by default 1 epoch, of length and data the last rung
    divided twice by the reduction; a dimension begins with its lowest value"""
    reduction: int | None = Field(default=None, ge=2)
    """for asha and hyperband: of so many points one goes on, to so many times as much;
    by default 4, 3"""
    risk: float | None = Field(default=None, gt=0, lt=1)
    """for race: how likely it may be at most that the best point is given up, 0.05 by default"""
    budget: SearchBudget | None = None
    """what ends a search before its last point"""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """the sampler's seed"""
    prior: dict[str, Any] = Field(default={})
    """for random, tpe, evolution and gp_trees: values by dimension that are likely to be near the best"""
    confidence: float | None = Field(default=None, gt=0, lt=1)
    """how likely the prior is right before anything is known, 0.5 by default"""
    population: int | None = Field(default=None, ge=2)
    """for evolution: how many of the last points can be changed, 20 by default"""
    sample: int | None = Field(default=None, ge=1)
    """for evolution: of how many of them, drawn anew each time, the best is changed, 10 by default"""
    multivariate: bool | None = None
    """for tpe: whether dimensions are chosen together, true by default"""
    group: bool | None = None
    """for tpe: whether those are that only some points have, true by default where `multivariate` is"""
    constant_liar: bool | None = None
    """for tpe: whether points in training count as bad ones, so that others are tried, true by default"""
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
    def trusted(self) -> float:
        """The confidence in the prior."""
        return PRIOR_CONFIDENCE if self.confidence is None else self.confidence

    @property
    def compares_epochs(self) -> bool:
        """Whether a scheduler hears of each epoch."""
        return self.scheduler not in ("none", RACE) and self.fidelity == EPOCHS

    @property
    def objectives(self) -> tuple[SearchObjective, ...]:
        """What is optimised, in the order of the file."""
        ways = self.direction or tuple(usual_direction(name) or "max" for name in self.metric)
        return tuple(SearchObjective(name, way) for name, way in zip(self.metric, ways, strict=True))

    @property
    def bounds(self) -> tuple[Limit, ...]:
        """What points must keep to, in the order of the file."""
        return tuple(read_limit(name, text) for name, text in self.limits.items())

    @model_validator(mode="after")
    def check_directions(self) -> SearchSettings:
        """A direction for each metric, none of them twice."""
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
        """The limits, if each can be read."""
        faults: list[str] = []
        for name, text in limits.items():
            try:
                read_limit(name, text)
            except ValueError as error:
                faults.append(f"{name}: {error}")
        if faults:
            raise ValueError("; ".join(faults))
        return limits

    @model_validator(mode="after")
    def check_own_keys(self) -> SearchSettings:
        """Keys of one sampler are for it alone, and fit together."""
        faults = [
            f"{key}: for the sampler {sampler} alone, got {self.sampler}"
            for sampler, keys in _SAMPLER_KEYS.items()
            for key in keys
            if getattr(self, key) is not None and self.sampler != sampler
        ]
        faults += [
            f"{key}: for the schedulers {' and '.join(REDUCTIONS)} alone, got {self.scheduler}"
            for key, default in (("min_fidelity", None), ("reduction", None), ("fidelity", EPOCHS))
            if getattr(self, key) != default and self.scheduler not in REDUCTIONS
        ]
        faults += self._prior_faults()
        if self.risk is not None and self.scheduler != RACE:
            faults.append(f"risk: for the scheduler {RACE} alone, got {self.scheduler}")
        population = self.population or EVOLUTION_POPULATION
        if self.sample is not None and self.sample > population:
            faults.append(f"sample: expected at most the population, {population}, got {self.sample}")
        if self.group and self.multivariate is False:
            faults.append("group: expected multivariate = true with it, got false")
        if faults:
            raise ValueError("; ".join(faults))
        return self

    def _prior_faults(self) -> Iterator[str]:
        """Yield what is wrong with a prior."""
        can = f"{', '.join(WITH_PRIOR[:-1])} and {WITH_PRIOR[-1]}"
        for key in ("prior", "confidence"):
            if getattr(self, key) and self.sampler not in WITH_PRIOR:
                yield f"{key}: for the samplers {can} alone, got {self.sampler}"
        if self.confidence is not None and not self.prior:
            yield "confidence: expected a prior beside it, got none"

    @field_validator("sampler")
    @classmethod
    def check_sampler(cls, name: str) -> str:
        """The name, if there is such a sampler."""
        return SAMPLERS.check(name)

    @field_validator("scheduler")
    @classmethod
    def check_scheduler(cls, name: str) -> str:
        """The name, if there is such a scheduler."""
        return SCHEDULERS.check(name)
