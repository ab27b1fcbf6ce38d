"""Text of claims for a terminal: a row for each claim, and below it a row for each of its comparisons.

A long name is on a line above the numbers, and a long verdict on a line above the name. An undecided row has
no p. The report formats its numbers with the same functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Final

import polars as pl

from ...storage import Store
from ...studies.catalog.metrics import find_metric, is_target, with_sign
from ...studies.claims.comparisons import Extrapolation, iter_numbers, iter_quantities
from ...studies.evidence import find_evidence
from ...studies.late_changes import describe_max_seeds
from ...studies.presentation.metric_words import describe_metrics
from ...studies.resolve.trial import CellKey, Trial, cell_key
from ...studies.study import Study
from ...studies.text.units import degrees_of_freedom, listed
from ..observe import observe
from ..outcomes import overrides_sentence, stale_sentences, unlearnt_sentence
from ..statistics.estimates import TESTS
from ..statistics.groups import RANK_SUMS
from ..statistics.speedup import BOUND_WORDS, FIRST_SENTENCE, HALFWAY_SENTENCE, format_ratio
from .verdicts import (
    MOST_SEEDS,
    OPEN,
    ClaimResult,
    ComparisonResult,
    Verdict,
    format_p,
    seeds_hint,
    verdict_word,
)

INDENT = 2
_GAP = 2  # columns between words and numbers
_MAX_VERDICT = 24  # characters of a verdict above which it has a line of its own
_MAX_CELLS_NAMED = 2  # further cells with the same gap are only counted


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClaimRow:
    """The row of a claim or of a comparison: text on the left, numbers on the right, and notes below."""

    indent: int
    verdict: str
    text: str
    effect: str
    interval: tuple[str, str]
    p_and_n: str
    notes: tuple[str, ...] = ()


def claims_to_terminal(checked: Sequence[ClaimResult], sentences: Sequence[str], *, width: int = 80) -> str:
    """Return the text of all claims: their rows, then the `sentences` that explain them.

    No line is wider than `width` columns, unless a single word is. Blank lines separate the claims if one of
    them has several comparisons.
    """
    rows = [row for each in checked for row in _rows(each)]
    widths: dict[int, int] = {}  # the width of the column of verdicts, by indent
    for row in rows:
        size = len(row.verdict) if len(row.verdict) <= _MAX_VERDICT else 0
        widths[row.indent] = max(widths.get(row.indent, 0), size + 3)
    effect, low, high = (
        max(map(len, texts)) for texts in zip(*((row.effect, *row.interval) for row in rows), strict=True)
    )
    numbers: list[str] = []
    for row in rows:
        one, other = row.interval
        interval = f"[{one:>{low}}, {other:>{high}}]" if one else " " * (low + high + 4)
        numbers.append(f"{row.effect:>{effect}} {interval}  {row.p_and_n}")
    blank_lines = any(row.indent > INDENT for row in rows)
    column = max(INDENT + max(widths.values()), width - max(map(len, numbers)))  # where the numbers begin
    lines: list[str] = []
    for row, right in zip(rows, numbers, strict=True):
        if blank_lines and lines and row.indent == INDENT:
            lines.append("")
        margin = " " * (row.indent + widths[row.indent])
        first = f"{'':{row.indent}}{row.verdict:<{widths[row.indent]}}"
        if len(row.verdict) > _MAX_VERDICT:
            lines.append(f"{first.rstrip()}:")
            first = margin
        *others, last = _wrapped(row.text, width, first, margin)
        beside = len(last) + _GAP <= column
        lines += [*others, f"{last:<{column}}{right}"] if beside else [*others, last, " " * column + right]
        for note in row.notes:
            lines += _wrapped(note, width, margin, margin)
    lines.append("")
    for sentence in sentences:
        lines += _wrapped(sentence, width, " " * INDENT, " " * INDENT)
    return "\n".join([*(line.rstrip() for line in lines), ""])


def _wrapped(text: str, width: int, first: str, others: str) -> list[str]:
    return wrap(text, width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)


_LAW: Final = (
    "law(…): each seed has its own law, so an interval has the spread of the seeds, but not the error of the "
    "law. A table of laws shows it; name a margin that allows for it."
)


def legend(checked: Sequence[ClaimResult]) -> list[str]:
    """Return sentences that explain the numbers of claims and their tests. They stand below the claims."""
    findings = [finding for each in checked for finding in each.findings]
    pooled = {finding.test for each in checked if each.spec.test == "pooled" for finding in each.findings}
    unranked = [finding for each in checked if each.spec.test != "wilcoxon" for finding in each.findings]
    looks = max((each.looks for each in checked), key=len)
    most = max(looks)
    is_beyond = len(looks) > 1 and any(each.needed and each.needed > most for each in checked)
    asked = [*((each.deciding, each.needed) for each in checked), *((each, each.needed) for each in findings)]
    hints = "".join(seeds_hint(finding, needed) for finding, needed in asked)
    is_paired = not any(finding.groups for finding in findings)
    noun = "seed" if is_paired else "run"
    which = "paired by seed" if is_paired else "of independent runs, as seeds are not paired"
    sentences = [
        (True, f"Effect: left minus right, {which}, with its t interval at {_levels(checked)}."),
        (
            any(finding.added for finding in findings),
            "A margin, as in a > b + 2, is not part of the effect, but of the test.",
        ),
        (
            pooled,
            f"Tested by that interval, which assumes normal {'differences' if is_paired else 'values'}. "
            f"Their variance is {'their own' if pooled == {'t'} else _pool(checked)}, and at least that of "
            "rounding.",
        ),
        (
            "t" in pooled and len(pooled) > 1,
            "Comparisons whose variance cannot be pooled, as with a number or a quotient, use their own "
            "alone.",
        ),
        (
            any(note.kind == "spread" for finding in findings for note in finding.notes),
            "Cells that vary far more than the compared ones widen the interval; where they vary far less, "
            f'more than 5 % of verdicts with few {noun}s are wrong. test = "t" uses only the compared cells, '
            "but must be set before any result.",
        ),
        (
            "permutation" in pooled,
            f"With enough {noun}s, a {TESTS['permutation']} decides instead, and the interval is of the "
            "comparison alone.",
        ),
        (
            any(finding.test == "wilcoxon" and not finding.bounds for finding in unranked),
            f"With a diverged {noun}, a {TESTS['wilcoxon'] if is_paired else RANK_SUMS} decides, in which "
            "it has the largest rank; the effect is then the Hodges–Lehmann estimate"
            f"{', with the interval of that test' * is_paired}.",
        ),
        (any(each.spec.test != "pooled" for each in checked), _named_tests(checked, is_paired=is_paired)),
        (
            any(finding.is_ratio for finding in findings),
            "A speedup (×) is the geometric mean over seeds, with its interval on logarithms. "
            f"{HALFWAY_SENTENCE}",
        ),
        (
            any(finding.bounds for finding in findings),
            f"If trainings missed a target, {BOUND_WORDS}. The {TESTS['wilcoxon']} decides, with the least "
            "favourable costs that they can have.",
        ),
        (
            len(looks) > 1,
            f"Tested at {listed(looks)} seeds, with levels that keep the error rate of the claim overall "
            "(Pocock 1977); p is corrected for these looks.",
        ),
        (
            "would do" in hints,
            f'"would do": {noun}s {"of each side " * (not is_paired)}for a power of 80 % at this effect and '
            f"spread, up to {MOST_SEEDS}"
            f"{f', also if these are more than max_seeds = {most}' if is_beyond else ''}.",
        ),
        (
            any(each.fitted and each.verdict is not Verdict.NOT_RUN for each in checked),
            '"fitted to it": the setting was chosen by results of a cell that the claim reads, so that a '
            "confirmation does not count as one.",
        ),
        (
            any(finding.verdict is Verdict.UNTRAINED for finding in findings),
            '"untrained": no compared cell is better than a guess, so its values say nothing of trained '
            "models.",
        ),
        ("within" in hints, '"within": the largest difference that the interval leaves open.'),
    ]
    return [sentence for applies, sentence in sentences if applies]


def _levels(checked: Sequence[ClaimResult]) -> str:
    """Return the levels of the claims' intervals, such as `95 %`."""
    levels = " or ".join(f"{100 * level:.4g} %" for level in sorted({each.level_of_look for each in checked}))
    wider = ", wider for claims with undecided comparisons (Hochberg)"
    return levels + (wider if any(map(_has_stricter_level, checked)) else "")


