"""The sheet of a paper: the results of our studies for each of its tables, claims and figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ..diagnostics import nearest_hint
from ..errors import argument_fault, check_arguments
from ..storage import Store, open_store, store_fault
from ..studies.catalog.published import PublishedTable, published_tables
from ..studies.planning.status import started_trials
from ..studies.planning.time_estimates import total_time
from ..studies.resolve.costs import flops_of_test, max_training_flops
from ..studies.study import Study
from .claims.verdicts import ClaimResult, Verdict
from .outcomes import load_outcomes
from .paper_tables import paper_tables, studies_of_paper
from .results import StudyResults
from .tables.table import Table, TableError
from .tables.tidy import iter_records

_AT_LEVEL = re.compile(r"(?:at ([^:]+=[^:]*): )?(.*)", re.DOTALL)
"""A claim that is made at each level of a factor: the level, and the claim's own name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperStudy:
    """A study of the paper: its trials in the store, and what the others cost at most.

    `flops` are the FLOPs of all remaining trials, and `seconds` their time on this machine, None if unknown.
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
    """A table of the paper: how many numbers it prints, and how many of them have a result of ours.

    A number with a result at the paper's size is not counted as `small`, however far the result is from it.
    """

    name: str
    printed: int
    full_size: int
    small: int

    @property
    def missing(self) -> int:
        """Return how many printed numbers have no result at any size."""
        return self.printed - self.full_size - self.small


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyVerdict:
    """The verdict of one study on a claim, with its effect and the number of seeds behind it."""

    study: str
    at: str
    verdict: Verdict
    effect: float | None
    n: int
    needed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperClaim:
    """A claim of the paper, and the verdicts of all studies that test it, by the size of their models."""

    name: str
    source: str
    full_size: tuple[StudyVerdict, ...]
    small: tuple[StudyVerdict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperFigure:
    """A figure of a study of the paper, and how many of the study's trials it can show."""

    study: str
    name: str
    caption: str
    done: int
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperSheet:
    """Results of our studies for a paper; `tables` are its printed tables with our numbers beside them."""

    paper: str
    printed: tuple[PrintedTable, ...]
    claims: tuple[PaperClaim, ...]
    figures: tuple[PaperFigure, ...]
    studies: tuple[PaperStudy, ...]
    tables: tuple[Table, ...]

    @property
    def cells(self) -> list[dict[str, Any]]:
        """Return the cells of all tables in reading order."""
        return [cell for table in self.tables for cell in iter_records(table)]

    def count_decided(self, *, small: bool) -> int:
        """Return how many claims a study of this size has confirmed or refuted."""
        verdicts = (claim.small if small else claim.full_size for claim in self.claims)
        decided = {Verdict.CONFIRMED, Verdict.REFUTED}
        return sum(any(each.verdict in decided for each in found) for found in verdicts)


def papers() -> tuple[str, ...]:
    """Return the names of all papers whose numbers or claims are known, in order."""
    return tuple(sorted({paper for paper, _ in published_tables()}))


def paper_sheet(paper: str, store: Store | str | Path) -> PaperSheet:
    """Return the sheet of a paper from the results in a store; TableError for an unknown paper."""
    check_arguments(argument_fault("paper", paper, str, "the name of a paper"), store_fault(store))
    if paper not in papers():
        raise TableError(f"unknown paper '{paper}'{nearest_hint(paper, papers())}")
    store = open_store(store)
    results = [StudyResults(study, store) for study in studies_of_paper(paper, store)]
    studies = [each.study for each in results]
    printed = [table for table in published_tables().values() if table.paper == paper]
    outcomes = load_outcomes(store, *studies)
    ended = set(outcomes["trial"])
    begun = {trial for study in studies for trial in started_trials(study, store, ended)}
    counts = {each.study.name: each.status.counts["done"] for each in results}
    return PaperSheet(
        paper=paper,
        printed=tuple(_printed_table(theirs, studies, outcomes) for theirs in printed),
        claims=tuple(_claims(results)),
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
        studies=tuple(map(_study_row, results)),
        tables=paper_tables(printed, studies, outcomes, begun),
    )


def _printed_table(theirs: PublishedTable, studies: Sequence[Study], outcomes: pl.DataFrame) -> PrintedTable:
    reached = [
        {
            id(cell.published)
            for table in paper_tables([theirs], [each for each in studies if each.small is small], outcomes)
            for cells in table.cells
            for cell in cells
            if cell.published is not None and cell.estimate is not None
        }
        for small in (False, True)
    ]
    full_size, in_small = reached
    return PrintedTable(
        name=theirs.name,
        printed=len(theirs.cells),
        full_size=len(full_size),
        small=len(in_small - full_size),
    )


def _claims(results: Iterable[StudyResults]) -> Iterator[PaperClaim]:
    """Yield each claim that has a source in the paper, with the verdicts of all studies that test it."""
    found: dict[str, list[tuple[Study, str, ClaimResult]]] = {}
    for each in results:
        for checked in each.check_claims() if each.study.claims else ():
            if checked.spec.source:
                at, name = _AT_LEVEL.findall(checked.spec.name)[0]
                found.setdefault(name, []).append((each.study, at, checked))
    for name, tested in found.items():
        verdicts = [
            (
                study.small,
                StudyVerdict(
                    study=study.name,
                    at=at,
                    verdict=checked.verdict,
                    effect=checked.deciding.effect,
                    n=checked.deciding.n,
                    needed=checked.needed,
                ),
            )
            for study, at, checked in tested
        ]
        yield PaperClaim(
            name=name,
            source=tested[0][2].spec.source or "",
            full_size=tuple(verdict for small, verdict in verdicts if not small),
            small=tuple(verdict for small, verdict in verdicts if small),
        )


def _study_row(results: StudyResults) -> PaperStudy:
    study, plan = results.study, results.plan()
    missing = [each for each in plan.trials if each.status in ("missing", "incomplete")]
    if study.search is not None:
        left, flops, time = plan.num_remaining, plan.flops, plan.estimate
    else:
        left, time = len(missing), total_time(each.estimate for each in missing)
        settings = [each.trial.settings for each in missing]
        flops = sum(max_training_flops(each) + flops_of_test(each) for each in settings)
    return PaperStudy(
        name=study.name,
        title=study.title,
        small=study.small,
        trials=plan.total,
        done=plan.counts.get("done", 0),
        left=left,
        flops=flops,
        seconds=time.seconds,
    )
