"""Differences between the table cells of one column, with their tests.

Each row is compared with its baseline row. The best cells are printed in bold. A cell is among them if its
printed number equals the best one, or if no other cell is significantly better.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

from ...studies.catalog.metrics import ANALYTIC_COSTS, Metric, find_metric, is_target, pick_bias
from ...studies.planning.final_values import ValueStatus
from ...studies.presentation.kinds import describe_levels, fixed_levels
from ...studies.presentation.metric_words import (
    caution_sentence,
    difference_sentence,
    in_sentence,
    with_true_title,
)
from ...studies.schema.factors import SEED, level_name, level_text, one_line
from ...studies.schema.settings import Level, TrialSettings
from ...studies.text.units import degrees_of_freedom, listed, number_range, plural
from ..outcomes import chance_of, unlearnt_sentence
from ..picked_levels import Pick, pick_sentences
from ..statistics.decided_differences import (
    SIGNIFICANCE_LEVEL,
    DecidedDifference,
    decide,
    differences_at_looks,
    look_level,
)
from ..statistics.estimates import detectable
from ..statistics.pooled_differences import Difference
from ..statistics.speedup import FIRST_SENTENCE
from .table import NOT_RUN, Cell, CellStatus, Footnotes, Table
from .tally import Place, Tally, over_labels

if TYPE_CHECKING:
    from ..kinds.cells import CellsTable
    from .cells import TableCells, TableColumn

CellPair = tuple[Place, Place]
"""Two cells, the first of which is compared with the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTests:
    """The tests of differences between the cells of one column.

    `decided` has the decision on each pair of cells, the first minus the second. `families` is the number of
    groups with their own pooled variance. `detectable` are the differences that are detected with a power of
    80 % in each family; empty if unknown. `margin` is the smallest difference that matters, if the table has
    one. `best` are the bold cells, the best first; empty for differences from baselines.
    """

    metric: Metric
    decided: Mapping[CellPair, DecidedDifference] = field(default_factory=dict[CellPair, DecidedDifference])
    families: int = 0
    detectable: tuple[float, ...] = ()
    margin: float | None = None
    best: tuple[Place, ...] = ()

    @property
    def tests(self) -> int:
        """Return the number of pairs with a p-value, for which p is corrected."""
        return sum(each.p is not None for each in self.decided.values())

    @property
    def worse(self) -> int:
        """Return how many of the compared cells are not among the best."""
        return len({cell for pair in self.decided for cell in pair}.difference(self.best))

    @property
    def rivals(self) -> dict[CellPair, DecidedDifference]:
        """Return the differences of the best cell from the other bold cells; empty without a margin."""
        pairs = [(self.best[0], other) for other in self.best[1:]] if self.margin is not None else []
        return {pair: self.decided[pair] for pair in pairs if pair in self.decided}


WITHIN = "≈"
"""The sign of a difference shown to be smaller than the margin."""


def baseline_tests(made: TableCells, column: TableColumn) -> ColumnTests:
    """Test the difference of each row of a column from its baseline."""
    metric = column.metric.name
    known = {
        row
        for (row, level, name), looks in made.look_tallies.items()
        if (level, name) == (column.level, metric) and looks[0].values
    }
    # rows with a common baseline share a pooled variance
    families: dict[str, list[CellPair]] = {}
    for row, baseline in made.baselines.items():
        pair = ((row, column.level, metric), (baseline, column.level, metric))
        families.setdefault(baseline, []).extend([pair] if {row, baseline} <= known else [])
    return _test_pairs(made, column.metric, families.values())


