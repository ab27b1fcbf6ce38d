"""A study and its results in a store, for notebooks and scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from .. import reporting  # it loads names when these are used: a status needs few
from ..errors import argument_fault, check_arguments, nearest_hint, number_fault, texts_fault
from ..lazy_exports import PROVIDED
from ..storage import Store, open_store
from ..storage.rows import KEY_COLUMNS
from ..studies.catalog.metrics import find_metric
from ..studies.last_run import load_last_run
from ..studies.planning.status import StudyStatus, stored_outcomes, study_status
from ..studies.planning.trials_to_run import select_trials
from ..studies.presentation.kinds import ResultKeys
from ..studies.schema.factors import one_line
from ..studies.study import Study, overrides_fault, study_fault
from ..studies.text.document import parse_document
from ..studies.text.errors import command_line
from .snapshot import Snapshot

if TYPE_CHECKING:
    from ..engine.core.resources import Machine
    from ..engine.probes.study_probes import ProbeResult
    from ..errors import ActivememError
    from ..studies.plan import Plan
    from ..studies.searches.points import SearchPoints
    from .added_seeds import NextSeeds
    from .claims.verdicts import ClaimResult
    from .curves.curve import Curve
    from .kept_models import KeptModel
    from .missing_ablations import MissingAblations, MissingCell
    from .tables.table import Table

SpecT = TypeVar("SpecT", bound=ResultKeys)

_CLAIM_SCHEMA = {
    "claim": pl.String,
    "verdict": pl.String,
    "effect": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "added": pl.Float64,
    "p": pl.Float64,
    "n": pl.Int64,
    "needed": pl.Int64,
    "origin": pl.String,
}


@dataclass(frozen=True, slots=True)
class StudyResults:
    """A study with its store, and the ways to look at its results.

    Each property and method reads the store again, so a running study can be watched.
    """

    study: Study
    store: Store

    @property
    def now(self) -> Snapshot:
        """Read the store, and return a snapshot of the study's current results."""
        return Snapshot.of(self.study, self.store)

    @property
    def compared(self) -> Snapshot:
        """Read the store, and return a snapshot with only the metrics of the study's claims."""
        return Snapshot.of(self.study, self.store, self.study.claims)

    @property
    def trials(self) -> pl.DataFrame:
        """Return a frame with the status and metrics of each trial that has an outcome.

        There is a row for each cell and seed, with those that were added. The factors are columns; a factor
        with the name of another column is called `factor_NAME`. `diverged` is the reason why means leave a
        trial out.
        """
        from .subject import trials_frame  # noqa: PLC0415 -- loaded where it is needed

        return trials_frame(*reporting.read_trials(self.store, self.study))

    @property
    def metrics(self) -> pl.DataFrame:
        """Return every metric over time in long form, with the factors as columns."""
        from .subject import metrics_frame, study_levels, with_task_names  # noqa: PLC0415 -- loaded where it is needed

        outcomes = stored_outcomes(self.store, self.study)
        levels = with_task_names(study_levels(self.study, outcomes), outcomes)
        return metrics_frame(self.store.metrics(levels["trial"].to_list()).lazy(), levels).collect()

    @property
    def status(self) -> StudyStatus:
        """Return the status of the study: the progress of its trials."""
        return study_status(self.study, self.store)

    @property
    def points(self) -> SearchPoints | None:
        """Return the finished points of a search; None for a grid.

        Points with unfinished trials are left out. Points that cannot be ranked are included.
        """
        return None if self.study.search is None else self.now.points

    def best_table(self, points: int = 10) -> Table:
        """Return the best points of a search as a table. Raise TableError for a grid."""
        from ..studies.presentation.point_keys import PointsTable  # noqa: PLC0415 -- loaded where it is needed

        if self.study.search is None:
            raise reporting.TableError(f"study {self.study.name} has no best points: it has no [search]")
        check_arguments(number_fault("points", points, least=1), error=reporting.TableError)
        specs = [PointsTable(kind="points", name="best", points=points)]
        return Snapshot.of(self.study, self.store, specs).tables(specs)[0]

    @property
    def noise(self) -> list[str]:
        """Return sentences on the smallest differences that the search can detect, by its stored points."""
        from .search.noise import plan_sentences  # noqa: PLC0415 -- loaded where it is needed

        if (found := self.points) is None:
            return []
        return list(plan_sentences(self.study, found, find_metric(found.goals[0].name)))

    def promote(self, *, best: int = 1, seeds: int = 5) -> str:
        """Return a study file that tests a search's best points on fresh seeds.

        The study also has the baseline. A number in its name distinguishes it from a study
        with other points or seeds that has run. Raises PromotionError if there is nothing to compare.
        """
        from .search.promotion import PromotionError, winners_text  # noqa: PLC0415 -- loaded where it is needed

        check_arguments(
            number_fault("best", best, least=1),
            number_fault("seeds", seeds, least=1),
            error=PromotionError,
        )
        if (found := self.points) is None:
            raise PromotionError(f"study {self.study.name} has no points to promote: it has no [search]")
        rows = self.store.trials(columns=(*KEY_COLUMNS, "seed"))
        first, number = f"{self.study.name}-winners", 1
        while True:
            name = first if number == 1 else f"{first}-{number}"
            others = rows.filter(pl.col("study") != name)  # its own trials may be those of the same file
            stored = dict(zip(others["trial"], others["seed"], strict=True))
            text = winners_text(self.study, found, name=name, best=best, seeds=seeds, stored=stored)
            ran = self.store.records.load(name)
            if ran is None or parse_document(name, ran["text"]).data == parse_document(name, text).data:
                return text
            number += 1

    def plan(self, machine: Machine | None = None, *, only: str | Sequence[str] = ()) -> Plan:
        """Return the trials that a run would train, and their cost.

        `only` selects cells of a grid, as in `["task=sort"]`. With a `Machine`, the result is the plan of
        `activemem study plan`, with devices, measured times and prepared data. Without one, the memory is
        estimated for the longest sequences that the settings allow.
        """
        only = [only] if isinstance(only, str) else only
        check_arguments(texts_fault("only", only, "['task=sort']"))
        selected = select_trials(self.study, only) if only else None
        if machine is None:
            from ..studies.plan import make_plan  # noqa: PLC0415 -- tables do without it

            return make_plan(self.study, self.store, selected)
        plan = PROVIDED["planning"]().plan_study(self.study, self.store, machine, selected)
        return plan.with_notes([("noise", "; ".join(self.noise))])

    def probe(
        self, machine: Machine | None = None, *, sequences: int = 10_000
    ) -> Iterator[tuple[str, Iterator[ProbeResult]]]:
        """Measure the trained models with the probes that suit the study, and store new results.

        Yield each kind of measurement, "probed" or "tuned", with its results.
        """
        return PROVIDED["probes"]().measure_study(self.study, self.store, machine, sequences=sequences)

    def evaluate(self, tasks: Sequence[str], folder: Path | None = None) -> Iterator[ProbeResult]:
        """Score the trained language models on tasks of lm_eval, and store the scores.

        Tasks are looked up in `folder`, by default in lm_eval. Raise EvaluationError if a package or a task
        is missing.
        """
        return PROVIDED["lm_evaluation"]().evaluate_study(self.study, self.store, tasks, folder)

    def missing_ablations(self, machine: Machine | None = None) -> tuple[MissingAblations, list[MissingCell]]:
        """Return the single changes of the study's baseline, and those of which the store lacks trials.

        With a `Machine`, training times that are unknown are measured on it. Raise MissingError for a study
        without such changes.
        """
        from .missing_ablations import find_missing  # noqa: PLC0415 -- loaded where it is needed

        found = find_missing(self.study)
        measure = None if machine is None else PROVIDED["planning"]().measure_steps(machine, {})
        return found, found.missing_cells(self.store, measure)

    def table(self, name: str | None = None, *, published: bool = True) -> Table:
        """Return a table of the study file, by default the first, with the paper's numbers if `published`."""
        return self.tables(name, published=published)[0]

    def tables(self, name: str | None = None, *, published: bool = True) -> list[Table]:
        """Return all tables of the study file, or the named one. Raise TableError if there is none."""
        specs = self._shown("table", self.study.tables, name, reporting.TableError)
        return Snapshot.of(self.study, self.store, specs).tables(specs, published=published)

    def curve(self, name: str | None = None) -> Curve:
        """Return a figure of the study file, by default its first."""
        return self.curves(name)[0]

    def curves(self, name: str | None = None) -> list[Curve]:
        """Return all figures of the study file, or the named one. Raise CurveError if there is none."""
        specs = self._shown("curve", self.study.curves, name, reporting.CurveError)
        return Snapshot.of(self.study, self.store, specs).curves(specs)

    def _shown(
        self, kind: str, specs: Sequence[SpecT], name: str | None, error: type[ActivememError]
    ) -> list[SpecT]:
        if not specs:
            note = last_run_note(self, kind)
            raise error(f"study {self.study.name} has no {kind}: it has no [[{kind}]]{note}")
        return select_specs(self.study, kind, specs, name, error)

    def check_claims(self) -> tuple[ClaimResult, ...]:
        """Return the verdict on each claim of the study file, with all of its comparisons."""
        return self.compared.claims()

    def next_seeds(self, *, seconds: float | None = None) -> NextSeeds | None:
        """Return the trials with additional seeds that are most worth training.

        They decide the most open questions per hour. Return None if more seeds would not help. The study
        needs `max_seeds`. Trials longer than `seconds` are left out. `run_study` trains them:
        `run_study(study.with_trials(found.trials), store)`.
        """
        from .added_seeds import next_seeds as find_next_seeds  # noqa: PLC0415 -- loaded where it is needed

        check_arguments(number_fault("seconds", seconds, least=0, whole=False, optional=True))
        now = self.compared
        return find_next_seeds(self.study, now.outcomes, now.claim_metrics, seconds=seconds)

    @property
    def claims(self) -> pl.DataFrame:
        """Return a frame with a row for each claim: its verdict and numbers.

        `effect`, `low` and `high` are null if there is nothing to compare, `p` if nothing was tested. `added`
        is a number that the claim adds to a side: the test includes it, and the effect does not. If trainings
        ended before they reached a target, there is no `effect`, and only the ends that are known.
        """
        return claims_frame(self.check_claims())

    @property
    def models(self) -> list[KeptModel]:
        """Return the stored trained models, for `load_model`."""
        from .kept_models import kept_models  # noqa: PLC0415 -- tables do without it

        return kept_models(self.study, self.store)

    def best(self, metric: str) -> KeptModel:
        """Return the stored model that is best by a metric. Raise KeptModelError if there is none."""
        from .kept_models import KeptModelError, best_first  # noqa: PLC0415 -- loaded where it is needed

        check_arguments(argument_fault("metric", metric, str, "the name of a metric"), error=KeptModelError)
        return best_first(self.models, metric)[0]

    def report(self) -> str:
        """Return the study and its results as one self-contained HTML page."""
        return reporting.report(self.study, self.store)

    def __repr__(self) -> str:
        study = self.study
        return f"{study.name} · {one_line(study.title)}\n{self.status.summary()}\n{self.store.place}"

    def _repr_html_(self) -> str:
        name, title = escape(self.study.name), escape(one_line(self.study.title))
        head = f"<p><strong>{title}</strong><br>{name} · {escape(self.status.summary())}</p>"
        return "\n".join(
            [head, *(each._repr_html_() for each in (self.tables() if self.study.tables else ()))]
        )


