"""Differences between the table cells of one column, with their tests.

Each row is compared with its baseline row. The best cell of a column is printed in bold, and the other cells
are tested against it: those that are not significantly worse are ties.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...studies.catalog.metrics import ANALYTIC_COSTS, Metric, find_metric, is_target, pick_bias
from ...studies.planning.final_values import ValueStatus
from ...studies.presentation.kinds import describe_levels, fixed_levels, selected_levels, selected_seeds
from ...studies.presentation.metric_words import (
    caution_sentence,
    difference_sentence,
    in_sentence,
    with_true_title,
)
from ...studies.schema.factors import SEED, level_name, level_text, one_line
from ...studies.schema.settings import Level, TrialSettings
from ...studies.study import Study
from ...studies.text.units import degrees_of_freedom, listed, number_range
from ..outcomes import guess_of, unlearnt_sentence
from ..picked_levels import Pick, pick_sentences
from ..statistics.estimates import detectable, holm_adjusted
from ..statistics.groups import differences_of_groups
from ..statistics.look_levels import SIGNIFICANCE_LEVEL
from ..statistics.pooled_differences import Difference, differences_between
from ..statistics.speedup import FIRST_SENTENCE
from .table import NOT_RUN, Cell, CellStatus, Footnotes, Table
from .tally import Place, Tally, over_labels

if TYPE_CHECKING:
    from ...studies.presentation.table_keys import CellsTable
    from .cells import TableCells, TableColumn

CellPair = tuple[Place, Place]
"""Two cells, the first of which is compared with the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedDifference:
    """The difference between two cells. Its `p` is corrected for the other tests; None if it is unknown."""

    difference: Difference
    p: float | None

    @property
    def is_significant(self) -> bool:
        """Return whether the cells are shown to differ."""
        return self.p is not None and self.p < SIGNIFICANCE_LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTests:
    """The tests of differences between the cells of one column.

    `tested` has the difference of each pair of cells, the first minus the second. `families` is the number of
    groups with their own pooled variance. `detectable` are the differences that the comparisons detect with a
    power of 80 %; empty if unknown. `best` are the bold cells, and `ties` those that are not separable
    from the best; both are empty for differences from baselines. `has_one_seed` is true if nothing is ranked,
    since the best value is of one seed.
    """

    metric: Metric
    tested: Mapping[CellPair, TestedDifference] = field(default_factory=dict[CellPair, TestedDifference])
    families: int = 0
    detectable: tuple[float, ...] = ()
    best: tuple[Place, ...] = ()
    ties: tuple[Place, ...] = ()
    has_one_seed: bool = False

    @property
    def tests(self) -> int:
        """Return the number of pairs with a p-value, for which p is corrected."""
        return sum(each.p is not None for each in self.tested.values())


def baseline_tests(made: TableCells, column: TableColumn) -> ColumnTests:
    """Test the difference of each row of a column from its baseline."""
    metric = column.metric.name
    known = {
        row
        for (row, level, name), tally in made.tallies.items()
        if (level, name) == (column.level, metric) and tally.values and not tally.counts_as_worst
    }
    # rows with a common baseline share a pooled variance
    families: dict[str, list[CellPair]] = {}
    for row, baseline in made.baselines.items():
        pair = ((row, column.level, metric), (baseline, column.level, metric))
        families.setdefault(baseline, []).extend([pair] if {row, baseline} <= known else [])
    return _test_pairs(made, column.metric, families.values())


