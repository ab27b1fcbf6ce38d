"""Differences between the table cells of one column, with their tests.

Each row is compared with its baseline row. The best cells are printed in bold. A cell is among them if its
printed number equals the best one, or if no other cell is significantly better.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...studies.catalog.metrics import Metric, find_metric, is_target
from ...studies.planning.final_values import ValueStatus
from ...studies.presentation.kinds import describe_levels
from ...studies.presentation.metric_words import (
    caution_sentence,
    difference_sentence,
    in_sentence,
    with_true_title,
)
from ...studies.resolve.trial import first_of_each_kind
from ...studies.schema.factors import SEED, one_line
from ...studies.schema.settings import Level, TrialSettings
from ...studies.text.units import degrees_of_freedom, number_range, plural
from ..outcomes import SOLVED_LENGTH, chance_sentence, unsolved_sentence
from ..statistics.decided_differences import (
    SIGNIFICANCE_LEVEL,
    DecidedDifference,
    decide,
    differences_at_looks,
    look_level,
)
from ..statistics.estimates import Estimate, detectable
from ..statistics.pooled_differences import Difference, Differences, all_pairs
from ..statistics.speedup import FIRST_SENTENCE
from .table import NOT_RUN, Cell, CellStatus, Footnotes, Table
from .tally import CellKey, TalliesByLook, Tally

if TYPE_CHECKING:
    from ..kinds.cells import CellsTable
    from .cells import TableCells, TableColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDifferences:
    """The differences in one column of a table, by row.

    `decided` has the decision on each difference. A tested difference has a p-value, corrected for `tests`.
    `families` is the number of groups with their own pooled variance. `detectable` are the differences that
    are detected with a power of 80 % around each baseline; empty if unknown. `choices` is the largest number
    of candidates from which a difference was chosen. `margin` is the smallest difference that matters, if the
    table has one.
    """

    metric: Metric
    by_row: Mapping[str, Difference] = field(default_factory=dict[str, Difference])
    decided: Mapping[str, DecidedDifference] = field(default_factory=dict[str, DecidedDifference])
    families: int = 0
    tests: int = 0
    choices: int = 1
    detectable: tuple[float, ...] = ()
    margin: float | None = None


WITHIN = "≈"
"""The sign of a difference shown to be smaller than the margin."""


def column_differences(
    column: TableColumn,
    baselines: Mapping[str, str],
    look_tallies: TalliesByLook,
    spec: CellsTable,
    *,
    choices: Mapping[str, int],
    counts: Sequence[int],
) -> ColumnDifferences:
    """Return the difference of each row from its baseline, in one column.

    `baselines` maps a row to that other row: the baseline, or the previous row. If a row was kept as the best
    of several, `choices` has their number. `counts` are the numbers of seeds at the looks.
    """
    if not baselines:
        return ColumnDifferences(metric=column.metric)
    own = {
        row: looks
        for (row, level, name), looks in look_tallies.items()
        if (level, name) == (column.level, column.metric.name) and looks[0].values
    }
    margin = spec.margin(column.metric.name)
    values = {row: [tally.values_by_unit for tally in looks] for row, looks in own.items()}
    looked: dict[str, tuple[Difference, ...]] = {}
    last: list[Differences] = []  # of each group of rows, at its last look
    for family in _families(baselines):
        rows = [row for row in family if row in values and baselines[row] in values]
        cells = list(dict.fromkeys(each for row in rows for each in (baselines[row], row)))
        if not rows:
            continue
        pairs = [(cells.index(row), cells.index(baselines[row])) for row in rows]
        step = max(own[row][-1].step for row in cells)
        found = differences_at_looks([values[row] for row in cells], pairs, counts, margin, step=step)
        looked |= {row: each for row, each in zip(rows, found.each, strict=True) if each}
        last.append(found.last)
    of = [choices.get(row, 1) for row in looked]
    decided = {
        row: each
        for row, each in zip(looked, decide(list(looked.values()), counts, of), strict=True)
        if each is not None
    }
    tests = sum(each.p is not None for each in decided.values())
    most = max(of, default=1)
    level = look_level(tuple(counts), SIGNIFICANCE_LEVEL / max(1, tests) / most)
    return ColumnDifferences(
        metric=column.metric,
        by_row={row: each.shown for row, each in decided.items()},
        decided=decided,
        families=len(last),
        tests=tests,
        choices=most,
        detectable=tuple(
            detectable(each.error, each.degrees, level)
            for each in last
            if each.error is not None and each.degrees is not None
        ),
        margin=margin,
    )


def _families(baselines: Mapping[str, str]) -> list[list[str]]:
    """Group the rows that have a baseline in common, directly or through other rows.

    The rows of a group share a pooled variance.
    """
    families: dict[str, list[str]] = {}
    for row in baselines:
        first = baselines[row]
        while first in baselines:  # follow the rows back to one without a baseline
            first = baselines[first]
        families.setdefault(first, []).append(row)
    return list(families.values())


def significance_text(decided: DecidedDifference | None) -> str:
    """Return the mark after a difference: `*`, `≈` or nothing.

    `*` means significant, and `≈` within the margin.

    Return "" if neither is shown.
    """
    if decided is None or decided.p is None:
        return ""
    return "*" * (decided.p < SIGNIFICANCE_LEVEL) + (f" {WITHIN}" if decided.is_within else "")


def differences_sentences(
    columns: Sequence[ColumnDifferences], baseline: str, counts: Sequence[int]
) -> list[str]:
    """Return the caption's sentences about differences and their tests."""
    shown = [column for column in columns if column.by_row]
    if not shown:
        return []
    tested = [column for column in shown if column.tests]
    if not tested:
        return [f"In parentheses: difference from {baseline}."]
    interval = f"{100 * (1 - look_level(tuple(counts), SIGNIFICANCE_LEVEL)):.3g}"
    sentences = [
        f"In parentheses: difference from {baseline}, paired by seed, ± half of its {interval} % interval."
    ]
    sentences.append(_test_sentence(tested))
    if any(column.choices > 1 for column in tested):
        sentences.append(
            "Rows were selected with these seeds as the best of their rounds: "
            "p is multiplied by the number of "
            "candidates, and differences are optimistic."
        )
    return [*sentences, *_margin_sentences(tested)]