def _pool(checked: Sequence[ClaimResult]) -> str:
    """Return which variance a pooled interval has, with its degrees of freedom."""
    findings = [finding for each in checked for finding in each.findings if finding.test == "pooled"]
    degrees = sorted(int(finding.degrees) for finding in findings if finding.degrees)
    cells = " or ".join({bool(each.spec.over): each.comparable_words for each in reversed(checked)}.values())
    known = f" ({degrees_of_freedom(degrees)})" if degrees else ""
    return f"the larger of their own and that of {cells}{known}"


def _named_tests(checked: Sequence[ClaimResult], *, is_paired: bool) -> str:
    """Return which tests decide the claims that set another one than `pooled`."""
    tests = {each.spec.test for each in checked}
    named: Mapping[str, str] = {**TESTS} if is_paired else {"wilcoxon": RANK_SUMS}
    names = ["interval of the comparison alone"] * ("t" in tests) + [
        named[each] for each in named if each in tests
    ]
    effect = f"has the Hodges–Lehmann estimate as its effect{', and its own interval' * is_paired}"
    more = f"; the {named['wilcoxon']} {effect}" if "wilcoxon" in tests else ""
    return f"Tested by the {' and '.join(names)} if a claim sets this test{more}."


def format_numbers(finding: ComparisonResult, verdict: Verdict) -> tuple[str, list[str], str]:
    """Format a comparison's effect or bound, its interval, and its p if it is decided.

    What is unknown is "", and an unknown interval is empty.
    """
    effect = finding.effect_text
    if effect and finding.bounds is None:
        effect = f"×{effect}" if finding.is_ratio else with_sign(effect)
    return (
        effect,
        [
            format_ratio(end, finding.decimals) if finding.is_ratio else finding.format(end)
            for end in finding.interval or ()
        ],
        format_p(finding.p) if finding.p is not None and verdict not in (*OPEN, Verdict.UNTRAINED) else "",
    )


