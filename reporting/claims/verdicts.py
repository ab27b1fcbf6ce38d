"""The result of a claim: a verdict for each comparison, and the combined verdict."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from ...errors import ActivememError, nearest_hint
from ...studies.catalog.metrics import format_number
from ...studies.claims.comparisons import AllOf, AnyOf, ClaimSpec, Comparison, NotOf, Statement, Test
from ...studies.text.units import format_quantity, listed, plural
from .hypothesis_test import PairedTest


class ClaimError(ActivememError):
    """Error for claims that cannot be checked.

    The study has no claims or no claim of this name, or its trials are not comparable.
    """


MOST_SEEDS = 100
"""The most seeds that a hint to train more of them names."""

_MAX_PARTS_NAMED = 2


class Verdict(StrEnum):
    """The verdict on a comparison or a claim, such as confirmed, refuted, undecided or not run."""

    CONFIRMED = "confirmed"
    FITTED = "confirmed but fitted"
    """A claim would be confirmed, but a setting was chosen by the results of a cell that it reads."""
    REFUTED = "refuted"
    UNTRAINED = "untrained"
    """No compared cell is better than a guess, or no cell of a part on which the claim depends."""
    UNDECIDED = "undecided"
    NOT_RUN = "not run"
    """For no seed have all trials of the comparison begun."""


_DECIDED = (Verdict.CONFIRMED, Verdict.FITTED, Verdict.REFUTED)
OPEN = (Verdict.UNDECIDED, Verdict.NOT_RUN)
"""The verdicts that more trials can change."""


def verdict_word(verdict: Verdict, *, small: bool, fitted: Sequence[str] = ()) -> str:
    """Return a verdict in words, such as `refuted at small size` or `confirmed, lr fitted to it`.

    `small` marks a paper's claim that is tested by a smaller study. Only the words of decided claims depend
    on it. `fitted` are the settings that were chosen by results of the claim's cells.
    """
    word = Verdict.CONFIRMED if fitted and verdict is Verdict.FITTED else verdict
    word = f"{word} at small size" if small and verdict in _DECIDED else str(word)
    if not fitted or verdict in (Verdict.UNTRAINED, Verdict.NOT_RUN):
        return word
    return f"{word}, {listed([each.rpartition('.')[2] for each in fitted])} fitted to it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note on the values of a comparison, such as `mixer=sa: 2 of 3 seeds not run`.

    `where` names the levels of a cell, or what else the note is about; `what` is the note. Its `kind` is
    "spread" if other cells vary far more or far less than the compared ones.
    """

    where: str
    what: str
    kind: Literal["values", "spread"] = "values"

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonResult:
    """The result of one comparison of a claim.

    `text` is the comparison in full, and `label` its short name within the claim. `effect` is left minus
    right, or the speedup if it `is_ratio`. The margin `added` to a side, such as 0.01 in `a > b + 0.01`, is
    not part of the effect, but of the test. `tested_for` then describes the test, as in `tested for more than
    0.01`; if the right side is a number, it is `difference from 0.5`. `interval` bounds the effect at the
    claim's level; an end may be infinite. If trainings ended before they reached a target, there are instead
    the `bounds` of the effect, from below and from above; None for a bound that is unknown. `p` is adjusted
    by Hochberg's procedure, and `test` names the test; None if nothing was tested. `degrees` are the degrees
    of freedom of a t interval, None for other tests. `groups` are the numbers of runs of each cell if seeds
    are not paired. `needed` is the number of seeds that would decide it; None if unknown. `gaps` are the
    missing trials of its seeds. `notes` are the diverged ones, which count with the worst value, those that
    did not reach a target, values that are all at a bound, and a spread unlike that of other cells. It is
    `at_bound` if all values are at a bound of the metric: then more seeds change nothing. `decides_part` is
    true for the comparison on which a part of the claim, such as an `any` in an `all`, depends most.
    """

    text: str
    label: str
    verdict: Verdict
    effect: float | None
    interval: tuple[float, float] | None
    bounds: tuple[float | None, float | None] | None
    p: float | None
    test: Test | None
    n: int
    degrees: float | None
    needed: int | None
    decimals: int
    unit: str
    is_ratio: bool
    added: float
    tested_for: str
    gaps: tuple[Note, ...]
    notes: tuple[Note, ...]
    at_bound: bool
    decides_part: bool
    groups: tuple[int, ...] = ()

    def format(self, value: float) -> str:
        """Format a value of this comparison, such as the effect, with its unit or decimals."""
        return format_quantity(value, self.unit) if self.unit else format_number(value, self.decimals)

    @property
    def reversed(self) -> ComparisonResult:
        """Return the result for right minus left."""
        effect, interval, bounds = self.effect, self.interval, self.bounds
        return replace(
            self,
            effect=None if effect is None else -effect,
            interval=interval and (-interval[1], -interval[0]),
            bounds=bounds and tuple(None if end is None else -end for end in bounds[::-1]),
        )

    @property
    def effect_text(self) -> str:
        """Return the effect as text, or a bound of it, such as `> 0.71`; "" if nothing is known of it."""
        if self.effect is not None:
            return self.format(self.effect)
        low, high = self.bounds or (None, None)
        if low is not None:
            return self.format(low) if low == high else f"> {self.format(low)}"
        return "" if high is None else f"< {self.format(high)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimResult:
    """The result of a claim: its verdict, and the results of its comparisons.

    `deciding` is the result of the comparison on which the verdict depends most. `level` is the level of the
    intervals: `level_of_look`, or a higher level if not all comparisons are decided. `level_of_look` is the
    claim's own level, or a higher level if there may be several looks. `looks` are the numbers of seeds at
    which the claim is tested. `needed` is the number of seeds that would decide the claim; None if unknown,
    or if it is decided. `comparable_words` say which cells a pooled variance is estimated from. `small` marks
    a paper's claim that is tested by a smaller study. `fitted` are the settings that were chosen by the
    results of a cell that the claim reads: it is then not confirmed, but "confirmed but fitted". `origin`
    says which code trained the study's trials, or that they were judged and not trained here.
    """

    spec: ClaimSpec
    verdict: Verdict
    fitted: tuple[str, ...]
    findings: tuple[ComparisonResult, ...]
    deciding: ComparisonResult
    level: float
    level_of_look: float
    looks: tuple[int, ...]
    needed: int | None
    seeds: int
    comparable_words: str
    small: bool
    origin: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return f"<ClaimResult {self.spec.name!r}: {self.verdict_text}>"

    @property
    def verdict_text(self) -> str:
        """Return the verdict in words, such as `refuted at small size` or `confirmed, lr fitted to it`."""
        return verdict_word(self.verdict, small=self.small, fitted=self.fitted)

    @property
    def deciding_parts(self) -> str:
        """Return which comparisons cause the verdict, such as `refuted part: sa > conv`.

        Many parts are only counted, as in `5 of 9 parts refuted`. The text is empty if all comparisons have
        the same verdict.
        """
        kinds = OPEN if self.verdict in OPEN else (self.deciding.verdict,)
        labels = [each.label for each in self.findings if each.verdict in kinds]
        if len(labels) == len(self.findings):
            return ""
        kind = Verdict.UNDECIDED if self.verdict in OPEN else self.deciding.verdict
        word, parts = verdict_word(kind, small=self.small), "part" if len(labels) == 1 else "parts"
        if len(labels) > _MAX_PARTS_NAMED:
            return f"{len(labels)} of {len(self.findings)} parts {word}"
        head = f"{kind} {parts}" if word == kind else f"{parts} {word}"
        return f"{head}: {'; '.join(labels)}"

    def __str__(self) -> str:
        """Return one sentence, such as `Confirmed with 2 seeds: conv is ahead (+4.0 [0.4, 7.6]).`."""
        finding = self.deciding
        effect = ""
        if finding.effect is not None and finding.interval is not None:
            number, low, high = map(finding.format, (finding.effect, *finding.interval))
            sign = "×" if finding.is_ratio else "+" if finding.effect > 0 else ""
            tested_for = f", {finding.tested_for}" if finding.tested_for else ""
            effect = f" ({sign}{number} [{low}, {high}]{tested_for})"
        elif finding.bounds is not None and finding.effect_text:
            effect = f" ({finding.effect_text})"
        if self.verdict is Verdict.NOT_RUN:
            return f"Not run: {self.spec.name}."
        counted = f"{listed(finding.groups)} runs" if finding.groups else plural(finding.n, "seed")
        seeds = f"{counted}{seeds_hint(finding, self.needed)}"
        head = f"{self.verdict_text.capitalize()} with {seeds}"
        parts = f"; {self.deciding_parts}" if self.deciding_parts else ""
        judged = f" Judged, {self.origin.partition('judged, ')[2]}." if "judged, " in self.origin else ""
        return f"{head}: {self.spec.name}{parts}{effect}.{judged}"


