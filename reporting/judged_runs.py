"""Tables, figures and verdicts over runs that another program has trained."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..errors import argument_fault, check_arguments, texts_fault
from ..storage.rows import TRIALS
from ..studies.judged.files import RunsError
from ..studies.judged.keys import RunsSettings
from ..studies.judged.study import choice_text, default_tables, judged_metrics, load_runs, runs_text
from ..studies.planning.final_values import DIVERGED
from ..studies.resolve.trial import cell_key
from ..studies.schema.factors import one_line
from ..studies.study import Study
from ..studies.text.document import parse_document, read_document
from ..studies.text.strict_model import InvalidTableError, validate
from ..studies.text.units import listed
from .claims.check import check_claims
from .claims.terminal import claims_to_terminal, legend, measured_sentences
from .kinds import build_curve, build_table
from .results import claims_frame, select_specs

if TYPE_CHECKING:
    from ..studies.judged.runs import Runs
    from .claims.verdicts import ClaimResult
    from .curves.curve import Curve
    from .tables.table import Table

Source = str | Path | Sequence[str | Path] | Sequence[Mapping[str, object]] | Any
"""Files of runs, a study file with [runs], a frame of pandas, Polars or Arrow, or a list of rows."""


@dataclass(frozen=True)
class JudgedRuns:
    """Runs that another program has trained, and the ways to look at them: as those of `StudyResults`.

    They have no store. Every table, figure and verdict says that the runs were not trained here.
    """

    study: Study

    @property
    def runs(self) -> Runs:
        """Return the runs, with their settings and their origin."""
        assert self.study.runs is not None, "`judge` makes this object"
        return self.study.runs

    @cached_property
    def outcomes(self) -> pl.DataFrame:
        """Return a row for each run, in the form of a store's rows. It has the origin, and no settings."""
        trials = self.study.cells
        count = len(trials)
        rows = {
            "trial": [trial.id for trial in trials],
            "study": [self.study.name] * count,
            "seed": [trial.seed for trial in trials],
            "status": ["done"] * count,
            "factors": [json.dumps(trial.levels) for trial in trials],
            "version": [self.runs.origin] * count,
        }
        empty = {name: [None] * count for name in TRIALS if name not in rows}
        frame = pl.DataFrame({**rows, **empty}, schema_overrides=TRIALS).select(*TRIALS)
        return frame.with_columns(pl.lit(None, dtype=pl.String).alias(DIVERGED))

    @property
    def notes(self) -> tuple[str, ...]:
        """Return how the runs were read, what no file can show, and what their verdicts depend on."""
        return (*self.runs.told, *self.runs.sentences)

    def table(self, name: str | None = None) -> Table:
        """Return a table, by default the first."""
        return self.tables(name)[0]

    def tables(self, name: str | None = None) -> list[Table]:
        """Return all tables, or the named one. Raise RunsError if there is none of this name."""
        with judged_metrics(self.runs):
            specs = select_specs(self.study, "table", self.study.tables, name, RunsError)
            return [
                build_table(self.study, spec, self.outcomes, published=bool(self.study.published.texts))
                for spec in specs
            ]

    def curve(self, name: str | None = None) -> Curve:
        """Return a figure, by default the first."""
        return self.curves(name)[0]

    def curves(self, name: str | None = None) -> list[Curve]:
        """Return all figures, or the named one. Raise RunsError if there is none of this name."""
        with judged_metrics(self.runs):
            specs = select_specs(self.study, "curve", self.study.curves, name, RunsError)
            history = [self.runs.course(self.study) if each.needs_history else None for each in specs]
            return [
                build_curve(self.study, spec, self.outcomes, course)
                for spec, course in zip(specs, history, strict=True)
            ]

    def check_claims(self) -> tuple[ClaimResult, ...]:
        """Return the verdict on each claim."""
        with judged_metrics(self.runs):
            found = check_claims(self.study, self.outcomes)
        origin = f"{len(self.study.cells)} runs · {self.runs.origin}"
        return tuple(replace(each, origin=origin) for each in found)

    @property
    def claims(self) -> pl.DataFrame:
        """Return a frame with a row for each claim: its verdict, its numbers and their origin."""
        return claims_frame(self.check_claims())

    def claims_text(self, *, width: int = 100) -> str:
        """Return the verdicts as text, with the sentences that explain them."""
        if not (checked := self.check_claims()):
            return ""
        with judged_metrics(self.runs):
            sentences = [*measured_sentences(self.study), *legend(checked), *self._other_pairing(checked)]
        read = {cell_key(each.cell) for claim in self.study.claims for each in claim.quantities}
        if len(read) < (count := len(self.runs.cells)):
            sentences.append(
                f"Of {count} cells, {len(read)} are compared: valid if chosen before any result."
            )
        return claims_to_terminal(checked, [*sentences, *self.runs.sentences, checked[0].origin], width=width)

    def _other_pairing(self, checked: Sequence[ClaimResult]) -> Iterator[str]:
        """Yield a sentence on each claim whose verdict depends on whether seeds pair runs."""
        seeds = [{run.seed for run in self.runs.runs if run.cell == cell} for cell in (0, 1)]
        if not self.runs.settings.seed or self.runs.is_summary or len(seeds[0] & seeds[1]) < 2:
            return
        pair = "none" if self.study.pairs_seeds else "seed"
        others = check_claims(replace(self.study, pairs_seeds=pair == "seed"), self.outcomes)
        for one, other in zip(checked, others, strict=True):
            if one.verdict != other.verdict:
                yield (
                    f'{one.spec.name}: {other.verdict} with pair = "{pair}". Which is right follows from how '
                    "the runs were made, and never from their results."
                )

    def text(self) -> str:
        """Return the study file that was understood, with all guesses as keys."""
        document = self.study.document
        return runs_text(self.runs.settings, document.text[document.text.find("[[") :], self.study.name)

    def __repr__(self) -> str:
        return f"<JudgedRuns {self.study.name}: {len(self.study.cells)} runs, {self.runs.origin}>"

    def _repr_html_(self) -> str:
        head = f"<p><strong>{escape(one_line(self.study.title))}</strong></p>"
        return "\n".join([head, *(each._repr_html_() for each in self.tables())])


