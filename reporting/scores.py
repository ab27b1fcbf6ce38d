"""The scores of methods on tasks: the values of each method's runs, task by task, put on one scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ..studies.catalog.metrics import find_metric
from ..studies.presentation.scores import ScoresSpec, bounds_of, task_names
from ..studies.presentation.selection import selected_levels
from ..studies.schema.level_names import level_text
from ..studies.study import Study
from .observations import Observation, observe


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The scores of every method by the text of its level: for each of `tasks` those of its runs.

    `sign` is −1 where less is better, which it never is of what has bounds. `gaps` counts the trials without
    a value of `planned` by status; `trials` are all that are selected.
    """

    tasks: tuple[str, ...]
    runs: Mapping[str, tuple[tuple[float, ...], ...]]
    sign: int
    gaps: Counter[str]
    planned: int
    trials: tuple[str, ...]

    def lost(self, method: str) -> tuple[str, ...]:
        """The tasks on which a method has no value."""
        return tuple(task for task, runs in zip(self.tasks, self.runs[method], strict=True) if not runs)

    @property
    def run_counts(self) -> tuple[int, int]:
        """The fewest and the most runs of a method on a task, of those with any."""
        counts = [len(task) for tasks in self.runs.values() for task in tasks if task] or [0]
        return min(counts), max(counts)


def collect_scores(study: Study, spec: ScoresSpec, outcomes: pl.DataFrame) -> Scores:
    """The scores that a table or a figure is of, from the store's latest attempts."""
    levels = selected_levels(spec.select, study.factors)
    names = task_names(spec, levels)
    _, factor = spec.methods
    methods = [level_text(level) for level in levels[factor]]
    found: dict[str, list[tuple[float, ...]]] = {method: [] for method in methods}
    gaps, planned, trials, tasks = Counter[str](), 0, dict[str, None](), list[str]()
    for metric in spec.value:
        observations = observe(study, spec.select, metric, outcomes)
        by_place = dict[tuple[str, str], list[float]]()
        for each in observations.values:
            task = _task(spec.tasks, each)
            score = _scaled(each.value, bounds_of(spec, metric, task))
            by_place.setdefault((level_text(each.levels[factor]), task), []).append(score)
        for task in names:
            tasks.append(f"{metric} of {task}" if len(spec.value) > 1 else task)
            for method in methods:
                found[method].append(tuple(sorted(by_place.get((method, task), ()))))
        gaps += observations.gaps
        planned += len(observations.values) + observations.gaps.total()
        trials |= dict.fromkeys(observations.trials)
    is_less = not spec.bounds and any(find_metric(name).higher_is_better is False for name in spec.value)
    return Scores(
        tasks=tuple(tasks),
        runs={method: tuple(runs) for method, runs in found.items()},
        sign=-1 if is_less else 1,
        gaps=gaps,
        planned=planned,
        trials=tuple(trials),
    )


def _task(factors: Sequence[str], observation: Observation) -> str:
    return ", ".join(level_text(observation.levels[name]) for name in factors)


def _scaled(value: float, bounds: tuple[float, float] | None) -> float:
    if bounds is None:
        return value
    zero, one = bounds
    return (value - zero) / (one - zero)


def scale_sentences(study: Study, spec: ScoresSpec) -> Iterator[str]:
    """Which values became 0 and 1; those that tasks have alike are told once."""
    tasks = task_names(spec, selected_levels(spec.select, study.factors))
    for metric in spec.value:
        found = {task: bounds_of(spec, metric, task) for task in tasks}
        shared = set(found.values())
        if shared == {None}:
            continue
        if len(shared) == 1:
            told = [_bounds_words(next(iter(shared)))]
        else:
            told = [f"{_bounds_words(bounds)} on {task}" for task, bounds in found.items()]
        yield f"Scores: {metric} from {', '.join(told)} as 0 to 1."


def _bounds_words(bounds: tuple[float, float] | None) -> str:
    return f"{bounds[0]:g} to {bounds[1]:g}" if bounds else ""