def _test_pairs(made: TableCells, metric: Metric, families: Iterable[Sequence[CellPair]]) -> ColumnTests:
    """Test the differences between pairs of cells, with Holm's correction. A family shares a variance."""
    known: dict[CellPair, Difference] = {}
    found: list[Sequence[Difference | None]] = []  # of each family
    for pairs in filter(None, families):
        cells = {cell: made.tallies[cell] for pair in pairs for cell in reversed(pair)}
        numbers = {cell: number for number, cell in enumerate(cells)}
        numbered = [(numbers[one], numbers[other]) for one, other in pairs]
        step = max(tally.step for tally in cells.values())
        each: Sequence[Difference | None]
        if made.study.pairs_seeds:
            units = [dict(zip(tally.units, tally.values, strict=True)) for tally in cells.values()]
            each = differences_between(units, numbered, step=step)
        else:
            each = differences_of_groups([tally.values for tally in cells.values()], numbered, step=step)
        known |= {pair: one for pair, one in zip(pairs, each, strict=True) if one is not None}
        found.append(each)
    tries = (made.study.runs.settings.tries if made.study.runs is not None else None) or 1
    holm = holm_adjusted([each.p for each in known.values() if each.p is not None])
    corrected = (min(1.0, tries * p) for p in holm)
    tested = {
        pair: TestedDifference(difference=each, p=None if each.p is None else next(corrected))
        for pair, each in known.items()
    }
    column = ColumnTests(metric=metric, tested=tested, families=len(found))
    level = SIGNIFICANCE_LEVEL / max(1, column.tests) / tries
    errors = {
        (each.error, each.degrees)
        for each in known.values()
        if each.error and each.degrees and not each.is_permuted
    }
    return replace(column, detectable=tuple(detectable(*each, level) for each in sorted(errors)))


def _differences_sentences(
    columns: Sequence[ColumnTests], baseline: str, study: Study
) -> tuple[list[str], list[str]]:
    """Return remarks on the differences in parentheses, and notes on their intervals and tests."""
    if not any(column.tested for column in columns):
        return [], []
    remark = f"In parentheses: difference from {baseline}"
    tested = [column for column in columns if column.tests]
    if not tested:
        return [f"{remark}."], []
    over = "the cells around each baseline" if any(column.families > 1 for column in tested) else "the column"
    without = ", without Holm's correction" if any(column.tests > 1 for column in tested) else ""
    return [
        f"{remark}, ± half of its 95 % interval.",
        f"*: p < {SIGNIFICANCE_LEVEL}.",
    ], [
        f"Differences are {'paired by seed' if study.pairs_seeds else 'of independent runs'}"
        f"{f'; their intervals are {without[2:]}' if without else ''}.",
        f"*: p < {SIGNIFICANCE_LEVEL} by {_test_rule(tested, over, 'the', 'test')}.",
    ]


def _test_rule(tested: Sequence[ColumnTests], over: str, article: str, noun: str) -> str:
    """Describe the tests of columns: their kind, their correction, and the differences that they detect."""
    counts = sorted({column.tests for column in tested})
    found = [each.difference for column in tested for each in column.tested.values()]
    degrees = sorted({int(each.degrees) for each in found if each.degrees and not each.is_permuted})
    how = "paired permutation test"
    if degrees:
        variance = f"the larger of the variance pooled over {over} and a comparison's own"
        how = f"t with {variance}, {degrees_of_freedom(degrees)}"
        if any(each.is_permuted for each in found):
            how += ", or a paired permutation test with enough seeds"
    words = _limit_words([(column.metric, each) for column in tested for each in column.detectable])
    noise = ", depending on the spread," if " to " in words else ""
    limits = f"; {words}{noise} is detected with a power of 80 %" if words else ""
    family = f"{number_range(counts)} {noun}{'' if counts == [1] else 's'} of the column"
    return f"{how}; {' '.join(filter(None, ('Holm over', article, family)))}{limits}"


def _limit_words(found: Sequence[tuple[Metric, float]]) -> str:
    """Return the smallest difference that is detected in each metric, as `loss 0.12 to 0.15 or more`."""
    limits: dict[str, tuple[Metric, list[float]]] = {}
    for metric, limit in found:
        limits.setdefault(metric.name, (metric, []))[1].append(limit)
    parts = [
        f"{name} {' to '.join(dict.fromkeys(map(metric.format, (min(each), max(each)))))}"
        for name, (metric, each) in limits.items()
    ]
    return f"{', '.join(parts)} or more" if parts else ""


