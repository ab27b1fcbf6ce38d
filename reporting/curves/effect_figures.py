"""The figures of a grid's model: the means at the levels of its factors, or at those of two together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from ...studies.catalog.metrics import Metric, find_metric
from ...studies.planning.probe_targets import probe_command
from ...studies.presentation.effect_figures import EffectsCurveSpec, InteractionSpec
from ...studies.presentation.metric_words import difference_sentence, with_true_title
from ...studies.presentation.selection import describe_levels, fixed_levels
from ...studies.schema.design import level_key
from ...studies.schema.factors import SEED
from ...studies.schema.level_names import level_names, one_line, short_level_names
from ...studies.schema.settings import Level
from ...studies.study import Study
from ...studies.text.units import degrees_of_freedom
from ..factor_models import StudyModel, model_factors
from ..observations import observe, selected_trials, shown_factors
from ..outcomes import omitted_trials
from ..provenance import provenance
from ..statistics.effect_words import effect_words
from ..statistics.estimates import mean
from .curve import Axis, Bar, Curve, Effects, FactorMeans, Interaction, Line, Panel, Point

NOT_TOLD = "cannot be told"
"""What stands in place of a mean that the cells cannot tell."""


def effect_figure(study: Study, spec: EffectsCurveSpec | InteractionSpec, outcomes: pl.DataFrame) -> Curve:
    """The figure that `spec` describes, which fits the study."""
    factors = shown_factors(study, spec.select)
    trials = selected_trials(study, spec.select)
    settings = [trial.settings for trial in trials]
    metric = with_true_title(find_metric(spec.value), settings)[0]
    observations = observe(study, spec.select, spec.value, outcomes)
    with_interactions = isinstance(spec, InteractionSpec) or spec.interactions
    found = model_factors(observations, factors, interactions=with_interactions)
    content = (
        _interaction(spec, found, factors)
        if isinstance(spec, InteractionSpec)
        else _effects(found, factors, metric)
    )
    shown = (*factors, SEED)
    fixed = fixed_levels([trial.levels for trial in trials], shown, study.design)
    difference = difference_sentence([metric], settings)
    return Curve(
        name=spec.name,
        caption=one_line(spec.caption or _caption(spec, metric, fixed)).removesuffix("."),
        notes=(
            *((f"At {describe_levels(fixed)}.",) if spec.caption and fixed else ()),
            *([difference] if difference else []),
            *_notes(spec, found),
            *omitted_trials(
                observations.gaps,
                len(observations.values) + observations.gaps.total(),
                probe_command(study.name),
            ),
        ),
        x=Axis(
            title=one_line(spec.x) if isinstance(spec, InteractionSpec) else metric.axis_title or metric.title
        ),
        y=Axis(title=metric.axis_title or metric.title),
        panels=(Panel(title="", content=content),),
        provenance=provenance(observations.trials, outcomes),
    )


def _effects(found: StudyModel, factors: Mapping[str, tuple[Level, ...]], metric: Metric) -> Effects:
    """The means at each level of every factor."""
    effects = {effect.term: effect for effect in found.model.effects()} if found.model else {}
    groups = list[FactorMeans]()
    for name, levels in factors.items():
        means, effect = found.level_means(name), effects.get((name,))
        told = []
        for level, text in zip(levels, level_names(levels), strict=True):
            contrast = means.get((level_key(level),))
            if contrast is None:
                lost = not means and len(found.observed[name]) > 1
                told.append(Bar(name=text, text=NOT_TOLD if lost else "–"))
                continue
            number = metric.format(contrast.value)
            told.append(
                Bar(name=text, text=number, value=contrast.value, low=contrast.low, high=contrast.high)
            )
        words = effect_words(effect.p, effect.share) if effect else ""
        groups.append(FactorMeans(name=one_line(name), text=words, means=tuple(told)))
    values = [each.value for each in found.observations.values]
    return Effects(factors=tuple(groups), center=mean(values) if values else None)


def _interaction(
    spec: InteractionSpec, found: StudyModel, factors: Mapping[str, tuple[Level, ...]]
) -> Interaction:
    """A line for each level of the series; a combination that the cells cannot tell has no point."""
    means = found.level_means(spec.x, spec.series) if {spec.x, spec.series} <= factors.keys() else {}
    xs, series = factors.get(spec.x, ()), factors.get(spec.series, ())
    names = short_level_names(series)
    if not all(isinstance(level, str) for level in series):
        names = tuple(f"{one_line(spec.series)} {name}" for name in names)
    accent = None if spec.accent is None else level_key(spec.accent)
    keys = [level_key(level) for level in series]
    accented = keys.index(accent) if accent in keys else None
    lines = list[Line]()
    for number, (key, name) in enumerate(zip(keys, names, strict=True)):
        points = [
            Point(x=float(at), y=contrast.value, low=contrast.low, high=contrast.high)
            for at, level in enumerate(xs)
            if (contrast := means.get((level_key(level), key))) is not None
        ]
        if points:
            lines.append(
                Line(
                    name=name,
                    number=number - (accented is not None and accented < number),
                    points=tuple(points),
                    accent=accented == number,
                )
            )
    return Interaction(levels=level_names(xs), lines=tuple(lines))


def _caption(spec: EffectsCurveSpec | InteractionSpec, metric: Metric, fixed: Mapping[str, Level]) -> str:
    what = metric.axis_title or metric.title
    if isinstance(spec, InteractionSpec):
        by = f"by {one_line(spec.x)} and {one_line(spec.series)}"
    else:
        by = "at the levels of each factor"
    return f"{what}{',' if ',' in what else ''} {by}" + (f"; {describe_levels(fixed)}" if fixed else "")


def _notes(spec: EffectsCurveSpec | InteractionSpec, found: StudyModel) -> Iterator[str]:
    """What a point, its whisker and the words beside it are."""
    if found.model is None:
        yield "Nothing to draw: no factor has values at several levels."
        return
    error = found.model.error
    yield "Point: mean over all levels of the other factors alike, by a linear model with seeds as blocks" + (
        "; whisker: 95 % interval without what seeds have in common." if error else "; no interval is known."
    )
    if isinstance(spec, EffectsCurveSpec):
        tests = sum(effect.p is not None for effect in found.model.effects())
        yield "Dotted: the mean of all values. η²: share of the sum of squares" + (
            f"; p: F test, {degrees_of_freedom([error.degrees])}, Holm over {tests} effects."
            if error
            else "."
        )
    elif (spec.x, spec.series) not in found.model.told and (spec.series, spec.x) not in found.model.told:
        yield "The cells cannot tell this interaction, which is taken to be nothing."
