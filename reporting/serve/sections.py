"""The sections of a study's page.

A section is made from the current state of the study and the page's address.

The report's functions make the tables, claims and failures, so that a page and a report agree.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import polars as pl

from ...errors import ActivememError
from ...storage import Store
from ...studies.catalog.metrics import METRICS
from ...studies.planning.reused_trials import describe_stale
from ...studies.presentation.kinds import CurveKind
from ...studies.study import Study
from ..claims.terminal import format_missing
from ..claims.verdicts import Verdict, count_verdicts
from ..outcomes import complete_outcomes, named_metrics
from ..page import section_results
from ..page.report import make_environment
from ..snapshot import Snapshot
from ..tables.render import html
from .learning import (
    HEIGHT,
    MAX_METRICS,
    PAGE_SIZE,
    WIDTH,
    TrialLine,
    factor_names,
    learning_curves,
    level_words,
    metric_words,
    own_metrics,
    trains_for_epochs,
    trial_levels,
    trial_lines,
)
from .progress import ProgressNow, study_progress
from .search_points import paged, points_page, sort_lines
from .store_reader import BegunTrial, StudyNow
from .trial_page import trial_values

MAX_BEGUN = 12
"""The maximum number of running trials, and of stopped ones, with a line in the progress."""

MAX_FAILURES = 50
"""The largest number of failures on a page."""

FIGURES_REST_S = 60.0
"""The minimum seconds between two drawings of figures, since drawing takes seconds."""

DRAWING = threading.Lock()
"""Matplotlib draws one figure at a time."""

STATES = ("done", "failed", "pruned", "incomplete", "running", "begun", "waiting")
"""The states by which trials can be filtered."""

_FOLDER = Path(__file__).parent
TEMPLATES = make_environment(_FOLDER / "templates", _FOLDER.parent / "page" / "templates")
TEMPLATES.filters["address"] = lambda view, **changes: view.address(**changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The choices of a viewer that the address of a page contains.

    They are a metric, a state of trials, and the page and order of long lists: `sort` is the order of points,
    and `order` that of trials.
    """

    metric: str | None = None
    state: str | None = None
    page: int = 1
    failures: int = 1
    points: int = 1
    sort: str | None = None
    order: str | None = None

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> View:
        """Return the viewer's choices in the query of an address (`?…`).

        Unknown and invalid parameters are ignored.
        """
        pages = {
            name: int(text)
            for name in ("page", "failures", "points")
            if (text := query.get(name, "")).isascii() and text.isdigit() and 0 < len(text) < 7 and int(text)
        }
        state = query.get("state")
        state = state if state in STATES else None
        metric, sort, order = (query.get(name) for name in ("metric", "sort", "order"))
        return cls(metric=metric, state=state, sort=sort, order=order, **pages)

    def address(self, **changes: str | int | None) -> str:
        """Return the query string (`?…`) of this view with some of its fields changed."""
        asked = {**asdict(self), **changes}
        given = {name: value for name, value in asked.items() if value not in (None, 1)}
        return f"?{urlencode(given)}"