def find_bold_cells(made: TableCells, column: TableColumn) -> ColumnTests:
    """Return the best cells of a column, which are shown in bold, with the tests that found them.

    No cell is best if there are fewer than two values, if all values are equal, or if the metric has no
    better direction. A cell with an infinite value, or a diverged or failed seed, is worse than every other
    cell, and never best. One seed does not rank, so a cell of one seed is not best, either. The values that
    are not significantly worse than the best are `ties`. With `bold = "best"`, nothing is tested: the printed
    digits decide, so that two equal numbers are both bold.
    """
    metric, estimates = column.metric, made.estimates
    cells = [(row.level, column.level, metric.name) for row in made.rows]
    worst = {cell for cell in cells if cell in made.tallies and made.tallies[cell].counts_as_worst}
    known = [cell for cell in cells if cell in estimates and cell not in worst]
    if len(known) < (1 if worst else 2) or metric.higher_is_better is None:
        return ColumnTests(metric=metric)
    sign = 1 if metric.higher_is_better else -1
    ranked = sorted(known, key=lambda cell: -sign * estimates[cell].value)
    shown = metric.format(estimates[ranked[0]].value)
    alike = [cell for cell in ranked if metric.format(estimates[cell].value) == shown]
    if len(alike) == len(known) > 1 and not worst:  # if all are equal, none is best
        return ColumnTests(metric=metric)
    if made.spec.bold == "best":
        return ColumnTests(metric=metric, best=tuple(alike))
    first, *others = ranked
    if estimates[first].n < 2 and metric.name not in ANALYTIC_COSTS:
        return ColumnTests(metric=metric, has_one_seed=True)
    found = _test_pairs(made, metric, [[(first, other) for other in others]])
    worse = {
        other
        for (_, other), each in found.tested.items()
        if each.is_significant and sign * each.difference.mean > 0
    }
    equal = [each for each in ranked if estimates[each].value == estimates[first].value]
    best = [each for each in equal if estimates[each].n > 1 or metric.name in ANALYTIC_COSTS]
    ties = [each for each in others if each not in worse and each not in best]
    return replace(found, best=tuple(best), ties=() if metric.name in ANALYTIC_COSTS else tuple(ties))


NOT_SEPARABLE = "≈"
"""The mark of a value that the seeds cannot tell from the best one of its column."""

SPREADS = {"sd": "± s.d.", "se": "± s.e.", "ci": "[95 % interval]"}


def table_caption(made: TableCells) -> str:
    """Return the caption of a table: what is shown, over how many seeds, and at which levels."""
    spec, tallies = made.spec, made.tallies.values()
    # a count, such as parameters, is the same for all seeds, and known for those that are not trained
    trained = [tally for place, tally in made.tallies.items() if place[2] not in ANALYTIC_COSTS]
    subject = caption_start(spec.caption, [column.metric for column in made.columns])
    shown = [SEED, *filter(None, (spec.rows, spec.columns, *spec.over))]
    fixed = fixed_levels([trial.levels for trial in made.trials], shown, made.study.design)
    at = f", at {describe_levels(fixed)}" if fixed else ""
    varies = trained or any(len(set(tally.values)) > 1 for tally in tallies)
    average = _average(made.study, spec, made.levels, trained or tallies, _picks(made)) if varies else ""
    return f"{subject}{average}{at}."


