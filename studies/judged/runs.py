"""The cells, the seeds and the values of runs that another program has trained.

Names are guessed from columns, and told. What cannot follow from a file is declared or asked for: whether
seeds pair runs, what failed runs mean, how many were tried, and which values are better.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from ..catalog.metrics import METRICS, METRICS_AND_COSTS, Metric
from ..planning.final_values import ValueStatus
from ..schema.settings import Level
from ..text.units import listed, plural
from .files import STEPS, WHY, RunRows, RunsError, decimals_of, numbers, texts
from .keys import JUDGED, RunMetric, RunsSettings

if TYPE_CHECKING:
    from ..study import Study

_PREFIX = re.compile(r"(metrics|params|config|user_attrs|summary)[._/]|params_")
_IS_PARAMETER = re.compile(r"(params|config)[._/]|params_")
_SEEDS = ("seed", "random_seed", "rng_seed", "run_seed")
_STATES = ("state", "status", "done")
_ENDED = {"finished", "complete", "completed", "done", "terminated", "success", "succeeded", "true"}
_FAILED = {"failed", "fail", "crashed", "killed", "error", "errored", "pruned", "canceled", "cancelled"}
_OPEN = {"running", "pending", "queued", "waiting", "scheduled", "preempted", "unfinished", "false"}
_LOWER = re.compile(r"loss|bpb|bpc|ppl|perplexity|nll|error|rmse|mae\b|\bwer\b", re.IGNORECASE)
_HIGHER = re.compile(r"acc|f1|bleu|auc|reward", re.IGNORECASE)
_NO_FACTOR = re.compile(
    r"id|.*[_ ]id|.*name|notes|user|tags|sweep|commit|host|logdir|created|updated|date.*|.*time(stamp)?"
    r"|url|source",
    re.IGNORECASE,
)
_NO_METRIC = re.compile(r"stderr|__MIN$|__MAX$|scale|reduction|weight|coef", re.IGNORECASE)
_PATH = re.compile(r"[A-Za-z_]\w*(?:[/.][A-Za-z_]\w*)+", re.ASCII)
"""A name of a column that can stand in a claim as it is."""

_MOST_FACTORS = 2


@dataclass(frozen=True, kw_only=True)
class JudgedRun:
    """A run: the number of its cell, its seed, and of each metric the value, the status and the reason.

    `item_errors` has the standard errors of metrics over test items, where the files state them.
    """

    cell: int
    seed: int
    values: Mapping[str, tuple[float | None, ValueStatus, str]]
    item_errors: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Runs of another program, read and complete: their cells, their metrics, and how they were read.

    `settings` is [runs] with all guesses. `sentences` stand below every table and figure, since verdicts
    depend on them; `told` is how the files were read. `steps` is the smallest difference of two values of a
    metric. `history` has the learning curves, if the files have any: the number of the run, the name of the
    metric, its step and its value. Along the `axis` are steps or epochs.
    """

    settings: RunsSettings
    origin: str
    digest: str
    cells: tuple[Mapping[str, Level], ...]
    runs: tuple[JudgedRun, ...]
    metrics: Mapping[str, Metric]
    steps: Mapping[str, float]
    sentences: tuple[str, ...]
    told: tuple[str, ...]
    history: pl.DataFrame | None = None
    axis: str = "step"

    @property
    def pairs_seeds(self) -> bool:
        """Whether equal seeds of two cells are compared with each other."""
        return self.settings.pair == "seed"

    @property
    def is_summary(self) -> bool:
        """Whether only means, spreads and numbers of runs are known."""
        return self.settings.form == "summary"

    def course(self, study: Study) -> pl.DataFrame:
        """Return the learning curves at the steps that all runs of a cell have, as a store's metrics.

        Raise RunsError if the runs of a cell have no two steps in common, so that no mean is possible.
        """
        if self.history is None:
            return pl.DataFrame(schema={"trial": pl.String, "name": pl.String, "value": pl.Float64})
        known = pl.DataFrame(
            {
                "run": range(len(self.runs)),
                "trial": [each.id for each in study.cells],
                "cell": [each.cell for each in self.runs],
            },
            schema_overrides={"run": pl.UInt32},
        )
        found = self.history.join(known, on="run").drop_nulls("value")
        runs = pl.col("run").n_unique()
        found = found.filter(runs.over("cell", "name", "step") == runs.over("cell", "name"))
        steps = found.group_by("cell", "name").agg(pl.col("step").n_unique())["step"]
        cells = known["cell"].n_unique()
        if len(steps) < cells or (len(steps) and min(steps) < 2):
            raise RunsError(
                f"{self.origin}: the runs of a cell have no two {self.axis}s in common, so their curves "
                f"have no mean: export them at equal {self.axis}s"
            )
        columns = {name: column for column, name in self.aliases.items()}
        written = found.with_columns(pl.col("name").replace(columns)).filter(
            pl.col("name").is_in(columns.values())
        )
        return pl.concat([found, written]).with_columns(epoch=pl.col("step"))

    def step(self, metric: str) -> float:
        """Return the smallest difference of two values of a metric."""
        return self.steps[self.aliases.get(metric, metric)]

    def item_error(self, study: Study, trials: Collection[str], metric: str) -> float | None:
        """Return the standard error of a metric over test items; None except for one trial that has it."""
        if len(trials) != 1:
            return None
        (trial,) = trials
        at = next(at for at, each in enumerate(study.cells) if each.id == trial)
        return self.runs[at].item_errors.get(self.aliases.get(metric, metric))

    @property
    def aliases(self) -> Mapping[str, str]:
        """The names of metrics by those of their columns, such as `val/loss`, which mean the same."""
        columns = {each.column: name for name, each in self.settings.metrics.items()}
        return {column: name for column, name in columns.items() if column and _PATH.fullmatch(column)}

    def observe(self, study: Study, trials: Sequence[str], metric: str) -> pl.DataFrame:
        """Return the value of a metric for each of these trials, with the columns of `reporting.observe`."""
        metric = self.aliases.get(metric, metric)
        runs = {trial.id: run for trial, run in zip(study.cells, self.runs, strict=True)}
        found = [(trial, runs[trial].seed, *runs[trial].values[metric]) for trial in trials]
        schema = {
            "trial": pl.String,
            "seed": pl.Int64,
            "value": pl.Float64,
            "status": pl.String,
            "why": pl.String,
        }
        frame = pl.DataFrame(found, schema=schema, orient="row")
        return frame.with_columns(step=pl.lit(self.steps[metric]))