def claims_frame(results: Sequence[ClaimResult]) -> pl.DataFrame:
    """Return a frame with a row for each claim."""
    rows = list[tuple[object, ...]]()
    for each in results:
        one = each.deciding
        low, high = one.interval or one.bounds or (None, None)
        numbers = (one.effect, low, high, one.added, one.p, one.n, each.needed)
        rows.append((each.spec.name, each.verdict_text, *numbers, each.origin))
    return pl.DataFrame(rows, _CLAIM_SCHEMA, orient="row")


def select_specs(
    study: Study, kind: str, specs: Sequence[SpecT], name: str | None, error: type[ActivememError]
) -> list[SpecT]:
    """Return all tables or figures of a study, or the named one; raise `error` if there is none."""
    names = [spec.name for spec in specs]
    expected = f"None or the name of a {kind}: {', '.join(names)}"
    check_arguments(argument_fault("name", name, (str, type(None)), expected), error=error)
    if name is not None and name not in names:
        raise error(f"study {study.name} has no {kind} '{name}'{nearest_hint(name, names)}")
    return [spec for spec in specs if name in (None, spec.name)]


def last_run_note(results: StudyResults, kind: str, verb: str = "render") -> str:
    """Return a note that a study was read from its last run.

    The note has the command that reads the study's file instead. It is "" for a study that was read from its
    file.
    """
    study, store = results.study, results.store
    record = store.records.load(study.name) if study.document.path is None else None
    if record is None or record["text"] != study.document.text:
        return ""
    place = None if store.place == "results" else store.place
    command = command_line(kind, verb, record.get("path") or "FILE", results=place)
    return f" in its last run; to read its file instead: {command}"


def open_study(
    study: str | Path | Study | None = None,
    results: str | Path | Store = "results",
    overrides: str | Sequence[str] = (),
) -> StudyResults:
    """Return the results of a study, given its name or file.

    The default is the study that ran last. `results` is a store, its folder or its address; `overrides` are
    settings such as `train.epochs=2`. A name means the study as it ran last, a path the current file. Raises
    StudyError. Tables, figures and claims are read when they are asked for; their faults are logged before.
    """
    overrides = [overrides] if isinstance(overrides, str) else overrides
    kinds = (str, Path, Study, type(None))
    check_arguments(
        argument_fault("study", study, kinds, "the name of a study, its file, a Study or None"),
        argument_fault("results", results, (str, Path, Store), "a Store or its folder"),
        overrides_fault(overrides),
    )
    store = open_store(results)
    check_arguments(study_fault(study) if isinstance(study, Study) else None)
    if not isinstance(study, Study):
        study = load_last_run(None if study is None else str(study), store, overrides)
    return StudyResults(study, store)
