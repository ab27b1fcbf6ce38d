"""Performance profiles: the share of runs that are better than each score (Agarwal et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from ...studies.catalog.metrics import find_metric
from ...studies.planning.probe_targets import probe_command
from ...studies.presentation.metric_words import difference_sentence, with_true_title
from ...studies.presentation.scores import ProfileSpec
from ...studies.presentation.selection import describe_levels, fixed_levels, selected_levels
from ...studies.schema.design import level_key
from ...studies.schema.factors import SEED
from ...studies.schema.level_names import level_text, one_line, short_level_names
from ...studies.study import Study
from ..observations import selected_trials
from ..outcomes import omitted_trials
from ..provenance import provenance
from ..scores import Scores, collect_scores, scale_sentences
from ..statistics.stratified_bootstrap import aggregate_all, share_above
from .curve import Axis, Curve, Line, Lines, Panel, Point

_THRESHOLDS = 101
"""A profile is told at so many scores."""


def profile_figure(study: Study, spec: ProfileSpec, outcomes: pl.DataFrame) -> Curve:
    """The figure that `spec` describes, over the study's trials in `outcomes`."""
    scores, trials = collect_scores(study, spec, outcomes), selected_trials(study, spec.select)
    settings = [trial.settings for trial in trials]
    metrics = [with_true_title(find_metric(name), settings)[0] for name in spec.value]
    shown = (spec.series, *spec.tasks, SEED)
    fixed = fixed_levels([trial.levels for trial in trials], shown, study.design)
    title = metrics[0].axis_title or metrics[0].title
    x = title if len(metrics) == 1 and not spec.bounds else "Score"
    side = "more than" if scores.sign > 0 else "less than"
    what = " and ".join(metric.axis_title or metric.title for metric in metrics)
    caption = f"{what}: share of runs with {side} a score" + (f"; {describe_levels(fixed)}" if fixed else "")
    difference = difference_sentence(metrics, settings)
    return Curve(
        name=spec.name,
        caption=one_line(spec.caption or caption).removesuffix("."),
        notes=(
            *((f"At {describe_levels(fixed)}.",) if spec.caption and fixed else ()),
            *([difference] if difference else []),
            *_notes(study, spec, scores),
            *omitted_trials(scores.gaps, scores.planned, probe_command(study.name)),
        ),
        x=Axis(title=one_line(x)),
        y=Axis(title=f"Share of runs with {side} this"),
        panels=(Panel(title="", content=Lines(lines=tuple(_lines(study, spec, scores)), ranked=True)),),
        provenance=provenance(scores.trials, outcomes),
    )


def _lines(study: Study, spec: ProfileSpec, scores: Scores) -> Iterator[Line]:
    """A line for each method that has a value on each task."""
    levels = selected_levels(spec.select, study.factors)[spec.series]
    names = short_level_names(levels)
    if not all(isinstance(level, str) for level in levels):
        names = tuple(f"{one_line(spec.series)} {name}" for name in names)
    accented = None if spec.accent is None else level_key(spec.accent)
    places = [number for number, level in enumerate(levels) if level_key(level) == accented]
    every = [run for runs in scores.runs.values() for task in runs for run in task]
    if not every:
        return
    thresholds = np.linspace(min(every), max(every), _THRESHOLDS).tolist()
    for number, (level, name) in enumerate(zip(levels, names, strict=True)):
        if not scores.lost(level_text(level)):
            yield Line(
                name=name,
                number=number - sum(place < number for place in places),
                points=tuple(_points(scores.runs[level_text(level)], thresholds, spec, scores.sign)),
                accent=number in places,
            )


def _points(
    runs: Sequence[Sequence[float]], thresholds: Sequence[float], spec: ProfileSpec, sign: int
) -> Iterator[Point]:
    """The share of runs beyond each threshold, with its interval where some task has runs on both sides."""
    statistics = {}
    for number, threshold in enumerate(thresholds):
        open_tasks = sum(min(task) <= threshold <= max(task) and min(task) < max(task) for task in runs)
        statistics[str(number)] = share_above(threshold, sign=sign, deciding=max(open_tasks, 1))
    found = aggregate_all(runs, statistics, resamples=spec.resamples, seed=spec.bootstrap_seed)
    count = sum(map(len, runs))
    for threshold, each in zip(thresholds, found.values(), strict=True):
        yield Point(x=threshold, y=each.value, low=each.low, high=each.high, n=count)


def _notes(study: Study, spec: ProfileSpec, scores: Scores) -> Iterator[str]:
    """What lines and bands are, and the methods that have none."""
    lost = [method for method in scores.runs if scores.lost(method)]
    if len(lost) == len(scores.runs):
        yield "Nothing to draw: no level has values on all tasks."
        return
    low, high = scores.run_counts
    seeds = f"{low} to {high}" if low < high else f"{high}"
    yield from scale_sentences(study, spec)
    yield (
        f"Line: mean over {len(scores.tasks)} tasks of the share of {seeds} seeds; band: 95 % interval of"
        f" each point by a bootstrap of the seeds within tasks ({spec.resamples:,} resamples,"
        f" seed {spec.bootstrap_seed}), none where all seeds of each task agree."
    )
    if lost:
        yield f"Without a value on some task: {', '.join(lost)}."
