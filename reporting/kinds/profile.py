"""`profile`: the share of runs that exceed each score, by method (Agarwal et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import polars as pl

from ...studies.presentation.kinds import CurveKind, KeyFault, describe_levels
from ...studies.schema.design import Design
from ...studies.schema.factors import SEED, level_key, level_text, named_levels, one_line
from ...studies.study import Study
from ...studies.text.units import number_range
from ..curves.curve import Axis, Curve, Line, Panel, Point, subject_curve
from ..scores import BOOTSTRAP_SEED, RESAMPLES, ScoreKeys, Scores, collect_scores, scale_sentences
from ..subject import ResultSubject
from .line import Lines

_THRESHOLDS = 101
"""The number of thresholds of a profile."""


class ProfileFigure(ScoreKeys, CurveKind):
    """`[[curve]] kind = "profile"`: the share of runs above each score, one line for each method."""

    kind: Literal["profile"]
    series: str
    """the factor whose levels are compared, at most 6"""
    accent: Any = None
    """the only level of `series` in colour"""

    def faults(self, design: Design, paper: str | None) -> list[KeyFault]:
        factors = design.known_levels
        return self.score_faults(design) or [
            *self.series_faults(self.series, factors),
            *self.level_faults(factors),
        ]

    def curve(self, study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> Curve:
        subject = ResultSubject(study, self.select, outcomes)
        scores = collect_scores(self, subject)
        shown = [subject.metric(name) for name in self.value]
        fixed = subject.fixed((self.series, *self.tasks, SEED))
        titles = [metric.axis_title or metric.title for metric in shown]
        side = "more than" if scores.sign > 0 else "less than"
        caption = f"{' and '.join(titles)}: share of runs with {side} a score"
        return subject_curve(
            self,
            subject,
            scores,
            caption=caption + (f"; {describe_levels(fixed)}" if fixed else ""),
            fixed=fixed,
            metrics=shown,
            notes=_notes(self, subject, scores),
            x=Axis(title=one_line(titles[0] if len(shown) == 1 and not self.bounds else "Score")),
            y=Axis(title=f"Share of runs with {side} this"),
            panels=(Panel(title="", content=Lines(lines=tuple(_lines(self, subject, scores)), ranked=True)),),
        )


def _lines(spec: ProfileFigure, subject: ResultSubject, scores: Scores) -> Iterator[Line]:
    import numpy as np  # noqa: PLC0415 -- slow to load, and keys do without it

    levels = subject.levels[spec.series]
    names = named_levels(spec.series, levels)
    accented = None if spec.accent is None else level_key(spec.accent)
    every = [run for runs in scores.runs.values() for task in runs for run in task]
    if not every:
        return
    thresholds = np.linspace(min(every), max(every), _THRESHOLDS).tolist()
    for number, (level, name) in enumerate(zip(levels, names, strict=True)):
        if not scores.lost(level_text(level)):
            yield Line(
                name=name,
                number=number,
                points=tuple(_points(scores.runs[level_text(level)], thresholds, scores.sign)),
                accent=level_key(level) == accented,
            )


def _points(runs: Sequence[Sequence[float]], thresholds: Sequence[float], sign: int) -> Iterator[Point]:
    """Yield the share of runs above each threshold, with its interval.

    Above means better. There is no interval if on every task all runs are on the same side of the threshold.
    """
    from ..statistics.stratified_bootstrap import aggregate_all, share_above  # noqa: PLC0415 -- loads NumPy

    statistics = {}
    for number, threshold in enumerate(thresholds):
        # tasks on which all runs are on one side have no variance, so they add no degrees of freedom
        open_tasks = sum(min(task) <= threshold <= max(task) and min(task) < max(task) for task in runs)
        statistics[str(number)] = share_above(threshold, sign=sign, deciding=max(open_tasks, 1))
    found = aggregate_all(runs, statistics, resamples=RESAMPLES, seed=BOOTSTRAP_SEED)
    count = sum(map(len, runs))
    for threshold, each in zip(thresholds, found.values(), strict=True):
        yield Point(x=threshold, y=each.value, low=each.low, high=each.high, n=count)


def _notes(spec: ProfileFigure, subject: ResultSubject, scores: Scores) -> Iterator[str]:
    lost = [method for method in scores.runs if scores.lost(method)]
    if len(lost) == len(scores.runs):
        yield "Nothing to draw: no level has values on all tasks."
        return
    yield from scale_sentences(spec, subject)
    yield (
        f"Line: mean over {len(scores.tasks)} tasks of the share of {number_range(scores.run_counts)} seeds;"
        " band: 95 % interval of each point by a bootstrap of the seeds within tasks"
        f" ({RESAMPLES:,} resamples, seed {BOOTSTRAP_SEED}), none if all seeds of each task agree."
    )
    if lost:
        yield f"Without a value for some task: {', '.join(lost)}."


CURVE = ProfileFigure