def _test_sentence(tested: Sequence[ColumnDifferences]) -> str:
    counts = sorted({column.tests for column in tested})
    family = f"{number_range(counts)} test{'' if counts == [1] else 's'} of the column"
    over = "the cells around each baseline" if any(column.families > 1 for column in tested) else "the column"
    how = test_words([each.shown for column in tested for each in column.decided.values()], over)
    limits = detectable_words([(column.metric, each) for column in tested for each in column.detectable])
    rule = f"{how}; Holm over the {family}{limits}"
    return f"*: p < {SIGNIFICANCE_LEVEL} ({rule})."


def _margin_sentences(tested: Sequence[ColumnDifferences]) -> list[str]:
    margins = {column.metric.name: (column.metric, column.margin) for column in tested}
    known = [f"{name} {metric.format(margin)}" for name, (metric, margin) in margins.items() if margin]
    if not known:
        return []
    judged = [each for column in tested if column.margin for each in column.decided.values()]
    left = sum(not each.is_decided for each in judged)
    undecided = f"{left} of {plural(len(judged), 'difference')} {'is' if left == 1 else 'are'} undecided"
    rule = f"p < {SIGNIFICANCE_LEVEL}, corrected likewise"
    return [f"{WITHIN}: smaller than {', '.join(known)} either way ({rule}); {undecided}."]


