"""A study whose cells are runs that another program has trained. It trains nothing, and has no store."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from ..catalog.metrics import METRICS
from ..catalog.published import PublishedNumbers
from ..catalog.tasks import TaskSettings
from ..claims.comparisons import weighted_cells
from ..own_data.published_files import read_published
from ..presentation.changes import CHANGES
from ..presentation.figure_keys import INDEX_AXES
from ..presentation.kinds import ResultKeys
from ..resolve.template import Template
from ..resolve.trial import Trial
from ..schema.factors import SEED
from ..schema.settings import (
    ModelSettings,
    Names,
    StudySettings,
    TrainSettings,
    TrialSettings,
    find_design,
)
from ..sections import Sections
from ..study import Study, load_plugins
from ..text.document import Diagnostics, Document, parse_document
from ..text.errors import StudyError
from ..text.strict_model import StrictModel
from .files import RunsError, read_runs
from .keys import RunsSettings
from .runs import Runs, find_runs

_TABLES = ("study", "runs", "table", "curve", "claim")
_KINDS = ("cells", "bar", "heat", "line", "pareto", "box")
_OF_RUNS = ("box", "heat", "line", "pareto")
"""The kinds of figures that look at single runs, of which a summary has none."""


class JudgedHeader(StrictModel):
    """`[study]` of a file with [runs]: the name of its results, their question, and others' numbers below."""

    name: str | None = None
    title: str | None = None
    plugins: Names = ()
    published: Names = ()


class _NoTask(TaskSettings):
    """The task of runs that were not trained here, of which nothing is known."""

    interface: ClassVar[None] = None  # pyright: ignore -- nothing is built for it
    epoch_scores: ClassVar[None] = None  # pyright: ignore -- nor measured


DefaultTables = Callable[[Runs], Mapping[str, str]]
"""Makes the texts of the tables and figures of runs whose file has none, by their role."""

_MODEL = ModelSettings.model_construct(recipe="")
_TASK = _NoTask.model_construct(name="")
_TRAIN = TrainSettings.model_construct(curriculum=None)


def load_runs(
    document: Document, frame: pl.DataFrame | None = None, default: DefaultTables | None = None
) -> Study:
    """Return the study of a file with [runs]; `frame` has the runs if there is no file of them.

    `default` makes the tables and figures of a file without any, `default_tables` if it is left out. Raise
    StudyError for faults of the file, and RunsError for runs that cannot be judged.
    """
    diagnostics = Diagnostics(document)
    for name in document.data:
        if name not in _TABLES:
            message = f"a file with [runs] trains nothing: expected {', '.join(_TABLES)}, got '{name}'"
            diagnostics.report((name,), message, key=True)
    header = diagnostics.validate(JudgedHeader, ("study",), diagnostics.table("study"))
    settings = diagnostics.validate(RunsSettings, ("runs",), diagnostics.table("runs"))
    if diagnostics.faults or header is None or settings is None:
        raise StudyError(document.source, diagnostics.faults)
    folder = document.path.parent if document.path else Path()
    load_plugins(diagnostics, folder)
    published = read_published(diagnostics, folder) if header.published else PublishedNumbers()
    if diagnostics.faults:
        raise StudyError(document.source, diagnostics.faults)
    runs = find_runs(settings, read_runs(settings, folder, frame))
    with judged_metrics(runs):
        return _study(diagnostics, header, runs, published, (default or default_tables)(runs))


@contextmanager
def judged_metrics(runs: Runs) -> Iterator[None]:
    """Within this context, names of metrics mean those of these runs, and may be those of shipped ones."""
    with ExitStack() as stack:
        columns = {column: runs.metrics[name] for column, name in runs.aliases.items()}
        for name, metric in (*runs.metrics.items(), *columns.items()):
            stack.enter_context(METRICS.replaced(name, metric))
        yield


def _study(
    diagnostics: Diagnostics,
    header: JudgedHeader,
    runs: Runs,
    published: PublishedNumbers,
    default: Mapping[str, str],
) -> Study:
    name = (
        header.name
        or re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(runs.settings.file[0]).stem).strip("-.")
        or "runs"
    )
    seeds = tuple(sorted({run.seed for run in runs.runs}))
    grid = find_design("grid")
    design = grid(
        settings=StudySettings.model_fields["design"].default,
        combined_factors={SEED: seeds},
        listed_cells=dict(enumerate(runs.cells)),
        baseline={},
    )
    document = diagnostics.document
    if missing := [text for role, text in default.items() if role not in document.data]:
        completed = parse_document(document.source, "\n".join([document.text, *missing]))
        document = replace(completed, path=document.path)
    template = Template(tables={})
    sections = Sections(
        diagnostics=Diagnostics(document),
        design=design,
        published=published,
        template=template,
        data={},
        as_written={},
    )
    found = Diagnostics(document, faults=sections.faults())
    for role in ("table", "curve") if not found.faults else ():
        for index, spec in enumerate(sections.read(role)):
            if fault := _kind_fault(spec, runs):
                found.report((role, index), fault)
    for index, claim in enumerate(sections.read("claim") if not found.faults else ()):
        if fault := _claim_fault(claim, runs):
            found.report(("claim", index, "holds"), fault)
    if found.faults:
        raise StudyError(document.source, found.faults)
    trials = list[Trial]()
    for number, levels in enumerate(runs.cells):
        cell, seeds_of_cell = json.dumps(levels), [run.seed for run in runs.runs if run.cell == number]
        ids = (
            (seed, sha256(f"{runs.digest} {cell} {seed}".encode()).hexdigest()[:16]) for seed in seeds_of_cell
        )
        # nothing is known of the settings; each cell has its own object of them
        settings = TrialSettings.model_construct(model=_MODEL, task=_TASK, train=_TRAIN, seed=0, code={})
        trials += Trial.of_ids(name, levels, settings, ids)
    return Study(
        header=StudySettings(
            name=name if name[0].isalpha() else f"runs-{name}", title=header.title or f"{runs.origin}"
        ),
        document=document,
        template=template,
        design=design,
        expansions={},
        sections=sections,
        decode=None,
        own_corpus=None,
        cells=tuple(trials),
        pairs_seeds=runs.pairs_seeds,
        published=published,
        runs=runs,
    )