def seeds_hint(finding: ComparisonResult, needed: int | None, *, within: str = "within ±") -> str:
    """Return what would decide a comparison, such as `, 11 would do`, or what is known, `, within ±0.05`.

    If all values are at a bound, it is `, more seeds do not help`; a note says what may help. If
    the claim needs another number of seeds than this comparison, it is `, 11 would do for the claim`.

    If more seeds are needed than anybody would train, it is the largest difference in the interval, after the
    words `within`. Without both numbers, as for one seed, it is `, run more seeds`. It is "" after a
    decision, while trials are missing, and if nothing is known of the effect, as if all trainings diverged.
    """
    if finding.gaps or finding.verdict is not Verdict.UNDECIDED or not finding.effect_text:
        return ""
    noun = "run" if finding.groups else "seed"
    if finding.at_bound:
        return f", more {noun}s do not help"
    if needed and needed <= MOST_SEEDS:
        return f", {needed} would do{' for the claim' * (needed != finding.needed)}"
    if finding.interval is None or not all(map(math.isfinite, finding.interval)):
        return ", make more runs" if finding.groups else ", run more seeds"
    if finding.is_ratio:  # its interval says the same
        return ""
    return f", {within}{finding.format(max(map(abs, finding.interval)))}"


def format_p(p: float) -> str:
    """Format a p-value, such as `p = .03` or `p < .001`.

    It is `p < .05` if rounding would show `p = .05` for a smaller value.
    """
    if p < 0.001:
        return "p < .001"
    if 0.0495 <= p < 0.05:
        return "p < .05"
    return "p = " + (f"{p:.3f}".rstrip("0").lstrip("0") if p < 0.9995 else "1")