def looks_sentence(counts: Sequence[int]) -> str:
    """Return the caption's sentence on interim tests.

    It says at which numbers of seeds differences are tested.
    """
    *first, last = counts
    level = look_level(tuple(counts), SIGNIFICANCE_LEVEL)
    return (
        f"Seeds are added while a difference is undecided: it is tested at {', '.join(map(str, first))} and "
        f"{last} seeds until a test decides it, each at {level:.1%}, and p covers all tests."
    ).replace("%", " %")


def detectable_words(found: Sequence[tuple[Metric, float]], between: str = "") -> str:
    """Describe the smallest differences that are detected with 80 % power.

    There is one for each metric.

    Return "" if no such difference is known.
    """
    limits: dict[str, tuple[Metric, list[float]]] = {}
    for metric, limit in found:
        limits.setdefault(metric.name, (metric, []))[1].append(limit)
    several, parts = False, list[str]()
    for name, (metric, each) in limits.items():
        ends = list(dict.fromkeys(map(metric.format, (min(each), max(each)))))
        several |= len(ends) > 1
        parts.append(f"{name} {' to '.join(ends)}")
    noise = ", depending on the spread," if several else ""
    return f"; {', '.join(parts)} or more{between}{noise} is detected with a power of 80 %" if parts else ""


def test_words(found: Sequence[Difference], over: str = "the column") -> str:
    """Name the tests of these differences for a caption.

    They are the t test, the permutation test, or both.
    """
    degrees = sorted({each.degrees for each in found if each.degrees is not None and not each.is_permuted})
    if not degrees:
        return "paired permutation test"
    variance = f"the variance pooled over {over}, or that of the comparison that varies most if larger"
    pooled = f"t with {variance}, {degrees_of_freedom(degrees)}"
    permuted = any(each.is_permuted for each in found)
    return f"{pooled}, or a paired permutation test with enough seeds" if permuted else pooled


@dataclass(frozen=True, slots=True, kw_only=True)
class BoldCells:
    """The best cells of a column, and the tests that found them.

    `pairs` is the number of pairs for which p is corrected, 0 without a test. `tested` are the differences of
    pairs. `detectable` is the difference that is detected with a power of 80 %; None if a permutation test
    decided. `worse` counts the values that are significantly worse than another. If the table has a smallest
    difference, `rivals` has the differences of the first of the best cells from each of the other best cells.
    """

    metric: Metric
    places: frozenset[CellKey] = frozenset()
    pairs: int = 0
    tested: tuple[Difference, ...] = ()
    detectable: float | None = None
    worse: int = 0
    rivals: Mapping[tuple[CellKey, CellKey], DecidedDifference] = field(
        default_factory=dict[tuple[CellKey, CellKey], DecidedDifference]
    )


