"""Scores of methods on tasks: the metrics of all runs, converted to one scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Self

from pydantic import Field

from ..errors import nearest_hint
from ..studies.catalog.metrics import direction_faults, find_metric
from ..studies.presentation.kinds import (
    KeyFault,
    ResultKeys,
    absent_factors,
    column_text,
    factor_faults,
    metric_faults,
    mixed_levels_fault,
    select_faults,
    selected_levels,
)
from ..studies.schema.design import Design
from ..studies.schema.factors import SEED, level_text
from ..studies.schema.settings import Level, NonEmptyNames
from ..studies.text.toml_positions import KeyPath
from .subject import ResultSubject

Bounds = Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=2, max_length=2)]
"""The values that map to the scores 0 and 1."""


RESAMPLES, BOOTSTRAP_SEED = 9_999, 0
"""The number of bootstrap resamples, and their seed."""


class ScoreKeys(ResultKeys):
    """Base class for tables and figures that compare methods over several tasks."""

    value: NonEmptyNames
    """the metric, or several; each metric on each task then counts as a separate task"""
    tasks: NonEmptyNames
    """the factors whose levels (or combinations) are the tasks"""
    bounds: dict[str, Bounds] = Field(default={})
    """the values that map to 0 and 1, by metric or `"metric:level"`, as in `{ max_length = [5, 41] }`"""

    @property
    def methods(self) -> tuple[str, str]:
        """Return the key that names the factor of the methods: `rows` or `series`; and this factor."""
        key = "rows" if "rows" in type(self).model_fields else "series"
        return key, getattr(self, key)

    def with_levels(self, design: Design) -> Self:
        """Replace the names of levels, such as `small`, by their values, in a copy."""
        found, known = super().with_levels(design), design.known_levels
        tasks = task_names(self, known) if all(name in known for name in self.tasks) else ()
        bounds = {column_text(name, tasks): bounds for name, bounds in self.bounds.items()}
        return found.model_copy(update={"bounds": bounds})

    def score_faults(self, design: Design) -> list[KeyFault]:
        """Return the faults of the keys: unknown names, mixed cells, metrics without a common scale."""
        factors = design.known_levels
        faults = [*select_faults(self.select, factors), *metric_faults(self.value)]
        key, methods = self.methods
        named: list[tuple[KeyPath, str]] = [((key,), methods)]
        for number, name in enumerate(self.tasks):
            named.append((("tasks", number) if len(self.tasks) > 1 else ("tasks",), name))
        if faults := [*faults, *factor_faults(named, [name for name in factors if name != SEED])]:
            return faults
        if mixed := mixed_levels_fault((methods, *self.tasks), self.select, design):
            faults.append((("tasks",), mixed))
        if absent := absent_factors((methods, *self.tasks), self.select, design):
            faults.append((("tasks",), f"expected factors that all cells have, got {' and '.join(absent)}"))
        return [*faults, *_scale_faults(self, design)]


def task_names(spec: ScoreKeys, levels: Mapping[str, tuple[Level, ...]]) -> tuple[str, ...]:
    """Return the names of the tasks, one for each combination of levels of the factors in `tasks`."""
    return tuple(", ".join(task) for task in product(*(map(level_text, levels[name]) for name in spec.tasks)))


def bounds_of(spec: ScoreKeys, metric: str, task: str) -> tuple[float, float] | None:
    """Return the metric values that get the scores 0 and 1 on a task; None if none are set."""
    found = spec.bounds.get(f"{metric}:{task}", spec.bounds.get(metric))
    return (found[0], found[1]) if found else None


def _scale_faults(spec: ScoreKeys, design: Design) -> Iterator[KeyFault]:
    tasks = task_names(spec, selected_levels(spec.select, design.factors))
    possible = task_names(spec, design.known_levels)
    known = [*spec.value, *(f"{metric}:{task}" for metric in spec.value for task in possible)]
    for name in spec.bounds:
        if name not in known:
            hint = nearest_hint(name, known)
            yield ("bounds", name), f"expected METRIC or METRIC:TASK of this table or figure{hint}"
    for metric in spec.value:
        if wrong := direction_faults("value", metric):
            yield from wrong
            continue
        up = find_metric(metric).higher_is_better
        unbounded = [task for task in tasks if bounds_of(spec, metric, task) is None]
        if spec.bounds and unbounded:
            yield ("bounds",), f"expected bounds of {metric} on each task, got none on {', '.join(unbounded)}"
        for name, (zero, one) in spec.bounds.items():
            if name.partition(":")[0] == metric and not (zero < one if up else zero > one):
                why = f"as {'more' if up else 'less'} is better"
                yield ("bounds", name), f"expected the worse value first, {why}, got [{zero:g}, {one:g}]"
    if not spec.bounds and len(spec.value) > 1:
        yield ("value",), "the metrics differ in units: expected bounds for each metric, got none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The scores of all methods on all tasks.

    `runs` maps the name of a method to a list of scores for each task. `sign` is −1 if lower is better; for
    scores with bounds it is always 1. `limits` are the lowest and the highest possible score on each task.
    `gaps` counts the `planned` trials without a value, by status.
    """

    tasks: tuple[str, ...]
    runs: Mapping[str, tuple[tuple[float, ...], ...]]
    sign: int
    limits: tuple[tuple[float, float], ...]
    gaps: Counter[str]
    planned: int

    def lost(self, method: str) -> tuple[str, ...]:
        """Return the tasks on which no run of a method has a value."""
        return tuple(task for task, runs in zip(self.tasks, self.runs[method], strict=True) if not runs)

    @property
    def run_counts(self) -> tuple[int, int]:
        """Return the smallest and the largest number of runs per method and task, if it has any."""
        counts = [len(task) for tasks in self.runs.values() for task in tasks if task] or [0]
        return min(counts), max(counts)