def select_claims(results: Sequence[ClaimResult], names: Sequence[str]) -> list[ClaimResult]:
    """Return the results of the claims with these names, in the order of the file; without names, of all.

    The name of a claim with `each` selects its results at all levels. Raise ClaimError for unknown names.
    """

    def own_names(spec: ClaimSpec) -> tuple[str, ...]:
        return (spec.name,) if spec.each is None else (spec.name, spec.name.partition(": ")[2])

    known = list(dict.fromkeys(own_names(each.spec)[-1] for each in results))
    known += [each.spec.name for each in results if each.spec.name not in known]
    if unknown := [
        f"unknown claim '{name}'{nearest_hint(name, known)}" for name in names if name not in known
    ]:
        raise ClaimError("\n".join(unknown))
    return [each for each in results if not names or not set(names).isdisjoint(own_names(each.spec))]


def count_verdicts(results: Iterable[ClaimResult], separator: str = ", ") -> str:
    """Return the counts of verdicts as text: `2 confirmed, 0 refuted, 1 undecided`.

    Verdicts at small size are counted separately, as in `2 confirmed at small size`. `untrained`, `not run`
    and `confirmed but fitted` are added only if their count is not 0.
    """
    counts: dict[Verdict, Counter[str]] = {each: Counter() for each in Verdict}
    always = (Verdict.CONFIRMED, Verdict.REFUTED, Verdict.UNDECIDED)
    for each in results:
        counts[each.verdict][verdict_word(each.verdict, small=each.small)] += 1
    shown = [
        f"{count} {word}"
        for verdict, words in counts.items()
        for word, count in sorted(words.items()) or ([(verdict, 0)] if verdict in always else [])
    ]
    return separator.join(shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on a statement, which may be a single comparison.

    `deciding` is the comparison on which it depends most: that with the lowest p if one comparison is enough,
    and that with the highest p if all are needed. `test` is the test of this comparison at the look that
    decides it, or at the last look, and `favours` says whether its effect supports the statement. `parts` are
    the deciding comparisons of the statement's parts. `needed` is how many seeds would decide an open
    statement: the largest number that an open comparison needs, or for an `any` the smallest of those that
    may be confirmed; None if unknown. A single comparison may decide it sooner.
    """

    verdict: Verdict
    deciding: Comparison
    test: PairedTest
    favours: bool
    needed: int | None
    parts: tuple[Comparison, ...]


def judge(statement: Statement, own: Mapping[Comparison, Judgement]) -> Judgement:
    """Combine the judgements on a statement's comparisons, `own`, into one on the statement."""
    match statement:
        case Comparison():
            return own[statement]
        case NotOf():
            inner = judge(statement.part, own)
            opposite = {Verdict.CONFIRMED: Verdict.REFUTED, Verdict.REFUTED: Verdict.CONFIRMED}
            verdict = opposite.get(inner.verdict, inner.verdict)
            return replace(inner, verdict=verdict, favours=not inner.favours)
        case AllOf() | AnyOf():
            parts = [judge(part, own) for part in statement.parts]
            found = _judge_all(parts) if isinstance(statement, AllOf) else _judge_any(parts)
            deciding: list[Comparison] = []
            for part, inner in zip(statement.parts, parts, strict=True):
                # of an `any` in an `all`, or the reverse, one comparison stands for all
                is_mixed = isinstance(part, AllOf | AnyOf) and type(part) is not type(statement)
                deciding += [inner.deciding] if is_mixed else inner.parts
            return replace(found, parts=tuple(deciding))


def _judge_all(parts: Sequence[Judgement]) -> Judgement:
    """Judge an AllOf. One refuted part refutes it, regardless of the others."""
    verdict, alike = _settled(parts, Verdict.REFUTED)
    choose = min if verdict is Verdict.REFUTED else max
    return replace(choose(alike, key=_p), verdict=verdict, needed=_most_needed(parts))


def _judge_any(parts: Sequence[Judgement]) -> Judgement:
    """Judge an AnyOf. One confirmed part confirms it, regardless of the others."""
    verdict, alike = _settled(parts, Verdict.CONFIRMED)
    if hopeful := [part for part in alike if part.favours and part.test.p < 1]:
        fewest = min((part.needed for part in hopeful if part.needed is not None), default=None)
        return replace(min(hopeful, key=_p), verdict=verdict, needed=fewest)
    return replace(max(alike, key=_p), verdict=verdict, needed=_most_needed(parts))


def _p(part: Judgement) -> float:
    """Return the p of a part, without its rounding error: of parts with equal p the first decides."""
    return round(part.test.p, 15)


def _settled(parts: Sequence[Judgement], resolving: Verdict) -> tuple[Verdict, list[Judgement]]:
    """Return the verdict that one part settles or that all share, and the parts with this verdict."""
    found = {part.verdict for part in parts}
    verdict = Verdict.UNTRAINED if found.isdisjoint(OPEN) else Verdict.UNDECIDED
    if resolving in found or len(found) == 1:
        verdict = resolving if resolving in found else found.pop()
    return verdict, [part for part in parts if part.verdict in (OPEN if verdict in OPEN else (verdict,))]


def _most_needed(parts: Sequence[Judgement]) -> int | None:
    """Return the largest number of seeds that an open part needs; None if one of these is unknown."""
    counts = [part.needed for part in parts if part.verdict in OPEN]
    known = [count for count in counts if count is not None]
    return max(known) if known and len(known) == len(counts) else None
