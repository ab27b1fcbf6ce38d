"""The caption of a table: the meaning of its numbers, its trials, and its marks."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...studies.catalog.metrics import Metric, find_metric
from ...studies.planning.trial_values import ValueStatus
from ...studies.presentation.kinds import describe_levels
from ...studies.presentation.metric_words import difference_sentence, in_sentence, with_true_title
from ...studies.schema.factors import SEED, one_line
from ...studies.schema.settings import Level, TrialSettings
from ...studies.text.units import number_range, plural
from ..statistics.decided_differences import SIGNIFICANCE_LEVEL
from .differences import (
    BestOfColumn,
    detectable_words,
    differences_sentences,
    looks_sentence,
    test_words,
)
from .published import PublishedMatch
from .table import NOT_RUN, Cell, CellStatus, Footnotes, Table
from .tally import Tally

if TYPE_CHECKING:
    from ..kinds.cells import CellsTable
    from .cells import TableCells, TableColumn


_CENTERS = {"mean": "mean", "median": "median", "iqm": "interquartile mean"}
SPREADS = {"sd": "± s.d.", "se": "± s.e.", "ci": "[95 % interval]"}


def caption_sentences(made: TableCells, cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return every sentence of the caption of a table with these cells."""
    spec, columns, counts, match = made.spec, made.columns, made.counts, made.published_match
    settings = [trial.settings for trial in made.shown_trials]
    tallies = made.tallies.values()
    subject = caption_start(spec.caption, [column.metric for column in columns])
    at = f", at {describe_levels(made.fixed)}" if made.fixed else ""
    sentences = [f"{subject}{_average(spec, made.levels, tallies)}{at}."]
    if other := next((cell.metric for cell in cells if cell.metric), ""):
        title = with_true_title(find_metric(other), settings)[0].title
        sentences.append(f"In parentheses, as a fallback: {title[0].lower()}{title[1:]}.")
    metrics = [*dict.fromkeys(column.metric for column in columns), *([find_metric(other)] if other else [])]
    sentences += [difference] if (difference := difference_sentence(metrics, settings)) else []
    differences = tuple(made.differences.values())
    sentences += differences_sentences(differences, made.baseline, spec.significance, counts)
    sentences += _best(spec, columns, cells, made.best_of_columns)
    sentences += [looks_sentence(counts)] if len(counts) > 1 else []
    if match and any(cell.published for cell in cells):
        sentences += [_published(spec, match, cells), made.study.source_sheet.summary(made.study.name)]
    pending = {why for tally in tallies for status, why in tally.gaps if status == ValueStatus.PENDING}
    words = {
        CellStatus.CENSORED: ["> marks a lower bound: some trainings ended before the target."],
        CellStatus.BEGUN: ["begun: some trials have begun, none has ended."],
        CellStatus.PENDING: [f"pending: {why}." for why in sorted(pending)],
        CellStatus.REFUSED: ["refused: exceeds the study's budget."],
        CellStatus.MISSING: [f"{NOT_RUN}: not run."],
    }
    there = {cell.status for cell in cells}
    return (*sentences, *(each for status, told in words.items() if status in there for each in told))


def caption_start(caption: str | None, metrics: Sequence[Metric]) -> str:
    """Return the beginning of a caption: the study's text, or the titles of the metrics."""
    first, *others = dict.fromkeys(metric.title for metric in metrics)
    return one_line(caption or "; ".join([first, *map(in_sentence, others)])).removesuffix(".")


