"""The functions that make the kinds of tables and figures that a study file can name.

Each kind is one module, whose name is the value of `kind` in a study file. It has `table`, `curve` or both: a
function from the keys, a study and its outcomes to the result. The keys are in `studies/presentation/`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import polars as pl

from ...studies.presentation.kinds import CurveKind, ResultKeys, Role, TableKind
from ...studies.study import Study
from ..outcomes import (
    device_fault,
    match_sentence,
    overrides_sentence,
    stale_sentences,
    unused_seeds_sentence,
)
from ..tables.table import Table, TableError, TableExtras, TablePart

if TYPE_CHECKING:
    from ..curves.curve import Curve


def build_table(
    study: Study,
    spec: TableKind,
    outcomes: pl.DataFrame,
    *,
    published: bool = False,
    paper_only: bool = False,
    begun: Collection[str] = (),
    part: TablePart | None = None,
) -> Table:
    """Return the table that `spec` describes.

    `outcomes` are the latest attempts at the study's trials. `published` adds the paper's numbers,
    `paper_only` also the rows and columns that only the paper has. `begun` are the trials with a checkpoint.
    `part` is the place of the table in one over several studies.
    Raise TableError if the specification does not fit the study.
    """
    spec = spec.with_levels(study.design)
    if wrong := list(spec.faults(study.design, study.published)):
        faults = (f"table {spec.name}: {'.'.join(map(str, path))}: {message}" for path, message in wrong)
        raise TableError("\n".join(faults))
    if fault := device_fault(study, outcomes, spec.timed_metrics(), spec.shows):
        raise TableError(f"table {spec.name}: {fault}")
    extras = TableExtras(published=published, paper_only=paper_only, begun=begun, part=part)
    table: Table = _maker("table", spec)(study, outcomes, extras)
    remarks = [
        overrides_sentence(study.document.overrides),
        match_sentence(study),
        *stale_sentences(study, outcomes, [name for _, name in spec.named_metrics()]),
        unused_seeds_sentence(study, spec, outcomes),
        *table.remarks,
        *(study.runs.sentences if study.runs is not None else ()),
    ]
    return replace(table, remarks=tuple(filter(None, remarks)))


def build_curve(
    study: Study, spec: CurveKind, outcomes: pl.DataFrame, metrics: pl.DataFrame | None = None
) -> Curve:
    """Build the figure that `spec` describes from the results in the store.

    `outcomes` has the latest attempt at each trial. `metrics` are the metrics of these trials in the store,
    needed if `spec.needs_history`. Raises CurveError if the specification does not fit the study.
    """
    from ..curves.curve import CurveError  # noqa: PLC0415 -- a table needs no figures

    spec = spec.with_levels(study.design)
    if wrong := list(spec.faults(study.design, study.published)):
        faults = (f"curve {spec.name}: {'.'.join(map(str, path))}: {message}" for path, message in wrong)
        raise CurveError("\n".join(faults))
    if fault := device_fault(study, outcomes, spec.timed_metrics(), spec.shows):
        raise CurveError(f"curve {spec.name}: {fault}")
    curve: Curve = _maker("curve", spec)(study, outcomes, metrics)
    sentences = stale_sentences(study, outcomes, [name for _, name in spec.named_metrics()])
    judged = study.runs.sentences if study.runs is not None else ()
    return replace(curve, notes=(*curve.notes, *sentences, *judged))


def _maker(role: Role, spec: ResultKeys) -> Callable[..., Any]:
    """Return the function that makes a result: a plug-in's method, or the function of the kind's module."""
    return getattr(spec, role, None) or partial(getattr(import_module(f".{spec.kind}", __name__), role), spec)