def judge_name(column: str) -> str:
    """Return the name of a column in claims: letters, digits and _, without the prefix of a tracker."""
    name = re.sub(r"\W+", "_", _PREFIX.sub("", column, count=1)).strip("_")
    return name if name[:1].isalpha() else f"run_{name}"


def find_runs(settings: RunsSettings, rows: RunRows) -> Runs:
    """Find the factors, seeds, states and metrics of runs. Raise RunsError with what cannot be judged."""
    frame, label, told = rows.frame, rows.label, list(rows.told)
    _refuse_search(settings, rows)
    if missing := [
        name
        for name in (*settings.factors, *(each.column or name for name, each in settings.metrics.items()))
        if name not in frame.columns
    ]:
        raise RunsError(f"{label} has no column {listed(missing, 'or')}; it has {listed(frame.columns)}")
    seed, state = _seed_column(settings, frame), _state_column(frame)
    metrics = _metrics(settings, rows, told)
    columns = {name: each.column or name for name, each in metrics.items()}
    factors = _factors(settings, rows, (seed, state, *columns.values()), told)
    names = {column: judge_name(column) for column in factors}
    clashes = [name for name, n in Counter([*names.values(), *columns, "seed"]).items() if n > 1]
    if clashes:
        raise RunsError(f"{label}: {listed(clashes)} is the name of two columns, or of seeds: rename one")
    values = {name: numbers(frame[column]) for name, column in columns.items()}
    whys = _whys(frame, state)
    for row in range(len(frame)):  # a run that diverged is no accident, however it ended
        if any(each[row] is not None and not math.isfinite(each[row]) for each in values.values()):
            whys[row] = ""
    left_out = Counter(why for why in whys if why) if settings.failed == "left-out" else Counter[str]()
    levels = {column: _levels(frame[column]) for column in factors}
    cells: dict[tuple[Level, ...], list[int]] = {}
    for row, key in enumerate(zip(*(levels[column] for column in factors), strict=True)):
        cells.setdefault(key, []).append(row)
    kept = {key: [row for row in own if not (whys[row] and left_out)] for key, own in cells.items()}
    _refuse(settings, rows, factors, kept, seed)
    completed = settings.model_copy(
        update={
            "form": rows.form,
            "factors": tuple(factors),
            "seed": seed or "",
            "metrics": metrics,
        }
    )
    if settings.failed == "left-out" and (blank := _blank(values, whys, kept)):
        kept = {key: [row for row in own if row not in blank] for key, own in kept.items()}
        left_out["without a value"] += len(blank)
    kept = {key: own for key, own in kept.items() if own}
    seeds = _seeds(frame, seed, kept, label)
    places = {row: number for number, row in enumerate(row for own in kept.values() for row in own)}
    history = None
    if rows.history is not None:
        courses = [
            rows.history.select(
                pl.col("run").replace_strict(places, default=None, return_dtype=pl.UInt32),
                "step",
                name=pl.lit(name),
                value=numbers(rows.history[column]),
            )
            for name, column in columns.items()
            if column in rows.history.columns
        ]
        history = pl.concat(courses).drop_nulls("run") if courses else None
    found = [
        JudgedRun(
            cell=cell,
            seed=seeds[row],
            values={
                name: _value(column[row], whys[row], name, f"{'seed' if seed else 'run'} {seeds[row]}", label)
                for name, column in values.items()
            },
            item_errors={
                name: float(frame[rows.item_errors[column]][row])
                for name, column in columns.items()
                if column in rows.item_errors and frame[rows.item_errors[column]][row] is not None
            },
        )
        for cell, own in enumerate(kept.values())
        for row in own
    ]
    steps = {
        name: 10.0 ** -(rows.decimals if rows.decimals is not None else max(map(decimals_of, frame[column])))
        for name, column in columns.items()
    }
    spreads = {
        name: _typical_sd(values[name], [[row for row in own if not whys[row]] for own in kept.values()])
        for name in metrics
    }
    shown = {name: _metric(name, each, values[name], spreads[name], told) for name, each in metrics.items()}
    return Runs(
        settings=completed,
        origin=f"{JUDGED}: {label} (sha256 {rows.digest[:8]})",
        digest=rows.digest,
        cells=tuple(dict(zip(names.values(), key, strict=True)) for key in kept),
        runs=tuple(found),
        metrics=shown,
        steps=steps,
        sentences=(*rows.limits, *_sentences(settings, kept, left_out, len(frame))),
        told=tuple(f"{each[0].upper()}{each[1:]}." for each in told),
        history=history,
        axis=rows.axis,
    )