def _kind_fault(spec: ResultKeys, runs: Runs) -> str:
    """Return why a table or figure cannot show these runs, or ""."""
    kind, x = getattr(spec, "kind", ""), getattr(spec, "x", "")
    is_course = getattr(spec, "is_course", False)
    is_mean = getattr(spec, "over", ()) and getattr(spec, "pick_by", None) is None
    needs = f"kind '{kind}' needs models that were trained here: expected {', '.join(_KINDS)}"
    faults = (
        (kind not in _KINDS, needs),
        (runs.is_summary and kind in _OF_RUNS, f"kind '{kind}' shows single runs, and a summary has none"),
        (
            is_course and runs.history is None,
            "these runs have final values, and no curves: expected a factor as x, not a time",
        ),
        (is_course and x != runs.axis, f'the curves of these runs are over x = "{runs.axis}", not "{x}"'),
        (
            any(each in INDEX_AXES for each in getattr(spec, "roles", {}).values()),
            "runs have no metrics with an index: expected a factor on each axis",
        ),
        (
            getattr(spec, "rows", None) == CHANGES,
            'rows = "changes" needs the baseline of a study that trains',
        ),
        (
            is_mean and not runs.pairs_seeds,
            'a mean over levels is one of each seed: it needs pair = "seed"',
        ),
    )
    return next((text for is_so, text in faults if is_so), "")


def _claim_fault(claim: Any, runs: Runs) -> str:  # noqa: ANN401 -- a claim
    if runs.pairs_seeds:
        return ""
    if claim.spec.test == "permutation" or (claim.spec.test == "wilcoxon" and runs.is_summary):
        hint = "and a summary has none" if runs.is_summary else "in pairs: wilcoxon needs none"
        return f'test = "{claim.spec.test}" looks at single runs, {hint}'
    if any(weighted_cells(each) is None for each in claim.comparisons if not claim.spec.over):
        return 'a quotient, or an extreme within a sum, is computed for each seed: it needs pair = "seed"'
    return ""


def default_tables(
    runs: Runs, *, baseline: str | None = None, over: Sequence[str] = (), pick_by: str | None = None
) -> dict[str, str]:
    """Return the table and the figures of runs without any, as texts by their role.

    The first factor that is not in `over` makes rows, the second columns. `baseline` is a row, and `over` has
    factors of whose levels `pick_by` picks the best.
    """
    names = [name for name in runs.cells[0] if name not in over]
    if len(names) > 2 or not names:
        raise RunsError(f"say which of {', '.join(runs.cells[0])} are rows and columns, in a [[table]]")
    more = choice_text(over, pick_by)
    columns = f"columns = {json.dumps(names[1])}\n" if len(names) > 1 else ""
    metrics = list(runs.metrics)
    table = (
        f'[[table]]\nname = "runs"\nrows = {json.dumps(names[0])}\n{columns}value = {json.dumps(metrics)}\n'
    )
    table += more + ("" if baseline is None else f"baseline = {json.dumps(baseline)}\n")
    panels = f"panels = {json.dumps(names[1])}\n" if len(names) > 1 else ""
    figures = [
        f'[[curve]]\nname = "{metric}"\nkind = "bar"\nx = {json.dumps(names[0])}\n'
        f'{panels}value = "{metric}"\n{more}'
        for metric in metrics
    ]
    if runs.history is not None:
        figures += [
            f'[[curve]]\nname = "{metric}-{runs.axis}s"\nkind = "line"\nx = "{runs.axis}"\n'
            f'series = {json.dumps(names[0])}\n{panels}value = "{metric}"\n{more}'
            for metric in metrics
        ]
    return {"table": table, "curve": "\n".join(figures)}


def choice_text(over: Sequence[str], pick_by: str | None) -> str:
    """Return the keys `over` and `pick_by` of a table, a figure or a claim as text, "" without them."""
    text = f"over = {json.dumps(list(over))}\n" if over else ""
    return text if pick_by is None else f"{text}pick_by = {json.dumps(pick_by)}\n"


def runs_text(settings: RunsSettings, more: str = "", name: str = "") -> str:
    """Return the text of a study file with these keys of [runs], and further tables."""
    title = f"Runs of {Path(settings.file[0]).name}"
    lines = ["[study]", f"name = {json.dumps(name)}", f"title = {json.dumps(title)}", ""] if name else []
    lines.append("[runs]")
    kept = settings.model_dump(exclude_defaults=True, exclude={"metrics"})
    for key, value in {**kept, "pair": settings.pair, "failed": settings.failed}.items():
        only = value[0] if isinstance(value, tuple) and len(value) == 1 else value
        lines.append(f"{key} = {json.dumps(only, ensure_ascii=False)}")
    for metric, each in settings.metrics.items():
        lines.append(f"\n[runs.metrics.{json.dumps(metric) if not metric.isidentifier() else metric}]")
        for key, value in each.model_dump(exclude_none=True).items():
            lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
    return "\n".join([*lines, "", more]) if more else "\n".join([*lines, ""])
