"""The sections of a study's page: those of the report, and the progress of the trials beside them.

A section is made from the current state of the study and the page's address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from urllib.parse import urlencode

from ...errors import ActivememError
from ...studies.planning.reused_trials import describe_stale
from ..claims.terminal import format_missing
from ..claims.verdicts import Verdict, count_verdicts
from ..page import section_results
from ..snapshot import Snapshot
from .study_now import BegunTrial, StudyNow
from .trials import (
    factor_names,
    learning_curves,
    level_words,
    metric_words,
    trial_levels,
    trial_list,
    trial_page,
)

MAX_BEGUN = 12
"""The maximum number of running trials, and of stopped ones, with a line in the progress."""

MAX_FAILURES = 50
"""The maximum number of failures on a page: those that ended last."""

FIGURES_REST_S = 60.0
"""The minimum seconds between two drawings of figures, since drawing takes seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The choices of a viewer that the address of a page contains: a metric, and the order of trials."""

    metric: str | None = None
    order: str | None = None

    def address(self, **changes: str | None) -> str:
        """Return the query string (`?…`) of this view with some of its fields changed."""
        given = {name: value for name, value in {**asdict(self), **changes}.items() if value}
        return f"?{urlencode(given)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of a page. Its `name` is also the name of its template and of its anchor in the page.

    A section without values is left out. It is made again when the value of `depends` changes, but at most
    every `min_age_s` seconds.
    """

    name: str
    title: str
    values: Callable[[StudyNow, Snapshot, View], Mapping[str, object] | None]
    depends: Callable[[StudyNow, View], object] = lambda now, _: now.rows
    min_age_s: float = 0.0


def _figures(_now: StudyNow, inputs: Snapshot, _view: View) -> Mapping[str, object] | None:
    found = section_results.figures(inputs)
    return found and {**found, "prefix": "figure-"}  # other sections have names of figures, such as progress


def _progress(now: StudyNow, inputs: Snapshot, _: View) -> Mapping[str, object]:
    return {
        "progress": now,
        "stale": describe_stale(stale) if (stale := inputs.status.stale) else "",
        "bar": bar(now),
        "factors": factor_names(now.study),
        "running": [_begun_line(now, each) for each in now.running[:MAX_BEGUN]],
        "stopped": [_begun_line(now, each) for each in now.stopped[:MAX_BEGUN]],
    }


def bar(now: StudyNow) -> list[tuple[str, float, float]]:
    """Return the parts of a progress bar of the length 100: CSS class, start and length of each."""
    counts, parts, at = now.counts, list[tuple[str, float, float]](), 0.0
    begun = 100 * now.share - 100 * now.num_ended / now.total if now.total else 0.0
    lengths = {name: 100 * counts[name] / now.total for name in ("done", "pruned", "failed") if counts[name]}
    for name, length in [*lengths.items(), ("begun", begun)]:
        parts += [(name, round(at, 2), round(length, 2))] if length > 0 else []
        at += length
    return parts


def _begun_line(now: StudyNow, begun: BegunTrial) -> Mapping[str, object]:
    trial = begun.trial
    return {
        "id": trial.id,
        "levels": level_words(now.study, trial_levels(trial)),
        "epoch": begun.epoch,
        "epochs": trial.settings.train.epochs,
        "metrics": metric_words(begun.metrics, now.study.metrics),
        "saved_at": begun.note.saved_at if begun.note else None,
    }


def _learning(now: StudyNow, _: Snapshot, view: View) -> Mapping[str, object] | None:
    found = learning_curves(now, view.metric)
    return found and {**found, "view": view, "anchor": "learning"}


def _failures(now: StudyNow, inputs: Snapshot, _: View) -> Mapping[str, object] | None:
    failed = inputs.own_outcomes.filter(status="failed").sort("finished", "trial", descending=True)
    found = section_results.failed_trials(inputs, failed.head(MAX_FAILURES))
    return found and {**found, "study": now.study.name, "more": max(0, len(failed) - MAX_FAILURES)}


SECTIONS: tuple[Section, ...] = (
    Section(name="claims", title="Claims", values=lambda _, inputs, view: section_results.claims(inputs)),
    Section(
        name="tables",
        title="Tables",
        values=lambda now, inputs, _: section_results.tables(inputs, [each.trial.id for each in now.begun]),
        depends=lambda now, _: now.key,
    ),
    Section(name="figures", title="Figures", values=_figures, min_age_s=FIGURES_REST_S),
    Section(name="progress", title="Progress", values=_progress, depends=lambda now, _: now.key),
    Section(
        name="learning",
        title="Learning curves",
        values=_learning,
        depends=lambda now, view: (now.key, view.metric),
    ),
    Section(name="failures", title="Failures", values=_failures),
    Section(
        name="trials",
        title="Trials",
        values=lambda now, _, view: {**trial_list(now, view.order), "view": view},
        depends=lambda now, view: (now.key, view),
    ),
)
"""The sections in page order, which is that of a report: the answer first."""


def trial_section(trial: str) -> Section:
    """Return the only section of a trial's page."""
    return Section(
        name="trial",
        title=f"Trial {trial}",
        values=lambda now, _, view: {**trial_page(now, trial, view.metric), "view": view},
        depends=lambda now, view: (now.key, view.metric),
    )


def headline(inputs: Snapshot) -> str:
    """Return the main result of a study as one sentence; "" before its first outcome.

    It is the verdict on the first claim, or else the best cell of the first table.
    """
    if not len(inputs.own_outcomes):
        return ""
    try:
        if checked := inputs.claims() if inputs.study.claims else ():
            first, counts = checked[0], count_verdicts(checked)
            open_parts = first.findings if first.verdict is Verdict.UNDECIDED else ()
            gaps = format_missing([replace(each, notes=()) for each in open_parts])
            return " ".join((str(first), *(f"{gap}." for gap in gaps), f"All claims: {counts}."))
        tables = inputs.tables(inputs.study.tables[:1], begun=())
    except ActivememError as error:  # one study's error must not hide the other studies
        return str(error).partition("\n")[0]
    for table in tables:
        for column, cells in zip(table.columns, zip(*table.cells, strict=True), strict=True):
            for row, cell in zip(table.rows, cells, strict=True):
                if cell.best:
                    name = column.rstrip(" ↑↓")
                    where = f"{table.corner} {row}".strip()
                    return f"Best {name} in the table {table.name}: {cell.text} ({where})."
    return ""
