"""What came of a claim: a verdict for each comparison, and the one that these make together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ...errors import ActivememError
from ...studies.claims.comparisons import AllOf, AnyOf, Comparison, NotOf, Statement
from ...studies.claims.spec import ClaimSpec


class ClaimError(ActivememError):
    """A study that makes no claim was asked for its claims."""


class Verdict(StrEnum):
    """What the seeds say."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingTrials:
    """What is missing of a cell: which, as its levels, and what became of its trials."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonResult:
    """One comparison: `text` in full, `label` as it is called beside the others of its claim.

    `effect` is left less right, `interval` bounds it at the claim's level. `p` is raised by Hochberg's
    correction; None where nothing was tested. `needed` seeds would do; None where no number can be given.
    `gaps` say why there may be fewer than the study has.
    """

    text: str
    label: str
    verdict: Verdict
    effect: float | None
    interval: tuple[float, float] | None
    p: float | None
    n: int
    needed: int | None
    decimals: int
    gaps: tuple[MissingTrials, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimResult:
    """A claim and what came of it; its verdict depends on the comparison `deciding`.

    `level` is that of the intervals: the claim's own, or above it where one of several comparisons decides.
    `needed` seeds would do for the whole; None where no number can be given or nothing is missing.
    """

    spec: ClaimSpec
    verdict: Verdict
    findings: tuple[ComparisonResult, ...]
    deciding: ComparisonResult
    level: float
    needed: int | None
    seeds: int


def combine_verdicts(statement: Statement, verdicts: Mapping[Comparison, Verdict]) -> Verdict:
    """The verdict of a statement from those of its comparisons, undecided where they do not decide it.

    One refuted part refutes an AllOf, and one confirmed part confirms an AnyOf, whatever the others are.
    """
    match statement:
        case Comparison():
            return verdicts[statement]
        case NotOf():
            return _opposite(combine_verdicts(statement.part, verdicts))
        case AllOf() | AnyOf():
            parts = {combine_verdicts(part, verdicts) for part in statement.parts}
            one, every = _resolving_verdicts(statement)
            return one if one in parts else every if parts == {every} else Verdict.UNDECIDED


def deciding_comparison(
    statement: Statement, verdicts: Mapping[Comparison, Verdict], p: Callable[[Comparison], float]
) -> Comparison:
    """The comparison that the verdict of a statement hangs on.

    Where one is enough it is the surest, where all are needed the least sure.
    """
    match statement:
        case Comparison():
            return statement
        case NotOf():
            return deciding_comparison(statement.part, verdicts, p)
        case AllOf() | AnyOf():
            whole = combine_verdicts(statement, verdicts)
            parts = [part for part in statement.parts if combine_verdicts(part, verdicts) is whole]
            leaves = [deciding_comparison(part, verdicts, p) for part in parts]
            one, _ = _resolving_verdicts(statement)
            return min(leaves, key=p) if whole is one else max(leaves, key=p)


def seeds_needed(
    statement: Statement, verdicts: Mapping[Comparison, Verdict], needed: Callable[[Comparison], int | None]
) -> int | None:
    """How many seeds would decide an undecided statement: as many as its slowest open part needs.

    None where no number can be given for one of them. A single part may well decide it sooner.
    """
    match statement:
        case Comparison():
            return needed(statement)
        case NotOf():
            return seeds_needed(statement.part, verdicts, needed)
        case AllOf() | AnyOf():
            parts = [
                part for part in statement.parts if combine_verdicts(part, verdicts) is Verdict.UNDECIDED
            ]
            counts = [seeds_needed(part, verdicts, needed) for part in parts]
            known = [count for count in counts if count is not None]
            return max(known) if known and len(known) == len(counts) else None


def _opposite(verdict: Verdict) -> Verdict:
    other = {Verdict.CONFIRMED: Verdict.REFUTED, Verdict.REFUTED: Verdict.CONFIRMED}
    return other.get(verdict, verdict)


def _resolving_verdicts(statement: AllOf | AnyOf) -> tuple[Verdict, Verdict]:
    """The verdict that one part is enough for, and the one that takes every part."""
    pair = (Verdict.REFUTED, Verdict.CONFIRMED)
    return pair if isinstance(statement, AllOf) else (pair[1], pair[0])