def _seed_column(settings: RunsSettings, frame: pl.DataFrame) -> str | None:
    if settings.seed is not None:
        if settings.seed and settings.seed not in frame.columns:
            raise RunsError(f"there is no column {settings.seed}; the columns are {listed(frame.columns)}")
        return settings.seed or None
    return next((name for name in frame.columns if judge_name(name).lower() in _SEEDS), None)


def _state_column(frame: pl.DataFrame) -> str | None:
    """Return the column whose values all say how a run ended, if there is one."""
    known = _ENDED | _FAILED | _OPEN
    for name in frame.columns:
        if name.lower() in _STATES and set(texts(frame[name]).str.to_lowercase().drop_nulls()) <= known:
            return name
    return None


def _metrics(settings: RunsSettings, rows: RunRows, told: list[str]) -> dict[str, RunMetric]:
    """Return the metrics with their directions: those that are named, or the one that looks so."""
    asked = dict(settings.metrics)
    if not asked:
        found = list(rows.metrics) or [
            name for name in rows.frame.columns if _looks_measured(rows.frame, name)
        ]
        if rows.form == "rows" and len(found) > 1:
            found = [name for name in found if not re.search("train", name, re.IGNORECASE)] or found
        if not found or (len(found) > 1 and rows.form == "rows"):
            which = f": {listed(found, 'or')}?" if found else "."
            example = found[0] if found else "COLUMN"
            raise RunsError(
                f"{rows.label}: which column is judged{which} Say it, and what is better: "
                f"--metric {example}:{'lower' if _LOWER.search(example) else 'higher'}"
            )
        asked = {judge_name(name): RunMetric(column=name) for name in found}
        if not rows.metrics:
            told.append(f"the metric is {found[0]}, by its name")
    unsure = list[str]()
    for name, each in asked.items():
        column = each.column or name
        better = each.better or rows.better.get(column)
        if better is None and not (
            _NO_METRIC.search(column) or bool(_LOWER.search(column)) == bool(_HIGHER.search(column))
        ):
            better = "lower" if _LOWER.search(column) else "higher"
            told.append(f"{better} {column} is better, by its name")
        if better is None:
            unsure.append(
                f"is a lower or a higher {column} better? Say --metric {column}:lower or {column}:higher"
            )
        asked[name] = each.model_copy(update={"column": column, "better": better})
    if unsure:
        raise RunsError("\n".join(f"{rows.label}: {each}" for each in unsure))
    named = {judge_name(name): each for name, each in asked.items()}
    for name in [name for name in named if name in METRICS_AND_COSTS and name not in METRICS]:
        named[f"run_{name}"] = named.pop(name)
        told.append(f"in claims, {name} is run_{name}, as activemem counts a cost of that name itself")
    plain = ((name, each) for name, each in named.items() if name not in (each.column, f"run_{each.column}"))
    told += [
        f"in claims, {each.column} is {name}" for name, each in plain if not _PATH.fullmatch(str(each.column))
    ]
    return named