class StudyValues:
    """The values that several sections of a study's page use, at one moment.

    Each value is computed on first use.
    """

    def __init__(self, now: StudyNow, earlier: StudyValues | None = None) -> None:
        """Reuse the values of `earlier` if the outcomes have not changed. Loaded curves are always reused."""
        if earlier is not None and earlier.now.rows == now.rows:
            self.__dict__ |= earlier.__dict__  # cached properties are stored there
        self.now = now
        self._keeper = CourseKeeper(now.store) if earlier is None else earlier._keeper

    @cached_property
    def inputs(self) -> Snapshot:
        """Return a snapshot of the study, for the functions of the report."""
        study, store = self.now.study, self.now.store
        outcomes = pl.concat([self.now.outcomes, self.now.others])
        # rows are read without the metrics of probes unless these are named
        if self.now.probed and (named := named_metrics(study)):
            keys = ["trial", "attempt"]
            outcomes = store.trials(named).join(outcomes.select(keys), on=keys, how="semi")
        complete = complete_outcomes(outcomes, self._course, study.with_later_seeds())
        return Snapshot(study=study, store=store, outcomes=complete)

    @cached_property
    def courses(self) -> pl.DataFrame:
        """Return the metric histories of ended trials, including trials of added seeds.

        Indexed metrics such as `attention[3]` are left out.
        """
        return self._keeper.read(pl.concat([self.now.outcomes, self.now.others]))

    def _course(self, metric: str, attempts: pl.DataFrame) -> pl.DataFrame:
        course = self.courses.filter(pl.col("name") == metric)
        return course.join(attempts.select("trial"), on="trial", how="semi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of a study's page.

    Its `name` is also the name of its template and of its anchor in the page. `applies` says whether a study
    has the section. The section is rendered again when the value of `depends` changes, but at most every
    `min_age_s` seconds. It shows `empty` while it has no values.
    """

    name: str
    title: str
    values: Callable[[StudyValues, View], Mapping[str, object] | None]
    depends: Callable[[StudyNow, View], object]
    applies: Callable[[StudyNow], bool] = lambda _: True
    empty: str = "Nothing yet."
    min_age_s: float = 0.0


def _progress(values: StudyValues, _: View) -> Mapping[str, object]:
    now = values.now
    found = study_progress(now)
    return {
        "progress": found,
        "stale": describe_stale(stale) if (stale := values.inputs.status.stale) else "",
        "bar": bar(found),
        "factors": factor_names(now.study),
        "running": [begun_line(now, each) for each in found.running[:MAX_BEGUN]],
        "stopped": [begun_line(now, each) for each in found.stopped[:MAX_BEGUN]],
    }


def bar(found: ProgressNow) -> list[tuple[str, float, float]]:
    """Return the coloured parts of a progress bar: CSS class, start and length of each.

    The whole bar has the length 100.
    """
    counts, parts, at = found.counts, list[tuple[str, float, float]](), 0.0
    begun = 100 * found.share - 100 * (found.total - found.left) / found.total if found.total else 0.0
    lengths = {
        name: 100 * counts[name] / found.total for name in ("done", "pruned", "failed") if counts[name]
    }
    for name, length in [*lengths.items(), ("begun", begun)]:
        parts += [(name, round(at, 2), round(length, 2))] if length > 0 else []
        at += length
    return parts


def begun_line(now: StudyNow, begun: BegunTrial) -> Mapping[str, object]:
    """Return the table row of an unfinished trial: its levels, its progress, and its metrics."""
    trial = begun.trial
    return {
        "id": trial.id,
        "levels": level_words(now.study, trial_levels(trial), factor_names(now.study)),
        "epoch": begun.epoch,
        "epochs": trial.settings.train.epochs,
        "metrics": metric_words(begun.metrics, own_metrics(now.study)),
        "saved_at": begun.note.saved_at if begun.note else None,
    }


def _learning(values: StudyValues, view: View) -> Mapping[str, object] | None:
    curves = learning_curves(values.now, values.courses, view.metric)
    return None if curves is None else {"curves": curves, "width": WIDTH, "height": HEIGHT, "view": view}


def _tables(values: StudyValues, _: View) -> Mapping[str, object] | None:
    begun = [each.trial.id for each in values.now.begun]
    return {"tables": [html.render(each) for each in values.inputs.tables(begun=begun)]}


def _figures(values: StudyValues, specs: Sequence[CurveKind]) -> Mapping[str, object] | None:
    now = values.now
    if not len(now.outcomes):
        return None
    with DRAWING:
        drawn = [(curve, curve.render_inline()) for curve in values.inputs.curves(specs)]
    return {"study": now.study.name, "figures": drawn, "key": now.rows}


def _history_figures(study: Study) -> list[CurveKind]:
    return [spec for spec in section_results.shown_curves(study) if spec.kind == "incumbent"]


def _other_figures(study: Study) -> list[CurveKind]:
    return [spec for spec in study.curves if spec.kind != "incumbent"]


def _points(values: StudyValues, view: View) -> Mapping[str, object] | None:
    search = values.now.study.search
    assert search is not None, "the section is only for searches"
    found = points_page(values.now, search, values.inputs.points, order=view.sort, page=view.points)
    return None if found is None else {**found, "view": view}


def _failures(values: StudyValues, view: View) -> Mapping[str, object] | None:
    inputs = values.inputs
    failed = inputs.own_outcomes.filter(status="failed").sort("finished", "trial", descending=True)
    pages = paged(len(failed), MAX_FAILURES, view.failures)
    found = section_results.failed_trials(inputs, failed[pages.places])
    return found and {**found, "study": values.now.study.name, "view": view, **pages.numbers}


def _trials(values: StudyValues, view: View) -> Mapping[str, object] | None:
    now = values.now
    lines = trial_lines(now)
    counts = Counter(each.state for each in lines)
    chosen = [each for each in lines if view.state in (None, each.state)]
    chosen, links = sort_trials(chosen, factor_names(now.study), view.order)
    pages = paged(len(chosen), PAGE_SIZE, view.page)
    shown = chosen[pages.places]
    measured = list[str]()
    for each in shown:
        measured += [name for name, _ in each.metrics if name not in measured]
    return {
        "factors": factor_names(now.study),
        "metrics": measured[:MAX_METRICS],
        "lines": shown,
        "counts": {name: counts[name] for name in STATES if counts[name]},
        "total": len(lines),
        "study": now.study.name,
        "view": view,
        **links,
        **pages.numbers,
    }


def sort_trials(
    lines: Sequence[TrialLine], factors: Sequence[str], order: str | None
) -> tuple[list[TrialLine], Mapping[str, object]]:
    """Sort the lines of trials by a column (default: the study's order), as `sort_lines` does."""
    places = {line.id: place for place, line in enumerate(lines)}
    measured = {name: None for line in lines for name in line.measured}
    keys: dict[str, Callable[[TrialLine], Any]] = {
        **{name: partial(_level_key, at=at) for at, name in enumerate(factors)},
        **{name: partial(_metric_key, name=name) for name in measured},
        "trial": lambda line: places[line.id],
        "state": lambda line: line.state,
        "epochs": lambda line: line.row and line.row["epochs"],
        "time": lambda line: line.row and line.row["seconds"],
        "ended": lambda line: line.row and line.row["finished"],
    }
    best_first = {name for name in measured if name in METRICS and METRICS[name].higher_is_better}
    return sort_lines(lines, keys, best_first, order or "trial", default="trial")


def _metric_key(line: TrialLine, name: str) -> float | None:
    value = line.measured.get(name, math.nan)
    return None if math.isnan(value) else value


def _level_key(line: TrialLine, at: int) -> tuple[bool, float, str] | None:
    """Return the sort key of a trial's level: numbers by their value and before words."""
    text = line.levels[at]
    try:
        return (False, float(text), "")
    except ValueError:
        return (True, 0.0, text) if text else None


def headline(values: StudyValues) -> str:
    """Return the main result of a study as one sentence; "" before its first outcome.

    It is the verdict on the first claim, or else the best cell of the first table.
    """
    inputs = values.inputs
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


def trial_section(trial: str) -> Section:
    """Return the only section of a trial's page."""

    def shown(values: StudyValues, view: View) -> Mapping[str, object]:
        found = trial_values(values.now, trial, values.courses, view.metric)
        return {**found, "width": WIDTH, "height": HEIGHT, "view": view}

    return Section(name="trial", title=f"Trial {trial}", values=shown, depends=lambda now, _: now.key)


def _rows(now: StudyNow, _: View) -> object:
    return now.rows


SECTIONS: tuple[Section, ...] = (
    Section(
        name="claims",
        title="Claims",
        values=lambda values, _: section_results.claims(values.inputs),
        depends=_rows,
        applies=lambda now: bool(now.study.claims),
    ),
    Section(
        name="best",
        title="Best points",
        values=lambda values, _: section_results.best(values.inputs),
        depends=_rows,
        applies=lambda now: now.study.search is not None and not section_results.has_points_table(now.study),
    ),
    Section(
        name="history",
        title="History",
        values=lambda values, _: _figures(values, _history_figures(values.now.study)),
        depends=_rows,
        applies=lambda now: now.study.search is not None,
        min_age_s=FIGURES_REST_S,
    ),
    Section(
        name="tables",
        title="Tables",
        values=_tables,
        depends=lambda now, _: (now.rows, [each.trial.id for each in now.begun]),
        applies=lambda now: bool(now.study.tables),
    ),
    Section(
        name="figures",
        title="Figures",
        values=lambda values, _: _figures(values, _other_figures(values.now.study)),
        depends=_rows,
        applies=lambda now: bool(_other_figures(now.study)),
        min_age_s=FIGURES_REST_S,
    ),
    Section(name="progress", title="Progress", values=_progress, depends=lambda now, _: now.key),
    Section(
        name="learning",
        title="Learning curves",
        values=_learning,
        depends=lambda now, view: (now.key, view),
        applies=lambda now: trains_for_epochs(now.study),
        empty="No curves yet: they begin after the first epoch.",
    ),
    Section(
        name="failures",
        title="Failures",
        values=_failures,
        depends=lambda now, view: (now.rows, view),
        empty="None.",
    ),
    Section(
        name="points",
        title="Points",
        values=_points,
        depends=lambda now, view: (now.key, view),
        applies=lambda now: now.study.search is not None,
    ),
    Section(name="trials", title="Trials", values=_trials, depends=lambda now, view: (now.key, view)),
)
"""The sections in page order, which is that of a report: the answer first."""


def render_section(section: Section, values: StudyValues, view: View) -> str:
    """Return the HTML of a section, without its heading."""
    found = section.values(values, view)
    if found is None:
        return TEMPLATES.get_template("empty.html").render(words=section.empty)
    return TEMPLATES.get_template(f"{section.name}.html").render(found)


_COLUMNS = ("trial", "attempt", "step", "epoch", "name", "value")
_ATTEMPT = ["trial", "attempt"]


class CourseKeeper:
    """A cache of the metric histories of a study's trials.

    Indexed metrics such as `attention[3]` are left out.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: pl.DataFrame | None = None
        self._courses: pl.DataFrame | None = None

    def read(self, outcomes: pl.DataFrame) -> pl.DataFrame:
        """Return the metric histories of the attempts in `outcomes`.

        Only new attempts are read from the store.
        """
        ended = outcomes.select(*_ATTEMPT, "study")
        new = ended if self._known is None else ended.join(self._known, on=_ATTEMPT, how="anti")
        if self._courses is None or len(new):
            found = self._store.metric_course(None, new).select(_COLUMNS)
            found = found.filter(~pl.col("name").str.contains("[", literal=True))
            self._courses = found if self._courses is None else pl.concat([self._courses, found])
        if self._known is not None and len(self._known.join(ended, on=_ATTEMPT, how="anti")):
            self._courses = self._courses.join(ended, on=_ATTEMPT, how="semi")
        self._known = ended
        return self._courses
