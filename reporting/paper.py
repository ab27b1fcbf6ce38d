"""A published paper: its tables next to measured numbers, and an overview of all results."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import argument_fault, check_arguments, nearest_hint
from ..storage import Store, open_store, store_fault
from ..storage.rows import KEY_COLUMNS
from ..studies.catalog.datasets import CorpusError
from ..studies.catalog.metrics import ANALYTIC_COSTS, BETTER_ARROWS
from ..studies.catalog.published import (
    HIGHER_IS_BETTER_BY_UNIT,
    PublishedNumbers,
    PublishedTable,
    own_numbers,
    published_tables,
)
from ..studies.claims.comparisons import Constant
from ..studies.last_run import load_last_run
from ..studies.own_data.published_files import load_published
from ..studies.plan import remaining_search_flops, remaining_search_times
from ..studies.planning.status import unfinished_of
from ..studies.planning.time_estimates import TimeEstimator, total_time
from ..studies.presentation.kinds import TableKind
from ..studies.resolve.costs import max_trial_flops
from ..studies.resolve.grid import check_layers
from ..studies.resolve.trial import CellKey, cell_key
from ..studies.sections import SECTIONS
from ..studies.study import Study
from ..studies.text.document import parse_document
from ..studies.text.errors import StudyError
from ..studies.text.units import plural
from .claims.cell_values import printed_effect
from .claims.verdicts import ComparisonResult, Verdict
from .kinds import build_table
from .kinds.cells import find_cells
from .outcomes import load_outcomes
from .several_studies import several_studies_table
from .snapshot import Snapshot
from .tables.published import PAPER_ONLY_HEADING
from .tables.reproduction import Reproduction, reproduction
from .tables.table import (
    Cell,
    CellStatus,
    ColumnKey,
    Footnotes,
    PublishedLine,
    Table,
    TableError,
    TableExtras,
)

_SIDES = {True: ", higher is better", False: ", lower is better", None: ""}


def published_tables_of(
    paper: str, name: str | None = None, store: Store | None = None
) -> tuple[PublishedTable, ...]:
    """Return all tables of a paper, or only the named table.

    `paper` is the name of a paper that comes with activemem or that a study in the store shows, or a CSV file
    of published numbers. Raise TableError for an unknown name, and for the faults of a file.
    """
    if _is_file(paper):
        every = _tables_of_file(Path(paper), store)
    else:
        known = {**_recorded_tables(store), **published_tables()} if store else published_tables()
        every = [each for each in known.values() if each.paper == paper]
        if not every:
            near = nearest_hint(paper, {label for label, _ in known})
            way = "; for other papers, give the CSV file of their numbers"
            raise TableError(f"there are no published numbers of '{paper}'{near}{way}")
    named = [each for each in every if name in (None, each.name, f"{each.paper}:{each.name}")]
    if not named:
        names = [each.name for each in every]
        raise TableError(f"{paper} has no published table '{name}'{nearest_hint(name or '', names)}")
    return tuple(named)


def _is_file(paper: str) -> bool:
    return paper.lower().endswith(".csv")


def _tables_of_file(file: Path, store: Store | None) -> list[PublishedTable]:
    """Return the tables with a number in a CSV file. A study in the store may name its paper."""
    labels = {
        _paper_of(record["text"])
        for record in _records(store)
        if any(Path(name).name == file.name for name in record.get("published") or ())
    } - {None}
    if not file.exists():
        raise TableError(
            f"there is no file {file}{nearest_hint(file.name, (each.name for each in Path().glob('*.csv')))}"
        )
    try:
        found = load_published(file, labels.pop() if len(labels) == 1 else None)
    except CorpusError as error:
        raise TableError(str(error)) from error
    return [each for each in found.tables if any(number.line for number in each.cells.values())]


def _records(store: Store | None) -> Iterator[dict[str, Any]]:
    for name in store.records.names() if store else ():
        if record := store.records.load(name) if store else None:
            yield record


def _recorded_tables(store: Store) -> dict[tuple[str, str], PublishedTable]:
    """Return the tables in the files of published numbers of the studies that a store has recorded."""
    recorded = (
        own_numbers(record["published"], _paper_of(record["text"]))[0]
        for record in _records(store)
        if record.get("published")
    )
    return {(each.paper, each.name): each for numbers in recorded for each in numbers.tables}


def studies_of_paper(paper: str, store: Store) -> tuple[Study, ...]:
    """Return the studies that show numbers of a paper, sorted by name: shipped ones, and those in a store."""
    texts = {
        path.stem: (path.read_text(encoding="utf-8"), {})
        for path in (Path(__file__).parents[1] / "studies").glob("*.toml")
    }
    for name in store.trials(columns=KEY_COLUMNS)["study"].unique():
        if record := store.records.load(name):
            texts[name] = record["text"], record.get("published") or {}
    names = [
        name
        for name, (text, published) in texts.items()
        if _paper_of(text) == paper
        or (
            published
            and any(each.paper == paper for each in own_numbers(published, _paper_of(text))[0].tables)
        )
    ]
    return tuple(load_last_run(name, store, reads=SECTIONS) for name in sorted(names))


def paper_tables(
    published: Iterable[PublishedTable],
    studies: Sequence[Study],
    outcomes: pl.DataFrame,
    begun: Collection[str] = (),
    store: Store | None = None,
) -> tuple[Table, ...]:
    """Return each published table with the numbers of the studies that repeat it.

    There is a table for each study with a trial in `outcomes`, and for each study of printed numbers of
    parameters, which are counted without a trial. Studies of one size with the same columns and different
    rows are joined into one table, unless the values of a column are compared. A table for which there is no
    such study is returned once, with only its published numbers.
    """
    beside = _tables_beside(published, studies, outcomes, begun, store)
    return tuple(table for theirs, tables in beside for table in _join_tables(theirs, tables))


@dataclass(frozen=True, slots=True, kw_only=True)
class _StudyTable:
    """The table of a study that repeats a published table."""

    study: str
    small: bool
    table: Table


def _tables_beside(
    published: Iterable[PublishedTable],
    studies: Sequence[Study],
    outcomes: pl.DataFrame,
    begun: Collection[str],
    store: Store | None = None,
) -> Iterator[tuple[PublishedTable, list[_StudyTable]]]:
    """Yield each published table with the tables of the studies that repeat it.

    Tables over several studies are read from the `store`; without one, they are left out.
    """
    stored = set(outcomes["trial"])
    ran = {study.name for study in studies if any(trial.id in stored for trial in study.trials)}
    for theirs in published:
        beside: list[_StudyTable] = []
        ours = [
            (study, spec)
            for study in studies
            for spec in study.tables
            if (store is not None or not getattr(spec, "studies", ()))
            and any(
                (own.paper, own.name) == (theirs.paper, theirs.name) for own in _shown_tables(study, spec)
            )
            and (
                study.name in ran
                or "parameters" in {name for _, name in spec.named_metrics()}.intersection(theirs.columns)
            )
        ]
        for study, spec in ours:
            # of the numbers that the study shows, only those of this table, as they are now
            numbers = PublishedNumbers(paper=theirs.paper, tables=(theirs,), is_partial=True)
            only = replace(study, published=numbers)
            if store is not None and spec.studies_beside:
                table = several_studies_table(only, spec, store, published=True)
            else:
                table = build_table(only, spec, outcomes, published=True, paper_only=True, begun=begun)
            name = f"{theirs.paper}-{theirs.name}-{study.name}"
            table = replace(table, name=name, provenance=f"study {study.name} · {table.provenance}")
            beside.append(_StudyTable(study=study.name, small=study.header.small, table=table))
        yield theirs, beside


def _shown_tables(study: Study, spec: TableKind) -> list[PublishedTable]:
    return [table for name in spec.published_names for table in study.published.find(name)]


def _join_tables(theirs: PublishedTable, tables: Sequence[_StudyTable]) -> list[Table]:
    """Join tables of studies that measured different rows of one published table.

    Small and full-size studies are not joined. Without a study, the table has only the published numbers.
    """
    if not tables:
        return [published_only_table(theirs)]
    joined: list[_StudyTable] = []
    for new in tables:
        known = (at for at, each in enumerate(joined) if each.small is new.small)
        at = next((at for at in known if _can_join(theirs, joined[at].table, new.table)), None)
        if at is None:
            joined.append(new)
        else:
            table = _join(theirs, joined[at].table, new.table, small=new.small)
            joined[at] = replace(joined[at], table=table)
    return [each.table for each in joined]


def _can_join(theirs: PublishedTable, first: Table, second: Table) -> bool:
    """Return whether the tables of two studies can be joined into one.

    They need equal columns, and must not measure the same row of the paper's table. Tables with bold cells or
    differences cannot be joined, because these compare rows.
    """
    if any(
        cell.best or cell.difference_text for each in (first, second) for row in each.cells for cell in row
    ):
        return False
    alike = (first.spread, set(first.keys)) == (second.spread, set(second.keys))
    return alike and not _own_rows(theirs, first) & _own_rows(theirs, second)


def _own_rows(theirs: PublishedTable, table: Table) -> set[str]:
    # by identity, because a paper may print the same number in two cells
    beside = {id(cell.published) for number in _own_numbers(table) for cell in table.cells[number]}
    return {row for (row, _), number in theirs.cells.items() if id(number) in beside}


def _own_numbers(table: Table) -> list[int]:
    groups = table.groups or ("",) * len(table.rows)
    return [number for number, group in enumerate(groups) if group != PAPER_ONLY_HEADING]


def _join(theirs: PublishedTable, first: Table, second: Table, *, small: bool) -> Table:
    """Join the rows of two tables of studies into one table, which is compared with the paper as a whole.

    The columns keep the order of the first table, and footnotes get new marks. A caption that continues
    the other one, as in `mean of 10 seeds, fewer where marked`, is the caption of both.
    """
    notes = Footnotes()
    order = [second.keys.index(key) for key in first.keys]
    parts = ((first, _own_numbers(first), range(len(order))), (second, _own_numbers(second), order))
    left = [
        number
        for number in range(len(first.rows))
        if number not in parts[0][1] and first.rows[number] not in _own_rows(theirs, second)
    ]
    places = [*((part, number, columns) for part, own, columns in parts for number in own)]
    places += [(first, number, parts[0][2]) for number in left]

    cells = tuple(
        tuple(notes.renewed(table.cells[number][column], table.footnotes) for column in columns)
        for table, number, columns in places
    )
    groups = tuple(table.groups[number] if table.groups else "" for table, number, _ in places)
    shorter, longer = sorted((first.caption, second.caption), key=len)
    is_one = longer == shorter or longer.startswith(shorter.removesuffix(".") + ", ")
    remarks = (*first.remarks, *(() if is_one else (second.caption,)), *second.remarks)
    compared = {
        found.sentence for each in (first, second) if (found := reproduction(each, theirs, small=small))
    }
    table = replace(
        first,
        name=f"{theirs.paper}-{theirs.name}",
        caption=longer if is_one else first.caption,
        remarks=tuple(dict.fromkeys(each for each in remarks if each not in compared)),
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
        corner=" / ".join(dict.fromkeys((first.corner, second.corner))),
        rows=tuple(table.rows[number] for table, number, _ in places),
        cells=cells,
        footnotes=notes.as_tuple(),
        groups=groups if any(groups) else (),
        provenance=f"{first.provenance}; {second.provenance}",
    )
    found = reproduction(table, theirs, small=small)
    return replace(table, remarks=(*table.remarks, found.sentence)) if found else table


def tables_of_paper(paper: str, store: Store | str | Path, name: str | None = None) -> list[Table]:
    """Return the printed tables of a paper, or the one of this name, with the results of studies.

    `paper` is the name of a paper, or a CSV file of published numbers.
    """
    check_arguments(argument_fault("paper", paper, str, "the name of a paper"), store_fault(store))
    store = open_store(store)
    theirs = published_tables_of(paper, name, store)
    return list(paper_tables(theirs, *_stored(theirs, store), store))


def _stored(
    theirs: Sequence[PublishedTable], store: Store
) -> tuple[tuple[Study, ...], pl.DataFrame, frozenset[str]]:
    """Return the stored studies of papers, the outcomes of their trials, and the ids of unfinished trials."""
    papers = dict.fromkeys(each.paper for each in theirs)
    studies = tuple({each.name: each for paper in papers for each in studies_of_paper(paper, store)}.values())
    outcomes = load_outcomes(store, *studies)
    ended = set(outcomes["trial"])
    begun = (each.id for study in studies for each in unfinished_of(study, store, ended))
    return studies, outcomes, frozenset(begun)


def published_only_table(theirs: PublishedTable) -> Table:
    """Return a table that shows only the numbers of a paper's table.

    A remark on some of the numbers is a footnote. The name of a column, such as `accuracy:copy`, is split
    into metric and level; a name without a colon is a level.
    """
    numbers, notes = theirs.cells, Footnotes()
    remarks, units = ({getattr(each, key) for each in numbers.values()} for key in ("remark", "unit"))
    cells: list[tuple[Cell, ...]] = []
    for row in theirs.rows:
        cells.append(())
        for number in (numbers.get((row, column)) for column in theirs.columns):
            cell = Cell(status=CellStatus.UNPLANNED)
            if number is not None:
                noted = len(remarks) > 1 and number.remark
                marks = (notes.mark(number.remark),) if noted else ()
                text = number.text_with_deviation
                cell = Cell(
                    status=CellStatus.PUBLISHED,
                    text=text,
                    marks=marks,
                    published_lines=(PublishedLine(number=number),),
                )
            cells[-1] += (cell,)
    parts = [column.partition(":") for column in theirs.columns]
    keys = tuple(
        ColumnKey(metric=first, level=level) if colon else ColumnKey(metric="", level=first)
        for first, colon, level in parts
    )
    heads: list[str] = []
    for key, column in zip(keys, theirs.columns, strict=True):
        own = {number.unit for (_, name), number in numbers.items() if name == column}
        shows_arrow = len(units) > 1 and len(own) == 1
        arrow = BETTER_ARROWS[HIGHER_IS_BETTER_BY_UNIT.get(next(iter(own)))] if shows_arrow else ""
        heads.append(key.level + arrow)
    unit = next(iter(units))
    side = f" ({unit}{_SIDES[HIGHER_IS_BETTER_BY_UNIT.get(unit)]})" if len(units) == 1 else ""
    remark = next(iter(remarks)) if len(remarks) == 1 else ""
    return Table(
        name=f"{theirs.paper}-{theirs.name}",
        caption=f"Published: {theirs.paper} {theirs.name}{side}.",
        remarks=(f"{remark[:1].upper()}{remark[1:]}.",) if remark else (),
        corner="",
        rows=theirs.rows,
        columns=tuple(heads),
        cells=tuple(cells),
        footnotes=notes.as_tuple(),
        provenance=f"{plural(len(numbers), 'published number')} · {theirs.title}",
        keys=keys,
        column_headings=(tuple(key.metric for key in keys),) if any(key.metric for key in keys) else (),
    )


@lru_cache(maxsize=256)
def _paper_of(text: str) -> str | None:
    """Return the paper that a study file names, without building the study's trials."""
    try:
        study = parse_document("", text).data.get("study", {})
    except StudyError:  # a study file that cannot be read names no paper
        return None
    return study.get("paper") if isinstance(study, dict) else None