def _test_pairs(made: TableCells, metric: Metric, families: Iterable[Sequence[CellPair]]) -> ColumnTests:
    """Test the differences between pairs of cells at all looks. The pairs of a family share a variance."""
    margin, counts = made.spec.smallest_difference.get(metric.name), made.counts
    looked: dict[CellPair, tuple[Difference, ...]] = {}
    last: list[list[Difference | None]] = []  # of each family, at its last look
    for pairs in filter(None, families):
        cells = {cell: made.look_tallies[cell] for pair in pairs for cell in reversed(pair)}
        numbers = {cell: number for number, cell in enumerate(cells)}
        each, at_last_look = differences_at_looks(
            [[dict(zip(each.units, each.values, strict=True)) for each in looks] for looks in cells.values()],
            [(numbers[one], numbers[other]) for one, other in pairs],
            counts,
            margin,
            step=max(looks[-1].step for looks in cells.values()),
        )
        looked |= {pair: found for pair, found in zip(pairs, each, strict=True) if found}
        last.append(at_last_look)
    decided = dict(zip(looked, decide(list(looked.values()), counts), strict=True))
    found = ColumnTests(metric=metric, decided=decided, families=len(last), margin=margin)
    level = look_level(tuple(counts), SIGNIFICANCE_LEVEL / max(1, found.tests))
    tested = (
        [(each.error, each.degrees) for each in family if each and each.error and each.degrees]
        for family in last
        if not any(each and each.is_permuted for each in family)
    )
    return replace(found, detectable=tuple(detectable(*max(each), level) for each in tested if each))


def significance_text(decided: DecidedDifference) -> str:
    """Return the mark after a difference: `*` if it is significant, `≈` if it is within the margin, or ""."""
    if decided.p is None:
        return ""
    return "*" * (decided.p < SIGNIFICANCE_LEVEL) + (f" {WITHIN}" if decided.is_within else "")


def differences_sentences(columns: Sequence[ColumnTests], baseline: str, counts: Sequence[int]) -> list[str]:
    """Return the caption's sentences about differences and their tests."""
    shown = [column for column in columns if column.decided]
    if not shown:
        return []
    tested = [column for column in shown if column.tests]
    if not tested:
        return [f"In parentheses: difference from {baseline}."]
    interval = f"{100 * (1 - look_level(tuple(counts), SIGNIFICANCE_LEVEL)):.3g}"
    over = "the cells around each baseline" if any(column.families > 1 for column in tested) else "the column"
    without = ", without Holm's correction" if any(column.tests > 1 for column in tested) else ""
    difference = f"difference from {baseline}, paired by seed, ± half of its {interval} % interval{without}"
    sentences = [
        f"In parentheses: {difference}.",
        f"*: p < {SIGNIFICANCE_LEVEL} ({_test_rule(tested, over, 'the', 'test')}).",
    ]
    if near := _margin_words([column for column in tested if column.margin]):
        judged = [each for column in tested if column.margin for each in column.decided.values()]
        left = sum(not each.is_decided for each in judged)
        undecided = f"{left} of {plural(len(judged), 'difference')} {'is' if left == 1 else 'are'} undecided"
        rule = f"p < {SIGNIFICANCE_LEVEL}, corrected likewise"
        sentences.append(f"{WITHIN}: smaller than {near} either way ({rule}); {undecided}.")
    return sentences


def _margin_words(columns: Sequence[ColumnTests]) -> str:
    """Return the smallest difference that matters of each metric, such as `loss 0.01`."""
    margins = {column.metric.name: column.metric.format(column.margin or 0.0) for column in columns}
    return ", ".join(f"{name} {margin}" for name, margin in margins.items())


def _test_rule(tested: Sequence[ColumnTests], over: str, article: str, noun: str) -> str:
    """Describe the tests of columns: their kind, their correction, and the differences that they detect."""
    counts = sorted({column.tests for column in tested})
    found = [each.shown for column in tested for each in column.decided.values()]
    degrees = sorted({each.degrees for each in found if each.degrees is not None and not each.is_permuted})
    how = "paired permutation test"
    if degrees:
        variance = f"the variance pooled over {over}, or that of the comparison that varies most if larger"
        how = f"t with {variance}, {degrees_of_freedom(degrees)}"
        if any(each.is_permuted for each in found):
            how += ", or a paired permutation test with enough seeds"
    limits = detectable_words([(column.metric, each) for column in tested for each in column.detectable])
    family = f"{number_range(counts)} {noun}{'' if counts == [1] else 's'} of the column"
    return f"{how}; {' '.join(filter(None, ('Holm over', article, family)))}{limits}"