def _looks_measured(frame: pl.DataFrame, name: str) -> bool:
    is_named = (_LOWER.search(name) or _HIGHER.search(name)) and not _NO_METRIC.search(name)
    return bool(is_named and not _IS_PARAMETER.match(name) and numbers(frame[name]).drop_nulls().len())


def _factors(
    settings: RunsSettings, rows: RunRows, taken: Iterable[str | None], told: list[str]
) -> tuple[str, ...]:
    """Return the columns that name what is compared: those that are named, or those that look so."""
    if settings.factors or rows.named:
        return settings.factors or rows.named
    frame, taken = rows.frame, {*taken, WHY}
    rest = [
        name
        for name in frame.columns
        if name not in taken and judge_name(name).lower() not in _SEEDS and not _NO_FACTOR.fullmatch(name)
    ]
    parameters = [name for name in rest if _IS_PARAMETER.match(name)]
    others = [name for name in rest if numbers(frame[name]).null_count() == len(frame)]
    most = len(frame) if rows.form in ("wide", "summary") else len(frame) / 2
    found = [name for name in parameters or others if 1 < texts(frame[name]).drop_nulls().n_unique() <= most]
    kept = list(found)
    for name in found:  # the later one of two that follow from each other
        others = [other for other in kept if other != name and _follows(frame, name, other)]
        if leads := [
            other
            for other in others
            if kept.index(other) < kept.index(name) or not _follows(frame, other, name)
        ]:
            kept.remove(name)
            told.append(f"no factor of its own: {name}, which follows {leads[0]}")
    if not kept:
        raise RunsError(
            f"{rows.label}: no column names what is compared; say it: --factor COLUMN (it has "
            f"{listed(frame.columns)})"
        )
    if len(kept) > _MOST_FACTORS:
        raise RunsError(
            f"{rows.label}: {listed(kept)} vary: say which are compared, as in --factor {kept[0]}; the runs "
            "of a cell then differ in the others"
        )
    told.append(f"compared by {listed(kept)}")
    return tuple(kept)


def _follows(frame: pl.DataFrame, name: str, other: str) -> bool:
    """Return whether all runs with one value of a column have one value of the other, `name`."""
    both = frame.select(texts(frame[name]).alias("one"), texts(frame[other]).alias("other")).unique()
    return len(both) == both["other"].n_unique()


def _levels(column: pl.Series) -> list[Level]:
    """Return the levels of a factor: numbers if all are, otherwise texts."""
    found, known = texts(column), numbers(column)
    if known.null_count() or not known.is_finite().all():
        return [each if each is not None else "none" for each in found]
    return [int(each) if each == int(each) and abs(each) < 2**53 else each for each in known]


