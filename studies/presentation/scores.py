"""The scores of methods on tasks, which tables of aggregates and performance profiles are of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from ...diagnostics import nearest_hint
from ..catalog.metrics import find_metric
from ..schema.design import Design
from ..schema.factors import SEED
from ..schema.level_names import level_text
from ..schema.settings import Level, Name, Names
from ..text.strict_model import StrictModel
from ..text.toml_positions import KeyPath
from .effect_figures import MAX_SERIES
from .metric_checks import metric_faults
from .selection import (
    absent_factors,
    describe_mixed_levels,
    level_name_fault,
    select_faults,
    selected_levels,
)

Bounds = Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=2, max_length=2)]
"""The values that become 0 and 1."""


class ScoresSpec(StrictModel):
    """The keys that are the same for everything that is over tasks."""

    name: Name
    """what `--table` or `--curve` calls it"""
    value: Names
    """the metric, or several, each of which is a task of its own on each task"""
    tasks: Names
    """the factors whose levels, or combinations of levels, are the tasks"""
    bounds: dict[str, Bounds] = Field(default={})
    """the values that become 0 and 1, by metric or `"metric:level"`, as in `{ max_length = [5, 41] }`"""
    select: dict[str, Any] = Field(default={})
    """for a factor, the level or the list of levels that is kept"""
    resamples: int = Field(default=9_999, ge=100, le=1_000_000)
    """how many resamples a bootstrap draws"""
    bootstrap_seed: int = Field(default=0, ge=0)
    """the seed that draws them"""
    caption: str | None = None
    """how the caption begins; by default with the metric's title"""

    @property
    def methods(self) -> tuple[str, str]:
        """The key that names the factor whose levels are compared, and that factor."""
        raise NotImplementedError

    @field_validator("value", "tasks")
    @classmethod
    def check_not_empty(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """At least one name."""
        if not names:
            raise ValueError("expected a name, got an empty list")
        return names


class AggregateSpec(ScoresSpec):
    """`[[table]] kind = "aggregate"`: each method over all tasks and seeds."""

    kind: Literal["aggregate"]
    """that it is such a table"""
    rows: str
    """the factor whose levels are compared"""
    baseline: Any = None
    """the row that the others are compared with, by the probability that they are better"""
    target: float | None = None
    """the score from which on nothing is missing; gives a column with what is missing to it"""
    digits: int = Field(default=3, ge=0, le=12)
    """decimals of scores"""

    @property
    def methods(self) -> tuple[str, str]:
        """The rows."""
        return "rows", self.rows


class ProfileSpec(ScoresSpec):
    """`[[curve]] kind = "profile"`: the share of runs above each score, a line for each method."""

    kind: Literal["profile"]
    """that it is such a figure"""
    series: str
    """the factor whose levels are compared, of which there are at most 6"""
    accent: Any = None
    """the level of `series` in colour"""

    @property
    def methods(self) -> tuple[str, str]:
        """The lines."""
        return "series", self.series

    needs_history: ClassVar[bool] = False


def profile_faults(spec: ProfileSpec, design: Design) -> list[tuple[KeyPath, str]]:
    """Everything in a performance profile that does not fit a study of this design."""
    faults = score_faults(spec, design)
    if faults:
        return faults
    levels = selected_levels(spec.select, design.known_levels)[spec.series]
    if len(levels) > MAX_SERIES:
        message = f"expected at most {MAX_SERIES} levels, got {len(levels)}: select some of them"
        faults.append((("series",), message))
    if spec.accent is not None and (message := level_name_fault(spec.accent, levels, spec.series)):
        faults.append((("accent",), message))
    return faults


def aggregate_faults(spec: AggregateSpec, design: Design) -> list[tuple[KeyPath, str]]:
    """Everything in a table of aggregates that does not fit a study of this design."""
    faults = score_faults(spec, design)
    if not faults and spec.baseline is not None:
        levels = selected_levels(spec.select, design.known_levels)[spec.rows]
        if message := level_name_fault(spec.baseline, levels, spec.rows):
            faults.append((("baseline",), message))
    return faults


def score_faults(spec: ScoresSpec, design: Design) -> list[tuple[KeyPath, str]]:
    """Unknown names, factors that would be mixed, and metrics that cannot be put on one scale."""
    factors = design.known_levels
    faults = [*select_faults(spec.select, factors), *metric_faults(spec.value, {})]
    met: dict[str, str] = {}
    key, methods = spec.methods
    named: list[tuple[KeyPath, str]] = [((key,), methods)]
    for number, name in enumerate(spec.tasks):
        named.append((("tasks", number) if len(spec.tasks) > 1 else ("tasks",), name))
    for path, name in named:
        if name not in factors or name == SEED:
            faults.append((path, f"unknown factor '{name}'{nearest_hint(name, [*factors])}"))
        elif name in met:
            faults.append((path, f"expected a factor other than the {met[name]}', got '{name}'"))
        met.setdefault(name, str(path[0]))
    if faults:
        return faults
    if mixed := describe_mixed_levels((methods, *spec.tasks), spec.select, design):
        faults.append((("tasks",), f"expected every other factor but {SEED} to have one level, got {mixed}"))
    if absent := absent_factors((methods, *spec.tasks), spec.select, design):
        faults.append((("tasks",), f"expected factors that every cell has, got {' and '.join(absent)}"))
    return [*faults, *_scale_faults(spec, design)]


def task_names(spec: ScoresSpec, levels: Mapping[str, tuple[Level, ...]]) -> tuple[str, ...]:
    """The tasks by the texts of their levels, of those that each factor has here."""
    return tuple(", ".join(task) for task in product(*(map(level_text, levels[name]) for name in spec.tasks)))


def bounds_of(spec: ScoresSpec, metric: str, task: str) -> tuple[float, float] | None:
    """The values that become 0 and 1 of a metric on a task; None where it is taken as it is."""
    found = spec.bounds.get(f"{metric}:{task}", spec.bounds.get(metric))
    return (found[0], found[1]) if found else None


def _scale_faults(spec: ScoresSpec, design: Design) -> Iterator[tuple[KeyPath, str]]:
    """Bounds of nothing, bounds the wrong way round, and metrics without bounds beside others."""
    tasks = task_names(spec, selected_levels(spec.select, design.factors))
    possible = task_names(spec, design.known_levels)
    known = [*spec.value, *(f"{metric}:{task}" for metric in spec.value for task in possible)]
    for name in spec.bounds:
        if name not in known:
            yield ("bounds", name), f"no metric of this table and no task of it{nearest_hint(name, known)}"
    for metric in spec.value:
        yield from _metric_scale_faults(spec, metric, tasks)
    if spec.bounds or len(spec.value) == 1:
        return
    yield ("value",), "expected bounds for each metric, since metrics have units of their own, got none"


def _metric_scale_faults(
    spec: ScoresSpec, metric: str, tasks: Sequence[str]
) -> Iterator[tuple[KeyPath, str]]:
    up = find_metric(metric).higher_is_better
    if up is None:
        yield ("value",), f"expected a metric with a better direction, got '{metric}'"
        return
    unbounded = [task for task in tasks if bounds_of(spec, metric, task) is None]
    if spec.bounds and unbounded:
        yield ("bounds",), f"expected bounds of {metric} on each task, got none on {', '.join(unbounded)}"
    for name, (zero, one) in ((name, (each[0], each[1])) for name, each in spec.bounds.items()):
        if name.partition(":")[0] == metric and not (zero < one if up else zero > one):
            better = "more" if up else "less"
            yield (
                ("bounds", name),
                f"expected the worse value first, as {better} is better, got [{zero:g}, {one:g}]",
            )
