"""`kind = "effects"`: what each factor of a grid does to a metric, and each two of them together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import polars as pl

from ....studies.catalog.metrics import Metric, find_metric, with_sign
from ....studies.presentation.effects import EffectsSpec
from ....studies.presentation.metric_words import with_true_title
from ....studies.schema.design import level_key
from ....studies.schema.level_names import level_names, one_line
from ....studies.schema.settings import Level
from ....studies.study import Study
from ...factor_models import StudyModel, model_factors
from ...observations import observe, selected_trials, shown_factors
from ...provenance import provenance
from ...statistics.effect_words import format_p, format_share
from ...statistics.estimates import Estimate
from ...statistics.factor_effects import Contrast, TermEffect
from ...statistics.factor_terms import Term
from ..axes import metric_head
from ..table import Cell, CellStatus, ColumnKey, Footnotes, Table
from ..tally import NOT_RUN
from .effects_caption import EffectsColumn, effects_sentences

FACTORS, INTERACTIONS, BESIDES = "factors", "interactions", "besides"
"""The headings of rows."""

MAX_LISTED = 3
"""Of more terms than these it is said how many they are."""

_HEADS = {"effect": "effect", "p": "p", "share": "share"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A row: what it is of, and, of a factor with more than two levels, the number of the level."""

    name: str
    heading: str
    term: Term = ()
    level: int | None = None
    besides: str = ""


def effects_table(study: Study, spec: EffectsSpec, outcomes: pl.DataFrame) -> Table:
    """The table that `spec` describes, over the study's trials in `outcomes`."""
    factors = shown_factors(study, spec.select)
    trials = selected_trials(study, spec.select)
    settings = [trial.settings for trial in trials]
    named = [with_true_title(find_metric(name, spec.digits), settings) for name in spec.value]
    columns = [_column(study, metric, factors, spec, outcomes) for metric, _ in named]
    rows, notes = list(_rows(factors, columns)), Footnotes()
    metrics = [column.metric for column in columns]
    headed = [metric_head(metric, words) for metric, words in named for _ in _HEADS]
    return Table(
        name=spec.name,
        caption=effects_sentences(spec, study, factors, columns),
        corner="",
        rows=tuple(row.name for row in rows),
        columns=tuple(_HEADS.values()) * len(metrics),
        cells=tuple(
            tuple(chain.from_iterable(_cells(row, column, factors, notes) for column in columns))
            for row in rows
        ),
        footnotes=notes.as_tuple(),
        provenance=provenance(list(dict.fromkeys(trial.id for trial in trials)), outcomes),
        keys=tuple(ColumnKey(metric=metric.name, level=kind) for metric in metrics for kind in _HEADS),
        column_headings=(tuple(headed),) if len(metrics) > 1 else (),
        groups=tuple(row.heading for row in rows),
        spread="ci",
    )


def _column(
    study: Study,
    metric: Metric,
    factors: Mapping[str, tuple[Level, ...]],
    spec: EffectsSpec,
    outcomes: pl.DataFrame,
) -> EffectsColumn:
    observations = observe(study, spec.select, metric.name, outcomes)
    found = model_factors(observations, factors, interactions=spec.interactions)
    effects = {effect.term: effect for effect in found.model.effects()} if found.model else {}
    return EffectsColumn(metric=metric, found=found, effects=effects)


def _rows(factors: Mapping[str, tuple[Level, ...]], columns: Sequence[EffectsColumn]) -> Iterator[_Row]:
    """A row for each factor, below one of many levels each level, then interactions and the rest."""
    for name, levels in factors.items():
        names = level_names(levels)
        if len(levels) == 2:
            yield _Row(name=f"{one_line(name)}: {names[0]} → {names[1]}", heading=FACTORS, term=(name,))
            continue
        yield _Row(name=one_line(name), heading=FACTORS, term=(name,))
        for number, each in enumerate(names):
            yield _Row(name=f"{one_line(name)}: {each}", heading=FACTORS, term=(name,), level=number)
    shown = any(column.tells_of_interactions for column in columns)
    for term in combinations(factors, 2) if shown else ():
        yield _Row(name=" × ".join(map(one_line, term)), heading=INTERACTIONS, term=term)
    shares = [column.found.model.shares for column in columns if column.found.model]
    for key, name in (
        ("seeds", "seeds"),
        ("rest", "what these leave over"),
        ("noise", "noise within cells"),
    ):
        if any(getattr(share, key) is not None for share in shares):
            yield _Row(name=name, heading=BESIDES, besides=key)


