"""The results section: tables and figures beside the published numbers, and claims.

All are made by what makes them on the command line, so that a page and a paper never differ. Figures are
pictures with their own style; their caption and notes are also the words for those who do not see them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...studies.presentation.kinds import CurveKind
from ...studies.study import Study
from ..claims.check import check_claims, needs_metrics
from ..claims.terminal import (
    format_missing,
    format_numbers,
    format_seeds,
    legend,
    measured_sentences,
    settings_sentences,
)
from ..claims.verdicts import ClaimResult, ComparisonResult, Verdict, count_verdicts
from ..curves.curve import build_curve
from ..tables.render import html
from ..tables.table import build_table
from .inputs import PageInputs


def tables(inputs: PageInputs) -> Mapping[str, object] | None:
    """Return every table that the study asks for."""
    study = inputs.study
    if not study.tables:
        return None
    begun = inputs.status.started
    made = [build_table(study, spec, inputs.outcomes, published=True, begun=begun) for spec in study.tables]
    return {"tables": [html.render(each) for each in made]}


def shown_curves(study: Study) -> tuple[CurveKind, ...]:
    """Return the figures of the study file; of a search its history comes first, unless the file has one."""
    if study.search is None or any(spec.kind == "incumbent" for spec in study.curves):
        return study.curves
    taken = {spec.name for spec in study.curves}
    name = next(
        name for name in map("history{}".format, ["", *range(2, len(taken) + 3)]) if name not in taken
    )
    from ..kinds.incumbent import IncumbentFigure  # noqa: PLC0415 -- grids do without it

    return (IncumbentFigure(kind="incumbent", name=name), *study.curves)


def figures(inputs: PageInputs) -> Mapping[str, object] | None:
    """Return every figure of the page, once there is something to draw."""
    study = inputs.study
    curves = shown_curves(study)
    if not curves or not len(inputs.own_outcomes):
        return None
    from ..curves.draw.figure import draw  # noqa: PLC0415  loads matplotlib

    needed = any(spec.needs_history for spec in curves)
    metrics = inputs.store.metrics([trial.id for trial in study.trials]) if needed else None
    made = [build_curve(study, spec, inputs.outcomes, metrics) for spec in curves]
    return {"figures": [(each, draw(each, "svg").decode()) for each in made]}


def claims(inputs: PageInputs) -> Mapping[str, object] | None:
    """Return the verdicts, what the numbers mean, and every comparison on demand."""
    study = inputs.study
    if not study.claims or not len(inputs.own_outcomes):
        return None
    judged = study.with_later_seeds()
    ids = [trial.id for trial in judged.trials]
    metrics = inputs.store.metrics(ids) if needs_metrics(study) else None
    checked = check_claims(judged, inputs.outcomes, metrics)
    return {
        "counts": count_verdicts(checked, " · "),
        "legend": " ".join(
            (*measured_sentences(study), *legend(checked), *settings_sentences(study, inputs.outcomes))
        ),
        "claims": [
            {
                "spec": each.spec,
                "verdict": each.verdict_text,
                "numbers": _numbers(each, each.deciding, each.needed, each.verdict),
                "missing": format_missing(each.findings),
                "comparisons": [
                    (one.verdict, one.text, _numbers(each, one, one.needed, one.verdict))
                    for one in each.findings
                ],
            }
            for each in checked
        ],
    }


def _numbers(
    checked: ClaimResult, finding: ComparisonResult, needed: int | None, verdict: Verdict
) -> tuple[str, str, str, str]:
    effect, ends, p = format_numbers(finding, verdict)
    interval = f"[{', '.join(ends)}]" if ends else ""
    seeds = format_seeds(finding, checked.seeds, needed)
    return effect, interval, p.removeprefix("p ").removeprefix("= "), seeds