def format_seeds(
    finding: ComparisonResult, seeds: int, needed: int | None, *, within: str = "within ±"
) -> str:
    """Format the number of seeds and what more would do: `n = 3`, `n = 2 of 3` or `n = 3, 11 would do`."""
    # with gaps of added seeds alone, n may be above the study's own number
    of = f" of {seeds}" if finding.gaps and finding.n < seeds else ""
    n = listed(dict.fromkeys(finding.groups)) if finding.groups else f"{finding.n}{of}"
    return f"n = {n}{seeds_hint(finding, needed, within=within)}"


def format_missing(findings: Sequence[ComparisonResult]) -> tuple[str, ...]:
    """Return notes on missing trials, one for each reason. Each note lists the affected cells."""
    cells_by_gap: dict[str, list[str]] = {}
    for gap in dict.fromkeys(each for finding in findings for each in (*finding.gaps, *finding.notes)):
        cells_by_gap.setdefault(gap.what, []).append(gap.where)
    return tuple(
        f"{'; '.join(cells)}: {what}" if len(cells) <= _MAX_CELLS_NAMED else f"{len(cells)} cells: {what}"
        for what, cells in cells_by_gap.items()
    )


def _has_stricter_level(checked: ClaimResult) -> bool:
    """Return whether Hochberg's correction for several undecided comparisons has widened intervals."""
    return checked.level > checked.level_of_look + 1e-9 and any(each.interval for each in checked.findings)


_MAX_LISTED: Final = 12
"""The number of a claim's comparisons above which only those that decide its parts are listed."""


def _rows(checked: ClaimResult) -> Iterator[_ClaimRow]:
    found = checked.findings
    # the verdict is on this statement, which a name may describe badly
    statement = " ".join(checked.spec.holds.split())
    notes = [statement] if statement != checked.spec.name else []
    notes += [checked.deciding.tested_for, checked.deciding_parts, *format_missing(found)]
    if _has_stricter_level(checked):
        notes.append(f"{len(found)} comparisons, intervals at {100 * checked.level:.4g} %")
    listed_here = found if len(found) <= _MAX_LISTED else [each for each in found if each.decides_part]
    if len(listed_here) < len(found):
        notes.append(f"listed: the {len(listed_here)} of {len(found)} comparisons that decide its parts")
    if checked.verdict is Verdict.UNDECIDED and checked.deciding.n == 1:
        notes.append(f"one {'run' if checked.deciding.groups else 'seed'} alone has no spread")

    def row(
        finding: ComparisonResult, text: str, verdict: Verdict, needed: int | None, word: str = ""
    ) -> _ClaimRow:
        indent = INDENT if word else 2 * INDENT
        effect, ends, p = format_numbers(finding, verdict)
        n = format_seeds(finding, checked.seeds, needed)
        return _ClaimRow(
            indent=indent,
            verdict=word or verdict_word(verdict, small=checked.small),
            text=text,
            effect=effect,
            interval=(ends[0], ends[1]) if ends else ("", ""),
            p_and_n=f"{p:<8}  {n}" if p else n,
            notes=tuple(filter(None, notes)) if indent == INDENT else (),
        )

    yield row(checked.deciding, checked.spec.name, checked.verdict, checked.needed, checked.verdict_text)
    if len(found) > 1 and any(each.effect is not None or each.bounds for each in found):
        for each in listed_here:
            yield row(each, each.label, each.verdict, each.needed)


