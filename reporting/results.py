"""A study and what a store holds of it, for notebooks and scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TypeVar

import polars as pl

from ..storage import Store
from ..studies.lookup import load_last_run
from ..studies.planning.status import StudyStatus, study_status
from ..studies.schema.level_names import one_line
from ..studies.study import Study
from ..studies.text.errors import nearest_hint
from .claims.check import check_claims, needs_metrics
from .claims.verdicts import ClaimResult
from .curves.build import build_curve
from .curves.curve import CurveError
from .display import CurveDisplay, TableDisplay
from .frames import metrics_frame, study_levels, trials_frame
from .probe_metrics import displayed_metrics
from .tables.build import build_table
from .tables.table import TableError

Spec = TypeVar("Spec")

_CLAIM_SCHEMA = {
    "claim": pl.String,
    "verdict": pl.String,
    "effect": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "n": pl.Int64,
    "needed": pl.Int64,
}


@dataclass(frozen=True, slots=True)
class StudyResults:
    """A study and its store, which is read anew for each question, so that a running study can be watched."""

    study: Study
    store: Store

    @property
    def trials(self) -> pl.DataFrame:
        """How each trial ended and what it measured, a row for each cell with each seed that has an outcome.

        The factors are columns; one whose name a column of the store has is called `factor_NAME`.
        """
        outcomes = self.store.trials()
        return trials_frame(outcomes, study_levels(self.study, outcomes))

    @property
    def metrics(self) -> pl.DataFrame:
        """The course of every metric in long form, the factors as columns."""
        levels = study_levels(self.study, self.store.trials())
        return metrics_frame(self.store.metrics(levels["trial"].to_list()).lazy(), levels).collect()

    @property
    def status(self) -> StudyStatus:
        """How far the study is."""
        return study_status(self.study, self.store)

    def table(self, name: str | None = None, *, published: bool = True) -> TableDisplay:
        """A table of the study file, by default its first, the published numbers beside.

        Raises TableError where the file has none of that name.
        """
        specs = {spec.name: spec for spec in self.study.tables}
        if (spec := _select_spec(name, specs)) is None:
            raise TableError(
                f"study {self.study.name} has no table '{name or ''}'{nearest_hint(name or '', specs)}"
            )
        outcomes = self._load_outcomes()
        begun = study_status(self.study, self.store, outcomes).started
        return TableDisplay(build_table(self.study, spec, outcomes, published=published, begun=begun))

    def curve(self, name: str | None = None) -> CurveDisplay:
        """A figure of the study file, by default its first; CurveError where it has none such."""
        specs = {spec.name: spec for spec in self.study.curves}
        if (spec := _select_spec(name, specs)) is None:
            raise CurveError(
                f"study {self.study.name} has no curve '{name or ''}'{nearest_hint(name or '', specs)}"
            )
        metrics = self.store.metrics([trial.id for trial in self.study.trials()])
        return CurveDisplay(build_curve(self.study, spec, self._load_outcomes(), metrics))

    @property
    def claims(self) -> pl.DataFrame:
        """The verdict on each claim of the study file, with the numbers that it hangs on.

        `effect`, `low` and `high` are null where there is nothing to compare, `p` where nothing was tested.
        """
        ids = [trial.id for trial in self.study.trials()]
        metrics = self.store.metrics(ids) if needs_metrics(self.study) else None
        found = check_claims(self.study, self._load_outcomes(), metrics)
        return pl.DataFrame([_claim_row(each) for each in found], schema=_CLAIM_SCHEMA, orient="row")

    def _load_outcomes(self) -> pl.DataFrame:
        """The trials of the store with all that tables, figures and claims show of them."""
        return self.store.trials(displayed_metrics([self.study]))

    def __repr__(self) -> str:
        study = self.study
        return f"{study.name} · {one_line(study.title)}\n{self.status.summary()}\n{self.store.root}"

    def _repr_html_(self) -> str:
        """Title, counts and tables, as a notebook shows them."""
        name, title = escape(self.study.name), escape(one_line(self.study.title))
        head = f"<p><strong>{title}</strong><br>{name} · {escape(self.status.summary())}</p>"
        return "\n".join([head, *(self.table(spec.name)._repr_html_() for spec in self.study.tables)])


def _claim_row(checked: ClaimResult) -> tuple[object, ...]:
    """One row of the claims."""
    deciding = checked.deciding
    low, high = deciding.interval or (None, None)
    numbers = (deciding.effect, low, high, deciding.p, deciding.n, checked.needed)
    return (checked.spec.name, checked.verdict.value, *numbers)


def _select_spec(name: str | None, specs: Mapping[str, Spec]) -> Spec | None:
    """The one of that name, the first where none is named."""
    return next(iter(specs.values()), None) if name is None else specs.get(name)


def open_study(
    study: str | Path | None = None, results: str | Path = "results", overrides: Sequence[str] = ()
) -> StudyResults:
    """The results of a study: of that name as it last ran, of a file as it is, or of the last that ran.

    `results` is the folder of the store; `overrides` are `train.epochs=2` and the like. Raises StudyError.
    """
    store = Store(results)
    return StudyResults(load_last_run(None if study is None else str(study), store, overrides), store)