def _whys(frame: pl.DataFrame, state: str | None) -> list[str]:
    """Return for each run why it has no final value, "" if it has finished."""
    found = list(frame[WHY].fill_null("")) if WHY in frame.columns else [""] * len(frame)
    words = texts(frame[state]).str.to_lowercase().fill_null("unknown") if state else []
    for row, word in enumerate(words):
        if word in _FAILED:
            found[row] = "failed" if word in ("fail", "failed") else str(word)
        elif word not in _ENDED:
            found[row] = f"not finished ({word})"
    return found


def _blank(
    values: Mapping[str, pl.Series], whys: Sequence[str], cells: Mapping[tuple[Level, ...], Sequence[int]]
) -> set[int]:
    """Return the finished runs without a value of any metric."""
    rows = [row for own in cells.values() for row in own]
    return {row for row in rows if not whys[row] and all(each[row] is None for each in values.values())}


def _refuse_search(settings: RunsSettings, rows: RunRows) -> None:
    """Raise RunsError for the trials of a search, in which parameters vary beside those that are compared."""
    frame, compared = rows.frame, list(settings.factors)
    drawn = [name for name in frame.columns if name.startswith("params_") and name not in compared]
    if not {"number", "value"} <= set(frame.columns) or not drawn:
        return
    inside = frame.select(compared).n_unique() if compared else 1
    if frame.select([*compared, *drawn]).n_unique() > inside:
        ended = sum(not why for why in _whys(frame, _state_column(frame)))
        raise RunsError(
            f"{rows.label} has the trials of a search: the best of {ended} was chosen by the very number "
            "that a test would look at, and other parameters vary beside each that is compared. Run the best "
            "point and the default again with fresh seeds, and judge those runs"
        )


def _refuse(
    settings: RunsSettings,
    rows: RunRows,
    factors: Sequence[str],
    cells: Mapping[tuple[Level, ...], Sequence[int]],
    seed: str | None,
) -> None:
    """Raise RunsError with all reasons why these runs allow no verdict."""
    frame, label, faults = rows.frame, rows.label, list[str]()
    if rows.form != "lm-eval" and max(map(len, cells.values()), default=0) < 2:
        faults.append(
            f"{label} has one run of each of its {plural(len(cells), 'cell')}: nothing can be tested, and "
            f"the best of {len(cells)} is a selection. Run a few of them again with fresh seeds"
        )
    elif len(cells) < 2:
        faults.append(f"{label}: all runs have the same {listed(factors)}: nothing is compared")
    if settings.pair == "seed" and seed is None:
        faults.append(f'{label}: pair = "seed" needs a column of seeds')
    if settings.pair == "seed" and rows.form == "summary":
        faults.append(f"{label} is a summary: means without their runs cannot be paired")
    twice = _seeds_twice(frame, factors, cells, seed) if seed else []
    if twice:
        more = f" (and so in {plural(len(twice) - 1, 'more cell')})" if twice[1:] else ""
        steps = any(name.lower().lstrip("_") in STEPS for name in frame.columns)
        hint = (
            "if a row is a step of a run: --form curves"
            if steps
            else _hint_at_factors(frame, factors, seed) or "if they are different trainings: --seed ''"
        )
        faults.append(f"{label} has {twice[0]}{more}: which one counts? Remove the others; or {hint}")
    if faults:
        raise RunsError("\n".join(faults))


def _hint_at_factors(frame: pl.DataFrame, factors: Sequence[str], seed: str | None) -> str:
    """Return a hint at a column that tells runs of one cell and seed apart, such as `lr`; "" without one."""
    keys = [*factors, *([seed] if seed else [])]
    for name in frame.columns:
        levels = frame[name].n_unique()
        if (
            name not in keys
            and 1 < levels <= len(frame) // 2
            and not frame.select(*keys, name).is_duplicated().any()
        ):
            return f"if {name} is another factor: --factor {name}"
    return ""


def _seeds_twice(
    frame: pl.DataFrame,
    factors: Sequence[str],
    cells: Mapping[tuple[Level, ...], Sequence[int]],
    seed: str,
) -> list[str]:
    """Return the cells that have a seed more than once, such as `2 runs of arm=a with seed 0`."""
    found = list[str]()
    for key, own in cells.items():
        counts = Counter(texts(frame[list(own)][seed]).drop_nulls())
        if twice := next((each for each, n in counts.items() if n > 1), None):
            where = ", ".join(f"{judge_name(name)}={level}" for name, level in zip(factors, key, strict=True))
            found.append(f"{counts[twice]} runs of {where} with seed {twice}")
    return found