def looks_sentences(counts: Sequence[int], tests: Iterable[ColumnTests]) -> Iterator[str]:
    """Yield the caption's sentences on interim tests.

    They say at which numbers of seeds differences are tested, and which shown differences have fewer seeds
    than the means.
    """
    level = look_level(tuple(counts), SIGNIFICANCE_LEVEL)
    yield (
        f"Seeds are added while a difference is undecided: it is tested at {listed(counts)} seeds "
        f"until a test decides it, each at {level:.1%}, and p covers all tests."
    ).replace("%", " %")
    decided = [each for column in tests for each in column.decided.values()]
    if early := sorted({each.shown.n for each in decided if each.shown.n < each.last.n}):
        yield (
            f"A difference that a test at {listed(early)} seeds decided is that of these seeds, although the "
            "means have more."
        )


def detectable_words(found: Sequence[tuple[Metric, float]], between: str = "") -> str:
    """Describe the smallest difference of each metric that is detected with 80 % power; "" if unknown."""
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


def find_bold_cells(made: TableCells, column: TableColumn) -> ColumnTests:
    """Return the best cells of a column, which are shown in bold, with the tests that found them.

    No cell is best if there are fewer than two values, if all values are equal, or if the metric has no
    better direction. A cell with an infinite value, or a diverged seed, is worse than every other cell, and
    never best. With `best = "shown"` the printed digits decide, so that two equal numbers are both bold or
    both plain. With `best = "test"`, a cell that shares fewer than two seeds with the leading one is not
    compared, and is plain.
    """
    metric, estimates = column.metric, made.estimates
    cells = [(row.level, column.level, metric.name) for row in made.rows]
    worst = {cell for cell in cells if cell in made.tallies and made.tallies[cell].counts_as_worst}
    known = [cell for cell in cells if cell in estimates and cell not in worst]
    if len(known) < (1 if worst else 2) or metric.higher_is_better is None:
        return ColumnTests(metric=metric)
    if len(known) == 1:
        return ColumnTests(metric=metric, best=tuple(known))
    sign = 1 if metric.higher_is_better else -1
    ranked = sorted(known, key=lambda cell: -sign * estimates[cell].value)
    shown = metric.format(estimates[ranked[0]].value)
    alike = [cell for cell in ranked if metric.format(estimates[cell].value) == shown]
    if len(alike) == len(known) and not worst:  # if all are equal, none is best
        return ColumnTests(metric=metric)
    if made.spec.best == "shown":
        return ColumnTests(metric=metric, best=tuple(alike))
    found = _test_pairs(made, metric, [list(combinations(ranked, 2))])
    # `ranked` begins with the best, but a pair's shared seeds may order its cells the other way round
    worse = {
        two if sign * each.shown.mean > 0 else one
        for (one, two), each in found.decided.items()
        if each.differs
    }
    compared = {
        cell
        for pair, each in found.decided.items()
        if ranked[0] in pair and each.p is not None and each.shown.n > 1
        for cell in pair
    }
    return replace(found, best=tuple(cell for cell in ranked if cell in compared - worse))


SPREADS = {"sd": "± s.d.", "se": "± s.e.", "ci": "[95 % interval]"}