def table_sentences(made: TableCells, cells: Sequence[Cell]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the remarks and the notes of a table with these cells."""
    spec, settings = made.spec, made.settings
    tallies, picks = made.tallies.values(), _picks(made)
    metrics = list(dict.fromkeys(column.metric for column in made.columns))
    remarks, notes = [pick_bias(spec.pick_by, spec.over, spec.value)], list[str]()
    remarks += pick_sentences(spec.over, picks)
    if other := next((cell.metric for cell in cells if cell.metric), ""):
        title = with_true_title(find_metric(other), settings)[0].title
        remarks.append(f"In parentheses, as a fallback: {title[0].lower()}{title[1:]}.")
        metrics.append(find_metric(other))
    for column in made.columns:
        place = column.level, column.metric.name
        values = [each.value for (_, *at), each in made.estimates.items() if tuple(at) == place]
        if any(values) and all(column.metric.format(each) == column.metric.format(0.0) for each in values):
            name = " ".join(filter(None, (column.level, column.metric.name)))
            largest = max(map(abs, values))
            remarks.append(
                f"{name}: all values print as zero; they go up to {largest:.2g}.".replace("-", "−")
            )
    remarks.append(difference_sentence(dict.fromkeys(metrics, settings)))
    baseline = made.changes.describe_baseline() if made.changes else level_name(spec.baseline or "")
    differences = _differences_sentences(list(made.differences.values()), baseline, made.study)
    for found in (differences, _best(made, cells)):
        remarks += found[0]
        notes += found[1]
    remarks.append(caution_sentence(metrics, settings))
    notes += [FIRST_SENTENCE] if any(is_target(metric.name) for metric in metrics) else []
    if made.papers and any(cell.published for cell in cells):
        papers = "by the paper at each mark" if made.marks_papers else "".join(made.papers.values())
        remarks.append(f"Below: published, {papers}.")
        notes.append(made.study.source_sheet.summary(made.study.name))
    pending = {why for tally in tallies for status, why in tally.gaps if status == ValueStatus.PENDING}
    words = {
        CellStatus.CENSORED: ["> marks a lower bound: some trainings ended before the target."],
        CellStatus.BEGUN: ["begun: some trials have begun, none has ended."],
        CellStatus.PENDING: [f"pending: {why}." for why in sorted(pending)],
        CellStatus.REFUSED: ["refused: exceeds the study's budget."],
        CellStatus.MISSING: [f"{NOT_RUN}: not run."],
    }
    there = {cell.status for cell in cells}
    remarks += [each for status, text in words.items() if status in there for each in text]
    return tuple(filter(None, remarks)), tuple(filter(None, notes))


def caption_start(caption: str | None, metrics: Sequence[Metric]) -> str:
    """Return the start of a caption: the text in the study file, or the titles of the metrics."""
    first, *others = dict.fromkeys(metric.title for metric in metrics)
    return one_line(caption or "; ".join([first, *map(in_sentence, others)])).removesuffix(".")


def _picks(made: TableCells) -> list[Pick]:
    """Return the picked levels of each cell of the table."""
    spec, heads = made.spec, {each.level: each.head for each in made.rows}
    cells = [trial.levels for trial in made.trial_of_each_cell]
    tied = {place[:2]: tally.tied for place, tally in made.tallies.items() if tally.tied}
    tried: dict[tuple[str, str], dict[str, Mapping[str, Level]]] = {}
    for levels, label in zip(cells, over_labels(spec.over, cells), strict=True):
        tried.setdefault(made.place(levels), {})[label] = levels
    return [
        Pick(
            tried=[*tried[row, column].values()],
            best=[tried[row, column][label] for label in labels],
            name=heads[row] if spec.columns is None else "",
        )
        for (row, column), labels in tied.items()
    ]


def _average(
    study: Study,
    spec: CellsTable,
    levels: Mapping[str, tuple[Level, ...]],
    tallies: Collection[Tally],
    picks: Sequence[Pick],
) -> str:
    counts = {factor: len(levels[factor]) for factor in spec.over if len(levels[factor]) > 1}
    for factor in counts if picks else ():
        counts[factor] = max(len({level_text(each[factor]) for each in pick.tried}) for pick in picks)
    seeds = 1 if SEED in (spec.rows, spec.columns) else len(selected_levels(spec.select, study.factors)[SEED])
    seeds = seeds if study.runs is None else 1  # runs of another program have the seeds that they have
    if not tallies:
        return ""
    merged = spec.pick_by is not None  # a cell that waits has the trials of all levels
    known = sorted({seeds if merged and not tally.label else max(tally.trials, seeds) for tally in tallies})
    noun = study.repeats
    over = f"one {noun}" if known == [1] else f"{number_range(known)} {noun}s"
    averaged = "" if known == [1] else f"mean {SPREADS[spec.spread]} of "
    over = selected_seeds(spec.select, study.factors) or over
    best_of = ""
    if counts and spec.pick_by:
        first, *others = (f"{count} levels of {factor}" for factor, count in counts.items())
        found = [first, *(each.replace(" levels", "", 1) for each in others)]
        by = f" by {in_sentence(find_metric(spec.pick_by).title)}" if spec.value != (spec.pick_by,) else ""
        up_to = "up to " if len({len(pick.tried) for pick in picks}) > 1 else ""
        best_of = f", each cell at its best of {up_to}{listed(found)}{by}"
    elif counts:
        over += f", {'' if known == [1] else 'each '}the mean over {listed(counts)}"
    fewer = ", fewer where marked" if any(0 < len(each.values) < each.trials for each in tallies) else ""
    return f": {averaged}{over}{fewer}{best_of}"


def _best(made: TableCells, cells: Sequence[Cell]) -> tuple[list[str], list[str]]:
    """Return remarks on what is bold and on the differences that can be shown, and a note on the tests."""
    columns = made.bold_cells
    is_single = any(each.has_one_seed for each in columns)
    noun = made.study.repeats
    remarks = [f"Without bold: one {noun} does not rank."] if is_single else []
    if not any(cell.best for cell in cells):
        return remarks, []
    sides = {column.metric.higher_is_better for column in columns if column.best}
    side = "best" if len(sides) > 1 else "highest" if True in sides else "lowest"
    strayed = any(tally.values and tally.counts_as_worst for tally in made.tallies.values())
    end = f"; never with a diverged or failed {noun}." if strayed else "."
    if made.spec.bold == "best":
        return [*remarks, f"Bold: {side} in its column, with all ties at the shown precision{end}"], []
    remarks.insert(0, f"Bold: {side} in its column{end}")
    tested = [column for column in columns if column.tests]
    limits = [(column.metric, each) for column in tested for each in column.detectable]
    remarks += [f"Differences that the {noun}s can show: {words}."] if (words := _limit_words(limits)) else []
    rule = _test_rule(tested, "the column", "", "pair") if tested else ""
    return remarks, [f"{NOT_SEPARABLE}: p ≥ {SIGNIFICANCE_LEVEL} by {rule}."] if rule else []


def note_unlearnt(
    table: Table, groups: Iterable[tuple[str, TrialSettings, Collection[tuple[int, int]]]]
) -> Table:
    """Add a footnote to each group of cells with a task that no model has learnt; none of them is bold.

    A group has a metric, the settings of one of its trials, and the rows and columns of its cells. Cells
    without a value have no footnote.
    """
    notes, marks = Footnotes(table.footnotes), dict[tuple[int, int], str]()
    for metric, settings, places in groups:
        cells = {(row, column): table.cells[row][column] for row, column in places}
        known = {at: cell.estimate.value for at, cell in cells.items() if cell.estimate and not cell.metric}
        if sentence := unlearnt_sentence(metric, settings, known.values()):
            marks |= dict.fromkeys(known, notes.mark(sentence))

    def noted_cell(row: int, column: int, cell: Cell) -> Cell:
        if (row, column) not in marks:
            return cell
        others = (mark for mark in cell.marks if mark != NOT_SEPARABLE)
        return replace(cell, best=False, tie=False, marks=(*others, marks[row, column]))

    noted = tuple(
        tuple(noted_cell(row, column, cell) for column, cell in enumerate(line))
        for row, line in enumerate(table.cells)
    )
    if marks and not any(cell.best for line in noted for cell in line):
        remarks, hows = (
            tuple(sentence for sentence in each if not sentence.startswith(("Bold: ", NOT_SEPARABLE)))
            for each in (table.remarks, table.notes)
        )
        table = replace(table, remarks=remarks, notes=hows)
    has_ties = any(cell.tie for line in noted for cell in line)
    footnotes = tuple(note for note in notes.as_tuple() if has_ties or note.mark != NOT_SEPARABLE)
    return replace(table, cells=noted, footnotes=footnotes)


def groups_by_task(made: TableCells) -> list[tuple[str, TrialSettings, set[tuple[int, int]]]]:
    """Group the cells of a table by metric and task. Cells that mix tasks are left out."""
    tasks: dict[tuple[str, str], dict[str, TrialSettings]] = {}
    for trial in made.trial_of_each_cell:
        task = trial.common.task.model_dump_json()
        tasks.setdefault(made.place(trial.levels), {})[task] = trial.common
    groups: dict[tuple[str, str, float | None], tuple[str, TrialSettings, set[tuple[int, int]]]] = {}
    for number, column in enumerate(made.columns):
        for at, row in enumerate(made.rows):
            of_cell = list(tasks.get((row.level, column.level), {}).values())
            if len(of_cell) == 1:
                metric, (settings,) = column.metric.name, of_cell
                key = (metric, settings.task.name, guess_of(metric, settings))
                groups.setdefault(key, (metric, settings, set()))[2].add((at, number))
    return list(groups.values())