def _average(spec: CellsTable, levels: Mapping[str, tuple[Level, ...]], tallies: Collection[Tally]) -> str:
    """Describe how each number summarises its planned trials; "" if there are no trials."""
    counts = {factor: len(levels[factor]) for factor in spec.over if len(levels[factor]) > 1}
    seeds = len(levels[SEED])
    if not tallies:
        return ""
    combinations = math.prod(counts.values())
    full = seeds * combinations
    known = [seeds] if spec.pick else sorted({max(tally.trials, full) // combinations for tally in tallies})
    over = "one seed" if known == [1] else f"{number_range(known)} seeds"
    up_to = "" if all(tally.label or tally.trials >= full for tally in tallies) else "up to "
    levels_over = [
        f"{count} of {factor}" if place else f"{up_to}{count} levels of {factor}"
        for place, (factor, count) in enumerate(counts.items())
    ]
    if spec.pick is None:
        over = _listed([over, *levels_over])
    averaged = "" if over == "one seed" else f"{_CENTERS[spec.center]} {SPREADS[spec.spread]} of "
    best_of = f", each cell at its best of {_listed(levels_over)}" if spec.pick and counts else ""
    return f": {averaged}{over}{best_of}"


def _listed(words: Sequence[str]) -> str:
    """Join words as `a`, `a and b`, or `a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _best(
    spec: CellsTable, columns: Sequence[TableColumn], cells: Sequence[Cell], best: Sequence[BestOfColumn]
) -> list[str]:
    if not any(cell.best for cell in cells):
        return []
    sides = {column.metric.higher_is_better for column in columns} - {None}
    side = "best" if len(sides) > 1 else "highest" if True in sides else "lowest"
    if spec.best == "shown":
        return [f"Bold: {side} in its column, with all ties at the shown precision."]
    tested = [column for column in best if column.pairs]
    if not tested:
        return ["Bold: no value in its column is provably better with these seeds."]
    pairs = sorted({column.pairs for column in tested})
    how = test_words([each for column in tested for each in column.tested])
    limits = detectable_words(
        [(column.metric, column.detectable) for column in tested if column.detectable is not None]
    )
    family = f"Holm over {number_range(pairs)} pairs of the column{limits}"
    rule = f"p < {SIGNIFICANCE_LEVEL}, {how}; {family}"
    return [f"Bold: no value in its column is significantly better ({rule}).", *_rivals(spec, tested)]


def _rivals(spec: CellsTable, best: Sequence[BestOfColumn]) -> list[str]:
    """Return how many bold values are shown to equal the best, if the table has a smallest difference."""
    rivals = [(column.metric, each) for column in best for each in column.rivals.values()]
    if not rivals:
        return []
    margins = {metric.name: metric.format(spec.margin(metric.name) or 0.0) for metric, _ in rivals}
    near = ", ".join(f"{name} {margin}" for name, margin in margins.items())
    within = sum(each.is_within for _, each in rivals)
    return [
        f"Of {plural(len(rivals), 'bold value')} beside the best of its column, {within} "
        f"{'is' if within == 1 else 'are'} shown to be nearer to it than {near}; all others are undecided."
    ]


def _published(spec: CellsTable, published_match: PublishedMatch, cells: Sequence[Cell]) -> str:
    source = f"published, {published_match.paper.paper} {published_match.paper.name}"
    if spec.published.show == "columns":
        return f"Under published: {source.removeprefix('published, ')}."
    extra = "; in parentheses: our value minus the paper's" if spec.published.show == "difference" else ""
    return f"Small: {source}{extra if any('(' in cell.published_text for cell in cells) else ''}."


SOLVED_LENGTH = "max_length"
"""The metric that is 0 if a training has not solved the first length of its curriculum."""


def unsolved_sentence(lengths: Collection[float], settings: Iterable[TrialSettings]) -> str:
    """Return a hint if the solved lengths of these trainings are all 0, else ""."""
    starts = {each.train.curriculum.start for each in settings if each.train.curriculum is not None}
    if not starts or set(lengths) != {0.0}:
        return ""
    first = number_range(sorted(starts))
    return f"no training solved length {first}, the start of the curriculum: train longer or start shorter"


def note_unsolved(table: Table, settings: Iterable[TrialSettings]) -> Table:
    """Return a table of these trainings, with a footnote if all its solved lengths are 0."""
    columns = [number for number, key in enumerate(table.keys) if key and key.metric == SOLVED_LENGTH]
    places = {
        (row, number)
        for row, cells in enumerate(table.cells)
        for number in columns
        if cells[number].estimate is not None and not cells[number].metric
    }
    lengths = [estimate.value for row, number in places if (estimate := table.cells[row][number].estimate)]
    sentence = unsolved_sentence(lengths, settings)
    if not sentence:
        return table
    notes = Footnotes()
    for note in table.footnotes:
        notes.mark(note.text)
    mark = notes.mark(sentence)
    cells = tuple(
        tuple(
            replace(cell, marks=(*cell.marks, mark)) if (row, number) in places else cell
            for number, cell in enumerate(line)
        )
        for row, line in enumerate(table.cells)
    )
    return replace(table, cells=cells, footnotes=notes.as_tuple())