def caption_sentences(made: TableCells, cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return the sentences of the caption of a table with these cells."""
    spec, columns, counts, match = made.spec, made.columns, made.counts, made.published_match
    settings, tallies = made.settings, made.tallies.values()
    # a count, such as parameters, is the same for all seeds, and known for those that are not trained
    trained = [tally for place, tally in made.tallies.items() if place[2] not in ANALYTIC_COSTS]
    subject = caption_start(spec.caption, [column.metric for column in columns])
    shown = [SEED, *filter(None, (spec.rows, spec.columns, *spec.over))]
    fixed = fixed_levels([trial.levels for trial in made.shown_trials], shown, made.study.design)
    at = f", at {describe_levels(fixed)}" if fixed else ""
    varies = trained or any(len(set(tally.values)) > 1 for tally in tallies)
    picks = _picks(made)
    sentences = [f"{subject}{_average(spec, made.levels, trained or tallies, picks) if varies else ''}{at}."]
    sentences += [bias] if (bias := pick_bias(spec.pick_by, spec.over, spec.value)) else []
    sentences += pick_sentences(spec.over, picks)
    if other := next((cell.metric for cell in cells if cell.metric), ""):
        title = with_true_title(find_metric(other), settings)[0].title
        sentences.append(f"In parentheses, as a fallback: {title[0].lower()}{title[1:]}.")
    metrics = [*dict.fromkeys(column.metric for column in columns), *([find_metric(other)] if other else [])]
    sentences += [FIRST_SENTENCE] if any(is_target(metric.name) for metric in metrics) else []
    sentences += [difference] if (difference := difference_sentence(dict.fromkeys(metrics, settings))) else []
    baseline = made.changes.describe_baseline() if made.changes else level_name(spec.baseline or "")
    sentences += differences_sentences(list(made.differences.values()), baseline, counts)
    sentences += _best(made, cells)
    sentences += [caution] if (caution := caution_sentence(metrics, settings)) else []
    sentences += looks_sentences(counts, made.differences.values()) if len(counts) > 1 else []
    if match and any(cell.published for cell in cells):
        small = f"Below: published, {match.paper.paper} {match.paper.name}."
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
    spec: CellsTable,
    levels: Mapping[str, tuple[Level, ...]],
    tallies: Collection[Tally],
    picks: Sequence[Pick],
) -> str:
    counts = {factor: len(levels[factor]) for factor in spec.over if len(levels[factor]) > 1}
    for factor in counts if picks else ():
        counts[factor] = max(len({level_text(each[factor]) for each in pick.tried}) for pick in picks)
    seeds = 1 if SEED in (spec.rows, spec.columns) else len(levels[SEED])
    if not tallies:
        return ""
    known = [seeds] if spec.pick_by else sorted({max(tally.trials, seeds) for tally in tallies})
    over = "one seed" if known == [1] else f"{number_range(known)} seeds"
    averaged = "" if over == "one seed" else f"mean {SPREADS[spec.spread]} of "
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


def _best(made: TableCells, cells: Sequence[Cell]) -> list[str]:
    if not any(cell.best for cell in cells):
        return []
    spec, columns = made.spec, made.bold_cells
    sides = {column.metric.higher_is_better for column in columns} - {None}
    side = "best" if len(sides) > 1 else "highest" if True in sides else "lowest"
    strayed = any(tally.values and tally.counts_as_worst for tally in made.tallies.values())
    end = "; never with a diverged seed." if strayed else "."
    if spec.best == "shown":
        return [f"Bold: {side} in its column, with all ties at the shown precision{end}"]
    tested = [column for column in columns if column.tests]
    if not tested:
        return [f"Bold: no value in its column is provably better with these seeds{end}"]
    rule = f"p < {SIGNIFICANCE_LEVEL}, {_test_rule(tested, 'the column', '', 'pair')}"
    sentences = [f"Bold: no value in its column is significantly better ({rule}){end}"]
    # bold values are as good as the best if the difference is below the smallest one that matters
    rivals = [(column, each) for column in tested for each in column.rivals.values()]
    if rivals:
        within = sum(each.is_within for _, each in rivals)
        sentences.append(
            f"Of {plural(len(rivals), 'bold value')} other than the best of its column, {within} "
            f"{'is' if within == 1 else 'are'} shown to be closer to it than "
            f"{_margin_words([column for column, _ in rivals])}; all others are undecided."
        )
    return sentences


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
    noted = tuple(
        tuple(
            replace(cell, best=False, marks=(*cell.marks, marks[row, number]))
            if (row, number) in marks
            else cell
            for number, cell in enumerate(line)
        )
        for row, line in enumerate(table.cells)
    )
    caption = table.caption
    if marks and not any(cell.best for line in noted for cell in line):
        caption = tuple(sentence for sentence in caption if not sentence.startswith("Bold: "))
    return replace(table, caption=caption, cells=noted, footnotes=notes.as_tuple())


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
                key = (metric, settings.task.name, chance_of(metric, settings))
                groups.setdefault(key, (metric, settings, set()))[2].add((at, number))
    return list(groups.values())