def _cells(
    row: _Row, column: EffectsColumn, factors: Mapping[str, tuple[Level, ...]], notes: Footnotes
) -> tuple[Cell, ...]:
    """The effect, p and share of a row for one metric."""
    metric, found = column.metric, column.found
    if row.besides:
        share = getattr(found.model.shares, row.besides) if found.model else None
        return _empty(), _empty(), _number(share, format_share)
    effect = column.effects.get(row.term)
    if effect is None or not effect.contrasts:
        if row.level is not None:
            return _empty(), _empty(), _empty()
        marks = tuple(map(notes.mark, _why_unknown(row.term, effect, column, factors)))
        return Cell(status=CellStatus.MISSING, text=NOT_RUN, marks=marks), _empty(), _empty()
    if row.level is not None:
        contrast = _level_effect(found, row, factors)
        return _effect(contrast, metric, len(found.observations.values)), _empty(), _empty()
    held = effect.aliases if column.tells_of_interactions else ()  # else the caption says it
    many = f"Holds if none of {len(held)} interactions is there."
    few = f"Holds if there is no {_listed(held, 'or')}."
    marks = (notes.mark(few if len(held) <= MAX_LISTED else many),) if held else ()
    if all(len(factors[name]) == 2 for name in row.term):
        first = _effect(effect.contrasts[0], metric, len(found.observations.values), marks)
    else:
        first = Cell(status=CellStatus.DONE, marks=marks)
    return first, _number(effect.p, format_p), _number(effect.share, format_share)


def _level_effect(found: StudyModel, row: _Row, factors: Mapping[str, tuple[Level, ...]]) -> Contrast | None:
    """The effect of one level of a factor; None if the level has no value."""
    (name,) = row.term
    key = level_key(factors[name][row.level or 0])
    observed = [level_key(level) for level in found.observed[name]]
    if found.model is None or key not in observed:
        return None
    return found.model.deviations(name)[observed.index(key)]


def _why_unknown(
    term: Term, effect: TermEffect | None, column: EffectsColumn, factors: Mapping[str, tuple[Level, ...]]
) -> Iterator[str]:
    """Why an effect cannot be told; nothing where no trial has a value."""
    if not column.found.observations.values:
        return
    lost = [name for name in term if len(column.found.observed[name]) < 2]
    if lost:
        yield f"Only one level of {' and of '.join(lost)} has a value."
    elif effect is None:
        return
    elif not effect.is_complete:
        yield f"Not every combination of {' and '.join(term)} has a value."
    elif effect.aliases:
        yield f"Cannot be told from {_listed(effect.aliases, 'and')} in these cells."
    else:
        yield "Cannot be told from the other effects together in these cells."


def _listed(terms: Sequence[Term], word: str) -> str:
    """Terms as a sentence names them, of many how many they are."""
    if len(terms) > MAX_LISTED:
        return f"{len(terms)} others"
    return f" {word} ".join(" × ".join(map(one_line, term)) for term in terms)


def _effect(contrast: Contrast | None, metric: Metric, count: int, marks: tuple[str, ...] = ()) -> Cell:
    """A difference with its sign and its interval."""
    if contrast is None:
        return Cell(status=CellStatus.MISSING, text=NOT_RUN)
    half = None if contrast.low is None else contrast.value - contrast.low
    interval = ""
    if contrast.low is not None and contrast.high is not None:
        interval = f"[{metric.format(contrast.low)}, {metric.format(contrast.high)}]"
    return Cell(
        status=CellStatus.DONE,
        estimate=Estimate(value=contrast.value, low=contrast.low, high=contrast.high, spread=half, n=count),
        text=with_sign(metric.format(contrast.value)),
        interval=interval,
        marks=marks,
    )


def _number(value: float | None, words: Callable[[float], str]) -> Cell:
    """A p or a share; nothing where it is not known."""
    if value is None:
        return _empty()
    estimate = Estimate(value=value, low=None, high=None, spread=None, n=1)
    return Cell(status=CellStatus.DONE, estimate=estimate, text=words(value))


def _empty() -> Cell:
    return Cell(status=CellStatus.DONE)