def judge(
    source: Source,
    *,
    factors: str | Sequence[str] = (),
    metrics: Mapping[str, str] | Sequence[str] = (),
    seed: str | None = None,
    names: str | None = None,
    form: str | None = None,
    pair: str = "none",
    failed: str = "undecided",
    tries: int | None = None,
    planned: int | None = None,
    spread: str | None = None,
    baseline: str | None = None,
    claims: str | Sequence[str] = (),
    over: str | Sequence[str] = (),
    pick_by: str | None = None,
    text: str = "",
) -> JudgedRuns:
    """Judge runs that another program has trained.

    `source` is a file of runs (CSV, Parquet, results of lm_eval), several, a pattern such as
    `"tb/{arm}_seed{seed}.csv"`, a frame, or a list of rows; or a study file with [runs], without any other
    argument. `metrics` maps columns to "lower" or "higher", whichever is better. The other arguments are keys
    of [runs]; what is left out is guessed from names, and told in `notes`. `baseline` is the row with which
    the default table compares the others, `claims` are statements such as `"loss[arm=a] < loss[arm=b]"`.
    `over` has factors, such as a learning rate, of whose levels each cell of the table and of the claims has
    the best by the metric `pick_by`. `text` has [[table]], [[curve]] and [[claim]]
    as in a study file. Raise RunsError for runs that allow no verdict, and StudyError for faults of the file
    or of the claims.
    """
    claims, factors, over = ([each] if isinstance(each, str) else each for each in (claims, factors, over))
    check_arguments(
        texts_fault("claims", claims, "['loss[arm=a] < loss[arm=b]']"),
        texts_fault("factors", factors, "['arm']"),
        texts_fault("over", over, "['lr']"),
        argument_fault("text", text, str, "tables as in a study file"),
        error=RunsError,
    )
    if bool(over) != (pick_by is not None):
        raise RunsError("over and pick_by need each other, as in --over lr --pick-by val_loss")
    given = {
        "form": form,
        "factors": tuple(factors),
        "metrics": _metrics(metrics),
        "seed": seed,
        "names": names,
        "pair": pair,
        "failed": failed,
        "tries": tries,
        "planned": planned,
        "spread": spread,
    }
    if isinstance(source, str | Path) and str(source).endswith(".toml"):
        defaults = RunsSettings(file=("",)).model_dump()
        named = [name for name, value in given.items() if value != defaults[name]]
        others = {"claims": claims, "baseline": baseline, "over": over, "pick_by": pick_by, "text": text}
        if named := [*named, *(name for name, value in others.items() if value)]:
            raise RunsError(f"{source} is a study file: set {listed(named)} there")
        return JudgedRuns(load_runs(read_document(Path(source))))
    frame, files = _read_source(source)
    try:
        settings = validate(RunsSettings, {"file": tuple(files), **given})
    except InvalidTableError as error:
        raise RunsError(str(error)) from None
    for each in claims:
        text += f"\n[[claim]]\nname = {json.dumps(each)}\nholds = {json.dumps(each)}\n"
        text += choice_text(over, pick_by)
    default = partial(default_tables, baseline=baseline, over=over, pick_by=pick_by)
    return JudgedRuns(load_runs(parse_document("judge", runs_text(settings, text)), frame, default))


def _metrics(given: Mapping[str, str] | Sequence[str]) -> dict[str, dict[str, str]]:
    from ..studies.judged.runs import judge_name  # noqa: PLC0415 -- with the other names of columns

    given = [given] if isinstance(given, str) else given
    pairs = given.items() if isinstance(given, Mapping) else ((each, "") for each in given)
    return {
        judge_name(column): {"column": column, **({"better": better} if better else {})}
        for column, better in pairs
    }


def _read_source(source: Source) -> tuple[pl.DataFrame | None, list[str]]:
    """Return the frame of runs and a name for it, or the names of their files."""
    if isinstance(source, str | Path):
        return None, [str(source)]
    if isinstance(source, Sequence) and source and all(isinstance(each, str | Path) for each in source):
        return None, [str(each) for each in source]
    try:
        if isinstance(source, Sequence):
            return pl.DataFrame(list(source), infer_schema_length=None), [f"a list of {len(source)} rows"]
        return pl.DataFrame(source), ["a data frame"]
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise RunsError(f"expected files, a frame or a list of rows, got {type(source).__name__}") from error
