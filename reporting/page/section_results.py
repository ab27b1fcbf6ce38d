"""The sections of a report with results, such as tables and figures.

A page may be built at any time. All failures are listed, since a table only marks how many of a cell's seeds
are missing. Machine names are left out, since a page is for others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any

import polars as pl

from ...studies.presentation.kinds import CurveKind, ResultKeys, TableKind
from ...studies.presentation.point_keys import PointsFigure, PointsTable
from ...studies.study import Study
from ..claims.terminal import explanations, format_missing, format_numbers, format_seeds
from ..claims.verdicts import ClaimResult, ComparisonResult, Verdict, count_verdicts, verdict_word
from ..outcomes import short_commit, torch_words
from ..snapshot import Snapshot
from ..subject import study_levels
from ..tables.render import html


def status(inputs: Snapshot) -> Mapping[str, object]:
    """Return the progress of the study for its page: numbers of trials, and the total training time."""
    trainings = inputs.trainings
    return {
        "summary": inputs.status.summary(),
        "seconds": fsum(trainings["seconds"]) if len(trainings) else None,
    }


def failures(inputs: Snapshot) -> Mapping[str, object] | None:
    """Return the failed trials with their levels, and how often each reason occurred; None without one."""
    failed = inputs.own_outcomes.filter(status="failed").select("trial", "epochs", "reason")
    if not len(failed):
        return None
    levels = study_levels(inputs.study, inputs.outcomes)
    found = levels.join(failed, on="trial", maintain_order="left")
    return {
        "reasons": inputs.status.failure_reasons,
        "factors": levels.columns[1:],
        "trials": [
            (trial, each, epochs, (reason or "no reason stored").strip().partition("\n"))
            for trial, *each, epochs, reason in found.iter_rows()
        ],
    }


_KINDS = ("version", "commit", "torch_version", "cuda_version", "python_version", "device")


def provenance(inputs: Snapshot) -> Mapping[str, object] | None:
    """Return how many trials each program version trained on each device.

    Those of added seeds count, too, and earlier trials that a trial continues. Trials that other studies
    trained are counted by study.
    """
    outcomes = inputs.trainings
    if not len(outcomes):
        return None
    groups = outcomes.group_by(_KINDS).agg(
        pl.len().alias("trials"),
        pl.col("seconds").sort().sum(),
        pl.col("started").min().alias("first"),
        pl.col("finished").max().alias("last"),
    )
    others = outcomes.filter(pl.col("study") != inputs.study.name)
    return {
        "groups": [
            _with_short_versions(group)
            for group in groups.sort("first", "last", *_KINDS).iter_rows(named=True)
        ],
        "others": others.group_by("study").len().sort("study").iter_rows(),
    }


def _with_short_versions(group: Mapping[str, Any]) -> dict[str, Any]:
    commit, torch_version = group["commit"], group["torch_version"]
    return {
        **group,
        "commit": short_commit(commit) if commit else "",
        "torch": torch_words(torch_version, group["cuda_version"]) if torch_version else "",
        "python": group["python_version"] or "",
    }


def tables(inputs: Snapshot) -> Mapping[str, object] | None:
    """Return every table of the page as HTML; None if there are none."""
    specs = _shown_tables(inputs.study)
    return {"tables": [html.render(each) for each in inputs.tables(specs)]} if specs else None


def _shown_tables(study: Study) -> tuple[TableKind, ...]:
    """Return the tables of the study file. A search without a table of its best points gets one first."""
    if study.search is None or any(spec.kind == "points" for spec in study.tables):
        return study.tables
    name = _free_name("best", study.tables)
    return (PointsTable(kind="points", name=name, show="recipe"), *study.tables)


def _free_name(name: str, specs: Sequence[ResultKeys]) -> str:
    taken = {spec.name for spec in specs}
    others = (f"{name}{number}" for number in range(2, len(taken) + 3))
    return next(each for each in (name, *others) if each not in taken)


def _shown_curves(study: Study) -> tuple[CurveKind, ...]:
    """Return the figures of the study file. A search without a figure of its history gets one first."""
    if study.search is None or any(getattr(spec, "shows_history", False) for spec in study.curves):
        return study.curves
    return (PointsFigure(kind="points", name=_free_name("history", study.curves)), *study.curves)


def figures(inputs: Snapshot) -> Mapping[str, object] | None:
    """Return every figure of the page, also as markup; None if there is no data to draw."""
    specs = _shown_curves(inputs.study)
    if not specs or not len(inputs.own_outcomes):
        return None
    return {"figures": [(each, each.render_inline()) for each in inputs.curves(specs)]}


def claims(inputs: Snapshot) -> Mapping[str, object] | None:
    """Return each claim with its verdict, numbers and comparisons, and an explanation of the numbers."""
    study = inputs.study
    if not study.claims or not len(inputs.own_outcomes):
        return None
    checked = inputs.claims()
    return {
        "counts": count_verdicts(checked, " · "),
        "legend": " ".join(explanations(study, checked, inputs.outcomes, inputs.store)),
        "claims": [
            {
                "spec": each.spec,
                "verdict": each.verdict_text,
                "tested_for": each.deciding.tested_for,
                "numbers": _numbers(each.deciding, each.seeds, each.needed, each.verdict),
                "notes": (_numbers_of(each), each.deciding_parts, *format_missing(each.findings)),
                "comparisons": [
                    (
                        verdict_word(one.verdict, small=each.small),
                        one.text,
                        _numbers(one, each.seeds, one.needed, one.verdict),
                    )
                    for one in each.findings
                ],
            }
            for each in checked
        ],
    }


def _numbers_of(checked: ClaimResult) -> str:
    """Return which of a claim's comparisons has the claim's numbers; "" if it is known or has none."""
    deciding, parts = checked.deciding, checked.deciding_parts
    is_known = len(checked.findings) == 1 or parts.endswith(f": {deciding.label}")
    return "" if is_known or not deciding.effect_text else f"the numbers are of {deciding.label}"


def _numbers(
    finding: ComparisonResult, seeds: int, needed: int | None, verdict: Verdict
) -> tuple[str, str, str, str]:
    effect, ends, p = format_numbers(finding, verdict)
    return effect, f"[{', '.join(ends)}]" if ends else "", p, format_seeds(finding, seeds, needed)
