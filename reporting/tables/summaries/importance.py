"""`kind = "importance"`: which dimensions of a search matter, by fANOVA and PED-ANOVA with intervals."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ....studies.catalog.metrics import Metric, find_metric
from ....studies.planning.probe_targets import probe_command
from ....studies.presentation.metric_words import difference_sentence, with_true_title
from ....studies.presentation.search import ImportanceSpec
from ....studies.schema.level_names import one_line
from ....studies.searches.best_points import comparison_note
from ....studies.searches.points import SearchPoints, find_points
from ....studies.searches.words import beyond_sentence
from ....studies.study import Study
from ...outcomes import omitted_trials
from ...provenance import provenance
from ...search.importance import MIN_POINTS, Importance, Importances, ImportanceShare, find_importances
from ...statistics.effect_words import format_share
from ...statistics.estimates import Estimate
from ..table import Cell, CellStatus, ColumnKey, Footnotes, Table
from ..tally import NOT_RUN

_COLUMNS = {"fanova": "fANOVA", "ped_anova": "PED-ANOVA", "points": "points"}
_EVERYWHERE, _SOME, _BESIDES = "of all points", "of the points that take it", "besides"


def importance_table(study: Study, spec: ImportanceSpec, outcomes: pl.DataFrame) -> Table:
    """The table that `spec` describes, over all that the search has tried in `outcomes`."""
    found = find_points(study, outcomes, spec.value)
    settings = [trial.settings for trial in found.trained]
    name = spec.value[0] if spec.value else found.goals[0].metric
    metric = with_true_title(find_metric(name), settings)[0]
    importances = find_importances(
        study.dimensions,
        found,
        name,
        found.sign(metric),
        top=spec.top,
        resamples=spec.resamples,
        seed=spec.bootstrap_seed,
    )
    shown, rest = importances.dimensions, importances.rest
    return Table(
        name=spec.name,
        caption=tuple(_sentences(study, spec, found, metric, importances)),
        corner="dimension",
        rows=(*(one_line(each.name) for each in shown), *(["interactions"] if rest else [])),
        columns=tuple(_COLUMNS.values()),
        cells=(
            *(_cells(each) for each in shown),
            *([(_share(rest, importances.points), _empty(), _empty())] if rest else []),
        ),
        footnotes=Footnotes().as_tuple(),
        provenance=provenance([trial.id for trial in found.trained], outcomes),
        keys=tuple(ColumnKey(metric=metric.name, level=kind) for kind in _COLUMNS),
        groups=(
            *(_EVERYWHERE if each.is_everywhere else _SOME for each in shown),
            *([_BESIDES] if rest else []),
        ),
        spread="ci",
    )


def _cells(each: Importance) -> tuple[Cell, ...]:
    count = Estimate(value=each.points, low=None, high=None, spread=None, n=1)
    points = Cell(status=CellStatus.DONE, estimate=count, text=str(each.points))
    return _share(each.variance, each.points), _share(each.best, each.points), points


def _share(share: ImportanceShare | None, count: int) -> Cell:
    """A share in per cent with its interval."""
    if share is None:
        return Cell(status=CellStatus.NO_VALUE, text=NOT_RUN)
    half = (share.high - share.low) / 2
    return Cell(
        status=CellStatus.DONE,
        estimate=Estimate(value=share.value, low=share.low, high=share.high, spread=half, n=count),
        text=format_share(share.value),
        interval=f"[{100 * share.low:.0f}, {100 * share.high:.0f}]",
    )


def _empty() -> Cell:
    return Cell(status=CellStatus.DONE)


def _sentences(
    study: Study, spec: ImportanceSpec, found: SearchPoints, metric: Metric, importances: Importances
) -> Iterator[str]:
    """Every sentence of the caption."""
    subject = one_line(spec.caption or metric.title).removesuffix(".")
    count = importances.points
    yield f"{subject}: what the dimensions of the search account for, over {count} points."
    if count < MIN_POINTS:
        yield f"With fewer than {MIN_POINTS} points nothing can be said."
    else:
        yield (
            "fANOVA: share of the variance over the whole space that a dimension accounts for by itself"
            " (Hutter et al. 2014); interactions: what all these leave over."
        )
        yield (
            f"PED-ANOVA: how much its values differ between the best {100 * spec.top:g} % of the points and"
            " all, as a share (Watanabe et al. 2023)."
        )
        yield (
            f"In brackets: 95 % interval in per cent, of points drawn anew ({spec.resamples:,} times, seed"
            f" {spec.bootstrap_seed})."
        )
    if any(not each.is_everywhere for each in importances.dimensions):
        yield (
            "A dimension that only some points take has its share of the variance among these, which does not"
            " add up with the others."
        )
    if difference := difference_sentence([metric], [trial.settings for trial in found.trained]):
        yield difference
    if note := comparison_note(study):
        yield f"{note[:1].upper()}{note[1:]}."
    yield from beyond_sentence(found)
    yield from omitted_trials(found.gaps, len(found.trained), probe_command(study.name))