def find_bold_cells(
    column: Sequence[CellKey],
    look_tallies: TalliesByLook,
    estimates: Mapping[CellKey, Estimate],
    *,
    metric: Metric,
    spec: CellsTable,
    counts: Sequence[int],
) -> BoldCells:
    """Return the best cells of a column, which are shown in bold.

    No cell is best if there are fewer than two values, if all values are equal, or if the metric has no
    better direction.

    A cell with an infinite value is worse than every other cell, and never best. With `best = "shown"` the
    printed digits decide, so that two equal numbers are both bold or both plain. `counts` are the looks'
    numbers of seeds.
    """
    known = [place for place in column if place in estimates]
    is_infinite = any(place in look_tallies and look_tallies[place][-1].is_infinite for place in column)
    if len(known) < (1 if is_infinite else 2) or metric.higher_is_better is None:
        return BoldCells(metric=metric)
    if len(known) == 1:
        return BoldCells(metric=metric, places=frozenset(known))
    sign = 1 if metric.higher_is_better else -1
    ranked = sorted(known, key=lambda place: -sign * estimates[place].value)
    shown = metric.format(estimates[ranked[0]].value)
    places = [place for place in known if metric.format(estimates[place].value) == shown]
    if len(places) == len(known) and not is_infinite:  # if all are equal, none is best
        return BoldCells(metric=metric)
    if spec.best == "shown":
        return BoldCells(metric=metric, places=frozenset(places))
    pairs, margin = all_pairs(len(ranked)), spec.margin(metric.name)
    cells = [[tally.values_by_unit for tally in look_tallies[place]] for place in ranked]
    step = max(look_tallies[place][-1].step for place in ranked)
    found = differences_at_looks(cells, pairs, counts, margin, step=step)
    decided = dict(zip(pairs, decide(found.each, counts), strict=True))
    known_pairs = {pair: each for pair, each in decided.items() if each is not None and each.p is not None}
    # `ranked` begins with the best, but a pair's shared seeds may order its cells the other way round
    worse = {
        ranked[two if sign * each.shown.mean > 0 else one]
        for (one, two), each in known_pairs.items()
        if each.differs
    }
    limit, error = None, found.last.error
    if found.last.degrees is not None and error is not None and known_pairs:
        level = look_level(tuple(counts), SIGNIFICANCE_LEVEL / len(known_pairs))
        limit = detectable(error, found.last.degrees, level)
    best = [at for at, place in enumerate(ranked) if place not in worse]
    rivals = {} if margin is None else {(best[0], at): decided[best[0], at] for at in best[1:]}
    return BoldCells(
        metric=metric,
        places=frozenset(ranked[at] for at in best),
        pairs=len(known_pairs),
        worse=len(worse),
        tested=tuple(each.shown for each in known_pairs.values()),
        detectable=limit,
        rivals={(ranked[one], ranked[at]): each for (one, at), each in rivals.items() if each is not None},
    )


SPREADS = {"sd": "± s.d.", "se": "± s.e.", "ci": "[95 % interval]"}