def _seeds(
    frame: pl.DataFrame, seed: str | None, cells: Mapping[tuple[Level, ...], Sequence[int]], label: str
) -> dict[int, int]:
    """Return the seed of each row: that of the file if all are whole numbers, else a number."""
    if seed is None:
        return {row: number for own in cells.values() for number, row in enumerate(own)}
    known, words = numbers(frame[seed]), texts(frame[seed])
    rows = [row for own in cells.values() for row in own]
    if empty := [row for row in rows if words[row] is None]:
        raise RunsError(f"{label}: {plural(len(empty), 'run')} have no {seed}")
    if all(known[row] is not None and known[row] >= 0 and known[row] == int(known[row]) for row in rows):
        return {row: int(known[row]) for row in rows}
    order = {word: number for number, word in enumerate(dict.fromkeys(words[row] for row in rows))}
    return {row: order[words[row]] for row in rows}


def _value(
    value: float | None, why: str, metric: str, run: str, label: str
) -> tuple[float | None, ValueStatus, str]:
    """Return the value of a run, its status, and why it has none. A value that is not finite has diverged."""
    if value is not None and not math.isfinite(value):
        return None, ValueStatus.DIVERGED, f"diverged: the {metric} of {run} is not a finite number"
    if why:
        return None, ValueStatus.FAILED, why
    if value is None:
        return None, ValueStatus.FAILED, f"without {metric} in {label}"
    return value, ValueStatus.DONE, ""


def _typical_sd(values: pl.Series, cells: Iterable[Sequence[int]]) -> float:
    """Return the median standard deviation of the cells; 0 if none varies."""
    finite = [
        [values[row] for row in own if values[row] is not None and math.isfinite(values[row])]
        for own in cells
    ]
    found = [sd for each in finite if len(each) > 1 and (sd := statistics.stdev(each))]
    return statistics.median(found) if found else 0.0


def _metric(name: str, given: RunMetric, values: pl.Series, sd: float, told: list[str]) -> Metric:
    """Return the metric with its digits: two of the median standard deviation, unless some are given."""
    decimals, known = given.decimals, [each for each in values if each is not None and math.isfinite(each)]
    if decimals is None:
        decimals = (
            max(0, min(8, 1 - math.floor(math.log10(sd))))
            if sd
            else min(4, max(map(decimals_of, known), default=4))
        )
    is_share = given.share
    if is_share is None:
        is_share = given.better == "higher" and bool(known) and min(known) >= 0 and max(known) <= 1
        if is_share:
            told.append(f"taken as a share: {name}, as all its values are from 0 to 1")
    return Metric(
        name=name,
        title=given.column or name,
        higher_is_better=None if given.better is None else given.better == "higher",
        decimals=decimals,
        is_share=is_share,
    )


def _sentences(
    settings: RunsSettings,
    cells: Mapping[tuple[Level, ...], Sequence[int]],
    left_out: Counter[str],
    rows: int,
) -> list[str]:
    """Return what no file can show, and what the reader of a verdict must know."""
    counts, found = sorted({len(own) for own in cells.values()}), list[str]()
    if left_out:
        words = listed(f"{n} {why}" for why, n in left_out.items())
        found.append(
            f"{left_out.total()} of {plural(rows, 'run')} left out ({words}), as failures that have nothing "
            "to do with results."
        )
    if settings.planned is not None:
        others = [n for n in counts if n != settings.planned]
        off = (
            f", and some cells have {listed(others)}: their verdicts depend on when runs ended"
            if others
            else ""
        )
        found.append(f"Planned: {plural(settings.planned, 'run')} of each cell{off}.")
    elif len(counts) > 1:
        found.append(
            f"Cells have {listed(counts)} runs: verdicts are valid only if these numbers were fixed before "
            "any result."
        )
    if settings.tries is not None:
        found.append(
            f"Chosen from {settings.tries} that were tried, as declared: p is corrected for this number."
        )
    else:
        found.append(
            "How many runs were made and not shown is unknown: p does not cover a choice among them."
        )
    return found