def collect_scores(spec: ScoreKeys, subject: ResultSubject) -> Scores:
    """Return the scores of all methods on all tasks that a table or figure shows."""
    levels = subject.levels
    names = task_names(spec, levels)
    _, factor = spec.methods
    methods = [level_text(level) for level in levels[factor]]
    found: dict[str, list[tuple[float, ...]]] = {method: [] for method in methods}
    gaps, planned, tasks, limits = Counter[str](), 0, list[str](), list[tuple[float, float]]()
    for metric in spec.value:
        observations = subject.observe(metric)
        by_place = dict[tuple[str, str], list[float]]()
        for trial, value in observations.values:
            own = trial.levels
            task = ", ".join(level_text(own[name]) for name in spec.tasks)
            zero, one = bounds_of(spec, metric, task) or (0.0, 1.0)
            by_place.setdefault((level_text(own[factor]), task), []).append((value - zero) / (one - zero))
        for task in names:
            zero, one = bounds_of(spec, metric, task) or (0.0, 1.0)
            low, high = sorted((end - zero) / (one - zero) for end in find_metric(metric).bounds)
            limits.append((low, high))
            tasks.append(f"{metric} of {task}" if len(spec.value) > 1 else task)
            for method in methods:
                # sorted, so that resamples do not depend on the order of rows in the store
                found[method].append(tuple(sorted(by_place.get((method, task), ()))))
        gaps += observations.gaps
        planned += observations.planned
    is_less = not spec.bounds and any(find_metric(name).higher_is_better is False for name in spec.value)
    return Scores(
        tasks=tuple(tasks),
        runs={method: tuple(runs) for method, runs in found.items()},
        sign=-1 if is_less else 1,
        limits=tuple(limits),
        gaps=gaps,
        planned=planned,
    )


def scale_sentences(spec: ScoreKeys, subject: ResultSubject) -> Iterator[str]:
    """Yield sentences on the metric values that get the scores 0 and 1; those that tasks share, once."""
    tasks = task_names(spec, subject.levels)
    for metric in spec.value:
        found = {task: bounds_of(spec, metric, task) for task in tasks}
        words = {task: f"{each[0]:g} to {each[1]:g}" if each else "" for task, each in found.items()}
        parts = [f"{each} on {task}" for task, each in words.items()]
        if len(set(found.values())) == 1:
            parts = list(words.values())[:1]
        if any(found.values()):
            yield f"Scores: {metric} from {', '.join(parts)} as 0 to 1."