def caption_sentences(made: TableCells, cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return the sentences of the caption of a table with these cells."""
    spec, columns, counts, match = made.spec, made.columns, made.counts, made.published_match
    settings = [trial.settings for trial in first_of_each_kind(made.shown_trials)]
    tallies = made.tallies.values()
    subject = caption_start(spec.caption, [column.metric for column in columns])
    at = f", at {describe_levels(made.fixed)}" if made.fixed else ""
    sentences = [f"{subject}{_average(spec, made.levels, tallies)}{at}."]
    if other := next((cell.metric for cell in cells if cell.metric), ""):
        title = with_true_title(find_metric(other), settings)[0].title
        sentences.append(f"In parentheses, as a fallback: {title[0].lower()}{title[1:]}.")
    metrics = [*dict.fromkeys(column.metric for column in columns), *([find_metric(other)] if other else [])]
    sentences += [FIRST_SENTENCE] if any(is_target(metric.name) for metric in metrics) else []
    sentences += [difference] if (difference := difference_sentence(metrics, settings)) else []
    differences = tuple(made.differences.values())
    sentences += differences_sentences(differences, made.baseline, counts)
    sentences += _best(spec, columns, cells, made.bold_cells)
    sentences += [caution] if (caution := caution_sentence(metrics, settings)) else []
    sentences += [looks_sentence(counts)] if len(counts) > 1 else []
    if match and any(cell.published for cell in cells):
        small = f"Small: published, {match.paper.paper} {match.paper.name}."
        sentences += [small, made.study.source_sheet.summary(made.study.name)]
    pending = {why for tally in tallies for status, why in tally.gaps if status == ValueStatus.PENDING}
    words = {
        CellStatus.CENSORED: ["> marks a lower bound: some trainings ended before the target."],
        CellStatus.BEGUN: ["begun: some trials have begun, none has ended."],
        CellStatus.PENDING: [f"pending: {why}." for why in sorted(pending)],
        CellStatus.REFUSED: ["refused: exceeds the study's budget."],
        CellStatus.MISSING: [f"{NOT_RUN}: not run."],
    }
    there = {cell.status for cell in cells}
    return (*sentences, *(each for status, text in words.items() if status in there for each in text))


def caption_start(caption: str | None, metrics: Sequence[Metric]) -> str:
    """Return the start of a caption: the text in the study file, or the titles of the metrics."""
    first, *others = dict.fromkeys(metric.title for metric in metrics)
    return one_line(caption or "; ".join([first, *map(in_sentence, others)])).removesuffix(".")


def _average(spec: CellsTable, levels: Mapping[str, tuple[Level, ...]], tallies: Collection[Tally]) -> str:
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
    averaged = "" if over == "one seed" else f"mean {SPREADS[spec.spread]} of "
    best_of = f", each cell at its best of {_listed(levels_over)}" if spec.pick and counts else ""
    fewer = ", fewer where marked" if any(0 < len(each.values) < each.trials for each in tallies) else ""
    return f": {averaged}{over}{fewer}{best_of}"


def _listed(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _best(
    spec: CellsTable, columns: Sequence[TableColumn], cells: Sequence[Cell], best: Sequence[BoldCells]
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
    family = f"Holm over {number_range(pairs)} pair{'' if pairs[-1] == 1 else 's'} of the column{limits}"
    rule = f"p < {SIGNIFICANCE_LEVEL}, {how}; {family}"
    return [f"Bold: no value in its column is significantly better ({rule}).", *_rivals(spec, tested)]


def _rivals(spec: CellsTable, best: Sequence[BoldCells]) -> list[str]:
    """Return a sentence that counts the bold values that are as good as the best.

    As good means that the difference is below the margin, the smallest difference that matters. Return an
    empty list without a margin.
    """
    rivals = [(column.metric, each) for column in best for each in column.rivals.values()]
    if not rivals:
        return []
    margins = {metric.name: metric.format(spec.margin(metric.name) or 0.0) for metric, _ in rivals}
    near = ", ".join(f"{name} {margin}" for name, margin in margins.items())
    within = sum(each.is_within for _, each in rivals)
    return [
        f"Of {plural(len(rivals), 'bold value')} other than the best of its column, {within} "
        f"{'is' if within == 1 else 'are'} shown to be closer to it than {near}; all others are undecided."
    ]


def note_unsolved(table: Table, settings: Iterable[TrialSettings]) -> Table:
    """Add a footnote to each column of solved lengths that are all 0."""
    every = list(settings)
    for number, key in enumerate(table.keys):
        if key is None or key.metric != SOLVED_LENGTH:
            continue
        places = {
            (row, number): estimate.value
            for row, cells in enumerate(table.cells)
            if (estimate := cells[number].estimate) is not None and not cells[number].metric
        }
        if sentence := unsolved_sentence(places.values(), every):
            table = add_footnote(table, places, sentence)
    return table


def note_chance(table: Table, chances: Mapping[tuple[int, int], tuple[str, float]]) -> Table:
    """Add a footnote to the cells of each task that no model has learnt.

    `chances` has, by row and column of a cell, its task and the accuracy that guessing reaches. No model has
    learnt a task if all of its cells have a value, and all values are near chance.
    """
    groups: dict[tuple[str, str, float], set[tuple[int, int]]] = {}
    for (row, number), (task, chance) in chances.items():
        if (key := table.keys[number]) is not None:
            groups.setdefault((key.metric, task, chance), set()).add((row, number))
    for (metric, _, chance), places in groups.items():
        cells = [table.cells[row][number] for row, number in places]
        values = [cell.estimate.value for cell in cells if cell.estimate is not None and not cell.metric]
        sentence = chance_sentence(metric, chance, values) if len(values) == len(cells) else ""
        table = add_footnote(table, places, sentence) if sentence else table
    return table


def add_footnote(table: Table, places: Collection[tuple[int, int]], sentence: str) -> Table:
    """Add a footnote to cells of a table. `places` are their rows and columns."""
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