def _unlearnt_sentences(study: Study, outcomes: pl.DataFrame) -> Iterator[str]:
    """Yield a sentence for each metric of a task that no model in the claims' cells has learnt."""
    groups: dict[tuple[str, str], list[Trial]] = {}
    for metric, compared in _trials_by_metric(study).items():
        for trial in compared:
            groups.setdefault((metric, trial.settings.task.model_dump_json()), []).append(trial)
    for (metric, _), trials in groups.items():
        settings = trials[0].settings
        ended = observe(study, trials, outcomes, metric).filter(status="done")["value"].to_list()
        if sentence := unlearnt_sentence(metric, settings, ended):
            # the settings that distinguish the task from others of the same name
            task, own = settings.task, settings.task.model_dump()
            others = [each[0].settings.task for (name, _), each in groups.items() if name == metric]
            same = [each.model_dump() for each in others if each.name == task.name]
            keys = [f"{key} = {own[key]}" for key in own if any(each[key] != own[key] for each in same)]
            words = f"{task.name} ({', '.join(keys)})" if keys else task.name
            yield f"{metric} on {words}: {sentence}."


def _trials_by_metric(study: Study) -> dict[str, list[Trial]]:
    """Return the trials whose values the claims of a study compare, by metric."""
    cells: dict[str, set[CellKey]] = {}
    for quantity in (quantity for claim in study.claims for quantity in claim.quantities):
        cells.setdefault(quantity.metric, set()).add(cell_key(quantity.cell))
    return {metric: [trial for trial in study.cells if trial.cell in own] for metric, own in cells.items()}


def measured_sentences(study: Study) -> tuple[str, ...]:
    """Return sentences that explain the metrics in claims, such as `loss: loss, nats a token`.

    Only targets, metrics whose meaning depends on the study's settings, and metrics that pick levels and so
    bias values have a sentence.
    """
    compared = _trials_by_metric(study)
    measured = {find_metric(name): [trial.settings for trial in each] for name, each in compared.items()}
    comparisons = [each for claim in study.claims for each in claim.comparisons]
    targeted = any(
        is_target(one.metric) for each in comparisons if not each.is_ratio for one in iter_quantities(each)
    )
    has_law = any(isinstance(one, Extrapolation) for each in comparisons for one in iter_numbers(each))
    biases = dict.fromkeys(claim.bias for claim in study.claims)
    return (
        *describe_metrics(measured),
        *([FIRST_SENTENCE] if targeted else []),
        *([_LAW] if has_law else []),
        *filter(None, biases),
    )


def explanations(
    study: Study, checked: Sequence[ClaimResult], outcomes: pl.DataFrame, store: Store
) -> list[str]:
    """Return the sentences below the claims of a study: on metrics, numbers, evidence and settings."""
    evidence = find_evidence(study, store)
    seen = [evidence.sentence] if evidence and evidence.trials else []
    changes = changes_after_results(study, store)
    return [
        *measured_sentences(study),
        *legend(checked),
        *seen,
        *changes,
        *settings_sentences(study, outcomes),
    ]


def changes_after_results(study: Study, store: Store) -> list[str]:
    """Return sentences on changes of `max_seeds` and of the file's seeds since there were results."""
    notes = (
        describe_max_seeds(study, store),
        "the record of the last run was damaged: changes of seeds and claims before it are unknown"
        if store.records.find_damaged(study.name)
        else "",
    )
    return [
        f"{each if each.startswith('max_seeds') else each[0].upper() + each[1:]}." for each in notes if each
    ]


def settings_sentences(study: Study, outcomes: pl.DataFrame) -> tuple[str, ...]:
    """Return sentences on overrides, outdated trials, and settings that are not from the paper."""
    parts = (
        *_unlearnt_sentences(study, outcomes),
        overrides_sentence(study.document.overrides),
        *stale_sentences(study, outcomes, [*_trials_by_metric(study)]),
        study.source_sheet.summary(study.name) if study.paper or study.fitted else "",
    )
    return tuple(sentence for sentence in parts if sentence)