_AT_LEVEL = re.compile(r"(?:at ([^:]+=[^:]*): )?(.*)", re.DOTALL)
"""The name of a claim that is made at each level of a factor: the level, and the name of the claim itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperStudy:
    """A study of the paper, with its progress and the maximum cost of its remaining trials.

    `flops` are the FLOPs of all remaining trials, and `seconds` the time of one core of this machine
    for them, None if unknown.
    """

    name: str
    title: str
    small: bool
    trials: int
    done: int
    left: int
    flops: float
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedTable:
    """A table of the paper, with counts of printed and measured numbers.

    `full_size` counts the numbers that a study of the paper's size has measured. Of these, `computed` are
    costs that need no training, such as parameters, and `fewer_seeds` are those that no such study has with
    all of its seeds. `small` counts the numbers that only a small study has measured. `reproductions` has a
    comparison for each study with trained cells.
    """

    name: str
    printed: int
    full_size: int
    computed: int
    fewer_seeds: int
    small: int
    reproductions: Mapping[str, Reproduction]

    @property
    def missing(self) -> int:
        """Return how many numbers of the printed table no study has measured."""
        return self.printed - self.full_size - self.small


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyVerdict:
    """The verdict of one study on a claim, with its effect and number of seeds.

    The margin that the claim has `added` to a side is not part of the effect. `at` is the level at which the
    claim is made, if it is made at several. `deciding` is the comparison on which the verdict depends most:
    the effect is its effect, and `printed` the same effect in the paper's numbers. `part` names it if the
    claim has several comparisons. `missing` of the claim's `trials` have not ended.
    `fitted` are the settings that were chosen by results of its cells.
    """

    study: str
    at: str
    small: bool
    verdict: Verdict
    fitted: tuple[str, ...]
    deciding: ComparisonResult
    part: str
    printed: float | None
    seeds: int
    trials: int
    missing: int
    effect: float | None
    added: float
    n: int
    needed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperClaim:
    """A claim of the paper, with the verdicts of the full-size and of the small studies that test it."""

    name: str
    source: str
    full_size: tuple[StudyVerdict, ...]
    small: tuple[StudyVerdict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperFigure:
    """A figure of one of the paper's studies.

    `done` is the number of the study's trials that have data for it.
    """

    study: str
    name: str
    caption: str
    done: int
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperSheet:
    """All results for a paper. `tables` are its tables with measured numbers next to the published ones."""

    paper: str
    printed: tuple[PrintedTable, ...]
    claims: tuple[PaperClaim, ...]
    figures: tuple[PaperFigure, ...]
    studies: tuple[PaperStudy, ...]
    tables: tuple[Table, ...]

    def count_decided(self, *, small: bool, trained: bool = False) -> int:
        """Return how many claims are confirmed or refuted, by the small or by the full-size studies.

        A claim that is confirmed only with settings that were fitted to it does not count.

        If `trained`, leave out claims that are only about computed costs, which need no training.
        """
        verdicts = (claim.small if small else claim.full_size for claim in self.claims)
        decided = {Verdict.CONFIRMED, Verdict.REFUTED}
        return sum(
            any(each.verdict in decided and (each.trials or not trained) for each in found)
            for found in verdicts
        )


def papers() -> tuple[str, ...]:
    """Return the names of all papers with published numbers, in alphabetical order."""
    return tuple(sorted({paper for paper, _ in published_tables()}))


def paper_sheet(paper: str, store: Store | str | Path) -> PaperSheet:
    """Return all results in a store for a paper, or for the papers of a CSV file of published numbers.

    Raise TableError for an unknown paper, and for the faults of a file.
    """
    check_arguments(argument_fault("paper", paper, str, "the name of a paper"), store_fault(store))
    store = open_store(store)
    every = published_tables_of(paper, store=store)
    studies, outcomes, begun = _stored(every, store)
    beside = list(_tables_beside(every, studies, outcomes, begun, store))
    snapshots = [Snapshot(study=study, store=store, outcomes=outcomes) for study in studies]
    counts = {each.study.name: each.status.counts["done"] for each in snapshots}
    several = len({each.paper for each in every}) > 1
    return PaperSheet(
        paper=paper,
        printed=tuple(_printed_table(theirs, tables, several=several) for theirs, tables in beside),
        claims=tuple(_claims(snapshots)),
        figures=tuple(
            PaperFigure(
                study=study.name,
                name=curve.name,
                caption=curve.caption or "",
                done=counts[study.name],
                trials=study.total,
            )
            for study in studies
            for curve in study.curves
        ),
        studies=tuple(map(_study_row, snapshots)),
        tables=tuple(table for theirs, tables in beside for table in _join_tables(theirs, tables)),
    )


def _printed_table(theirs: PublishedTable, tables: Sequence[_StudyTable], *, several: bool) -> PrintedTable:
    full_size, in_small = (
        [
            (cell, key.metric)
            for each in tables
            if each.small is small
            for cells in each.table.cells
            for cell, key in zip(cells, each.table.keys, strict=True)
            if cell.published is not None and cell.estimate is not None
        ]
        for small in (False, True)
    )
    measured = {id(cell.published) for cell, _ in full_size}
    complete = {id(cell.published) for cell, _ in full_size if cell.status is not CellStatus.PARTIAL}
    return PrintedTable(
        name=theirs.title if several else theirs.name,
        printed=len(theirs.cells),
        full_size=len(measured),
        computed=len({id(cell.published) for cell, metric in full_size if metric in ANALYTIC_COSTS}),
        fewer_seeds=len(measured - complete),
        small=len({id(cell.published) for cell, _ in in_small} - measured),
        reproductions=_reproductions(theirs, tables),
    )


def _reproductions(theirs: PublishedTable, tables: Sequence[_StudyTable]) -> dict[str, Reproduction]:
    """Return how well each study reproduces a published table, in the largest of its tables."""
    found: dict[str, Reproduction] = {}
    for each in tables:
        new = reproduction(each.table, theirs, small=each.small)
        if new and (each.study not in found or new.pairs > found[each.study].pairs):
            found[each.study] = new
    return found


def _claims(snapshots: Iterable[Snapshot]) -> Iterator[PaperClaim]:
    found: dict[str, tuple[str, list[StudyVerdict]]] = {}
    for each in snapshots:
        for name, source, verdict in _verdicts(each) if each.study.claims else ():
            found.setdefault(name, (source, []))[1].append(verdict)
    for name, (source, verdicts) in found.items():
        full_size, small = (
            tuple(each for each in verdicts if each.small is is_small) for is_small in (False, True)
        )
        yield PaperClaim(name=name, source=source, full_size=full_size, small=small)


def _verdicts(now: Snapshot) -> Iterator[tuple[str, str, StudyVerdict]]:
    """Yield the verdict of a study on each claim of its paper, after the claim's name and source."""
    study, outcomes = now.study, now.outcomes
    ended = set(outcomes.filter(pl.col("status") != "incomplete")["trial"])
    trials: dict[CellKey, set[str]] = {}
    for trial in study.cells:
        trials.setdefault(trial.cell, set()).add(trial.id)
    printed: dict[tuple[str, CellKey], float] = {}
    for spec in study.tables:
        # the sheet shows names without a match, so that they need no warning
        if made := find_cells(spec, study, outcomes, TableExtras(published=True, paper_only=True)):
            printed = {**made.published_values(), **printed}
    for claim, checked in zip(study.claims, now.claims(), strict=True):
        if not claim.spec.source:
            continue
        deciding = checked.deciding
        comparison = next(
            each
            for each, finding in zip(claim.comparisons, checked.findings, strict=True)
            if finding is deciding
        )
        # a small study compares with other numbers than the paper, such as a shorter length
        has_own_bound = study.header.small and isinstance(comparison.right, Constant)
        trained = (each for each in claim.quantities if each.metric not in ANALYTIC_COSTS)
        own = set[str]().union(*(trials.get(cell_key(each.cell), ()) for each in trained))
        at, name = _AT_LEVEL.findall(claim.spec.name)[0]
        verdict = StudyVerdict(
            study=study.name,
            at=at,
            small=study.header.small,
            verdict=checked.verdict,
            fitted=checked.fitted,
            deciding=deciding,
            part=deciding.label if len(checked.findings) > 1 else "",
            printed=None if has_own_bound else printed_effect(comparison, printed),
            seeds=checked.seeds,
            trials=len(own),
            missing=len(own - ended),
            effect=deciding.effect,
            added=deciding.added,
            n=deciding.n,
            needed=checked.needed,
        )
        yield name, claim.spec.source, verdict


def _study_row(now: Snapshot) -> PaperStudy:
    study, status = now.study, now.status
    ends = study.examples
    check_layers(study, ends)
    estimator = TimeEstimator(now.outcomes, ends)
    if study.search is not None:
        left = remaining_search_times(study, now.store, now.own_outcomes, estimator)
        flops = remaining_search_flops(ends, len(left))
    else:
        missing = [each for each in study.trials if status.stored.get(each.id, "incomplete") == "incomplete"]
        left = [estimator.estimate(trial) for trial in missing]
        flops = sum(max_trial_flops(trial.settings) for trial in missing)
    return PaperStudy(
        name=study.name,
        title=study.title,
        small=study.header.small,
        trials=study.total,
        done=status.counts["done"],
        left=len(left),
        flops=flops,
        seconds=total_time(left).seconds,
    )
