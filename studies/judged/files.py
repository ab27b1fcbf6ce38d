"""Readers of files with runs of other programs: each form becomes a frame with one row a run."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from glob import glob
from pathlib import Path

import polars as pl

from ...errors import ActivememError
from ..text.units import listed
from .keys import Form, RunsSettings

WHY = "why"
"""The column with the reason why a run is not finished, where the form of the file shows it."""

_HOLE = re.compile(r"\{(\w+)\}")
_WIDE = re.compile(r"(?:seed|run|trial|s)[ _-]?(\d+)", re.IGNORECASE)
_SPREADS: dict[str, str] = {
    **dict.fromkeys(("std", "sd", "stddev", "stdev"), "sd"),
    **dict.fromkeys(("se", "sem", "stderr", "ci"), ""),
}
_COUNTS = ("n", "runs", "seeds", "n_seeds", "num_seeds", "count")
STEPS = ("step", "epoch")
"""The names of columns of steps, in lower case."""

_DERIVED = ("mean", "average", "avg", "median", "std", "min", "max")
_ENDS = ("__MIN", "__MAX")


class RunsError(ActivememError):
    """Error for runs of another program that cannot be judged."""


@dataclass(frozen=True, kw_only=True)
class RunRows:
    """Runs as a frame with one row each, in the order of their files.

    `label` names the files, and `digest` is the SHA-256 of what they contain. `named` and `metrics` are the
    columns that the form of the files gives, `better` the directions that they state, `told` how they were
    read, and `limits` what they cannot show. `decimals` are those of means that stand for runs. `item_errors`
    has the column with the standard error over test items of a metric, which says nothing of trainings.
    `history` has the learning curves, if there are any: the number of the run, its `step`, and a column for
    each metric. `axis` says whether steps are steps or epochs.
    """

    frame: pl.DataFrame
    form: Form
    label: str
    digest: str
    named: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    better: Mapping[str, str] = field(default_factory=dict[str, str])
    told: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    decimals: int | None = None
    item_errors: Mapping[str, str] = field(default_factory=dict[str, str])
    history: pl.DataFrame | None = None
    axis: str = "step"


def read_runs(settings: RunsSettings, folder: Path, frame: pl.DataFrame | None = None) -> RunRows:
    """Read the files of `[runs]`, or a frame in their place. Raise RunsError if this is impossible."""
    if frame is not None:
        digest = hashlib.sha256(frame.write_csv().encode()).hexdigest()
        return _table(settings, frame, settings.file[0], digest)
    found = [pair for name in settings.file for pair in _matches(folder, name)]
    label = Path(settings.file[0]).name
    if len(found) > 1:
        label = f"{len(found)} files {label}" if len(settings.file) == 1 else f"{len(found)} files"
    digests = [hashlib.sha256(path.read_bytes()) for path, _ in found]
    digest = digests[0] if len(found) == 1 else hashlib.sha256(b"".join(each.digest() for each in digests))
    if all(path.suffix == ".json" for path, _ in found):
        return _lm_eval([path for path, _ in found], label, digest.hexdigest())
    if not _HOLE.search(settings.file[0]) and len(found) == 1:
        return _table(settings, _read_table(found[0][0]), label, digest.hexdigest())
    return _join_files(settings, found, label, digest.hexdigest())


def _matches(folder: Path, name: str) -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield the files that a name or a pattern stands for, with the values of its holes."""
    path = folder / name
    if path.is_dir():
        if files := sorted(path.glob("*results*.json")):
            yield from ((each, {}) for each in files)
            return
        raise RunsError(
            f"{name} is a folder: say what the names of its files mean, "
            f'as in "{path.name}/{{arm}}_seed{{seed}}.csv"'
        )
    if not _HOLE.search(name):
        if not path.is_file():
            raise RunsError(f"there is no file {name}")
        yield path, {}
        return
    pattern, wanted = _name_pattern(path.as_posix()), _HOLE.sub("*", path.as_posix())
    # a pattern may be absolute, which Path.glob refuses
    matches = [(each, pattern.fullmatch(each.as_posix())) for each in map(Path, sorted(glob(wanted)))]  # noqa: PTH207
    if not any(match for _, match in matches):
        raise RunsError(f"no file fits the pattern {name}")
    yield from ((each, match.groupdict()) for each, match in matches if match)


def _read_table(path: Path) -> pl.DataFrame:
    """Return a CSV or Parquet file with all columns of a CSV as texts."""
    try:
        if path.suffix in (".parquet", ".pq"):
            return pl.read_parquet(path)
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            header = file.readline()
        separator = max(",;\t", key=header.count)
        return pl.read_csv(path, infer_schema=False, separator=separator)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise RunsError(f"{path.name}: expected a CSV or Parquet file with a header ({reason})") from error


def numbers(column: pl.Series) -> pl.Series:
    """Return a column as numbers; null where it has none."""
    if column.dtype == pl.String:
        column = column.str.strip_chars().str.to_lowercase().replace({"": None, "infinity": "inf"})
    return column.cast(pl.Float64, strict=False)


def _is_numeric(column: pl.Series) -> bool:
    known = numbers(column)
    return known.null_count() < len(column) and not (known.is_null() & texts(column).is_not_null()).any()


def texts(column: pl.Series) -> pl.Series:
    """Return a column as texts; null where it is empty."""
    return column.cast(pl.String).str.strip_chars().replace("", None)


def _table(settings: RunsSettings, frame: pl.DataFrame, label: str, digest: str) -> RunRows:
    """Return the runs of one table, whose form is given or follows from its header."""
    frame = frame.select(name for name in frame.columns if name and not name.startswith("Unnamed: "))
    if frame.is_empty():
        raise RunsError(f"{label} has no rows")
    lower = {name.lower(): name for name in frame.columns}
    wide = [name for name in frame.columns if _WIDE.fullmatch(name)]
    charts = [name for name in frame.columns if " - " in name]
    form = settings.form
    if form is None:
        has_spread = lower.keys() & _SPREADS.keys() and "seed" not in lower
        form = "summary" if has_spread else "wide" if len(wide) > 1 else "rows"
        form = "curves" if form == "rows" and "step" in lower and charts else form
    rows = RunRows(frame=frame, form=form, label=label, digest=digest)
    if form == "wide":
        return _from_wide(settings, rows, wide)
    if form == "curves":
        return _from_chart(settings, rows, charts) if charts else _last_steps(settings, rows)
    return _from_summary(settings, rows, lower) if form == "summary" else rows


def _only_metric(settings: RunsSettings, label: str, why: str) -> str:
    if len(settings.metrics) != 1:
        raise RunsError(f"{label}: {why}: say its name and what is better, as in --metric accuracy:higher")
    return next(each.column or name for name, each in settings.metrics.items())


def _from_wide(settings: RunsSettings, rows: RunRows, seeds: Sequence[str]) -> RunRows:
    """Turn a column a seed into a row a seed. Columns of means are derived, and left out."""
    metric = _only_metric(settings, rows.label, f"{listed(seeds)} are one metric without a name")
    index = [name for name in rows.frame.columns if name not in seeds and name.lower() not in _DERIVED]
    derived = [name for name in rows.frame.columns if name.lower() in _DERIVED]
    long = rows.frame.unpivot(on=list(seeds), index=index, variable_name="seed", value_name=metric)
    long = long.with_columns(pl.col("seed").str.extract(r"(\d+)$"))
    told = [f"{listed(seeds)} are one metric, {metric}, of as many seeds"]
    told += (
        [f"{listed(derived)} {'is' if len(derived) == 1 else 'are'} derived, and left out"] if derived else []
    )
    return replace(rows, frame=long, metrics=(metric,), told=tuple(told))


def _from_summary(settings: RunsSettings, rows: RunRows, lower: Mapping[str, str]) -> RunRows:
    """Make runs that have the mean, the standard deviation and the number of each row.

    Means, variances and t tests of such runs are those of the true ones. Nothing else is, so whatever looks
    at single runs is refused.
    """
    spread = next((lower[each] for each in _SPREADS if each in lower), None)
    spread = spread or next((name for name in rows.frame.columns if name.lower().endswith("_stderr")), None)
    counted = next((lower[each] for each in _COUNTS if each in lower), None)
    if spread is None or counted is None:
        missing = "a column n" if spread else "a column std or sd"
        raise RunsError(
            f"{rows.label} is a summary without {missing}: mean, spread and n make a test possible"
        )
    kind = settings.spread or _SPREADS.get(spread.lower(), "")
    if not kind:
        raise RunsError(
            f"{rows.label}: is {spread} the standard deviation of runs or the standard error of their mean? "
            "Say --spread sd or --spread se. The error of test items is neither: it says nothing of other "
            "trainings"
        )
    others = [name for name in rows.frame.columns if name not in (spread, counted)]
    values = [name for name in others if _is_numeric(rows.frame[name])]
    named = [each.column or name for name, each in settings.metrics.items()]
    values = [name for name in values if name in named] if named else values
    if len(values) != 1:
        raise RunsError(
            f"{rows.label}: which column is the mean ({listed(values, 'or') if values else 'none'})?"
        )
    made: list[dict[str, object]] = []
    columns = zip(*(numbers(rows.frame[each]) for each in (values[0], spread, counted)), strict=True)
    for row, (middle, given, n) in zip(rows.frame.iter_rows(named=True), columns, strict=True):
        many = int(n) if n is not None and given is not None and n >= 2 else 1
        sd = (given or 0.0) * (math.sqrt(many) if kind == "se" else 1.0)
        far = sd * math.sqrt((many - 1) / (many - many % 2)) if many > 1 else 0.0
        offsets = [far, -far] * (many // 2) + [0.0] * (many % 2)
        kept = {name: row[name] for name in others if name != values[0]}
        made += [{**kept, values[0]: None if middle is None else middle + each} for each in offsets]
    digits = max(map(decimals_of, rows.frame[values[0]]), default=0)
    told = f"{spread} is the standard {'deviation of runs' if kind == 'sd' else 'error of the mean'}"
    limit = f"Tested from means, spreads and n that {rows.label} states: no run was seen."
    return replace(
        rows,
        frame=pl.DataFrame(made, infer_schema_length=None),
        decimals=digits,
        metrics=tuple(values),
        told=(told,),
        limits=(limit,),
    )


def _from_chart(settings: RunsSettings, rows: RunRows, columns: Sequence[str]) -> RunRows:
    """Read a chart exported from W&B: a column a run, each with copies for the ends of groups."""
    frame, curves = rows.frame, [name for name in columns if not name.endswith(_ENDS)]
    for name in curves:
        for end in _ENDS:
            if f"{name}{end}" in frame.columns and frame[name].ne_missing(frame[f"{name}{end}"]).any():
                raise RunsError(
                    f"{rows.label}: {name} is the mean of a group of runs, with an end in {name}{end}: "
                    "export the chart without groups"
                )
    if settings.names is None:
        example = curves[0].rpartition(" - ")[0]
        raise RunsError(
            f'{rows.label}: say what names of runs such as {example} mean: names = "{{arm}}-{{seed}}"'
        )
    pattern, step = (
        _name_pattern(settings.names),
        next(name for name in frame.columns if name.lower() == "step"),
    )
    found: list[tuple[dict[str, str], str, pl.DataFrame]] = []
    for name in curves:
        run, _, metric = name.rpartition(" - ")
        if (match := pattern.fullmatch(run)) is None:
            raise RunsError(f"{rows.label}: the run {run} does not fit the names {settings.names}")
        found.append(
            (match.groupdict(), metric, frame.select(step=numbers(frame[step]), value=numbers(frame[name])))
        )
    return _from_curves(replace(rows, named=_named(settings.names)), found)


def _from_curves(rows: RunRows, curves: Sequence[tuple[dict[str, str], str, pl.DataFrame]]) -> RunRows:
    """Return runs with the last value of each of their curves, which have what names a run, and a metric.

    A run with fewer steps than the longest one has not finished.
    """
    made: dict[tuple[str, ...], dict[str, object]] = {}
    ends: dict[str, dict[tuple[str, ...], float]] = {}
    for levels, metric, curve in curves:
        key, last = tuple(levels.values()), curve.drop_nulls().sort("step", maintain_order=True).tail(1)
        row = made.setdefault(key, {**levels})
        if len(last):
            row[metric] = last["value"][0]
            ends.setdefault(metric, {})[key] = last["step"][0]
    for by_run in ends.values():
        for key, step in by_run.items():
            if step < (longest := max(by_run.values())):
                made[key][WHY] = f"stopped at step {step:g} of {longest:g}"
    frame = pl.DataFrame(list(made.values()), infer_schema_length=None)
    numbers_of = {key: number for number, key in enumerate(made)}
    history = [
        curve.drop_nulls().select(
            "step", pl.col("value").alias(metric), run=numbers_of[tuple(levels.values())]
        )
        for levels, metric, curve in curves
    ]
    told = ("of each curve, the last step counts",)
    return replace(
        rows,
        frame=frame,
        form="curves",
        metrics=tuple(ends),
        told=told,
        history=pl.concat(history, how="diagonal_relaxed"),
    )


def _last_steps(settings: RunsSettings, rows: RunRows) -> RunRows:
    """Keep the last step of each run in a table with a row a step."""
    frame = rows.frame
    step = next((name for name in frame.columns if name.lower().lstrip("_") in STEPS), None)
    seed = settings.seed or next((name for name in frame.columns if name.lower() == "seed"), None)
    keys = [*settings.factors, *([seed] if seed else [])]
    if step is None or not settings.factors:
        raise RunsError(f"{rows.label}: curves need a column of steps, and factors that name the runs")
    ordered = frame.with_columns(numbers(frame[step]).alias(step)).sort(step, maintain_order=True)
    last = ordered.group_by(keys, maintain_order=True).last()
    longest = last[step].max()
    why = pl.when(pl.col(step) < longest).then(pl.format(f"stopped at step {{}} of {longest:g}", step))
    named = last.select(keys).with_row_index("run")
    return replace(
        rows,
        frame=last.with_columns(why.alias(WHY)),
        told=("of each run, the last step counts",),
        history=ordered.join(named, on=keys, nulls_equal=True).with_columns(pl.col(step).alias("step")),
        axis=step.lower().lstrip("_"),
    )


def _name_pattern(names: str) -> re.Pattern[str]:
    parts = _HOLE.split(names)
    return re.compile(
        "".join(f"(?P<{part}>[^/]+?)" if at % 2 else re.escape(part) for at, part in enumerate(parts))
    )


def _named(pattern: str) -> tuple[str, ...]:
    return tuple(name for name in _HOLE.findall(pattern) if name not in ("seed", "metric", "id"))


def _join_files(
    settings: RunsSettings, found: Sequence[tuple[Path, dict[str, str]]], label: str, digest: str
) -> RunRows:
    """Return the runs of several files: a curve each, or rows with the holes of their names as columns."""
    tables = [(_read_table(path), holes) for path, holes in found]
    first = {name.lower(): name for name in tables[0][0].columns}
    named = _named(settings.file[0])
    rows = RunRows(frame=pl.DataFrame(), form="rows", label=label, digest=digest, named=named)
    if not {"step", "value"} <= first.keys():
        frames = [
            frame.with_columns(pl.lit(value).alias(name) for name, value in holes.items())
            for frame, holes in tables
        ]
        return replace(rows, frame=pl.concat(frames, how="diagonal_relaxed"))
    found_curves = [
        (
            {name: value for name, value in holes.items() if name != "metric"},
            holes.get("metric") or _only_metric(settings, label, "its curves have no metric in their names"),
            frame.select(step=numbers(frame[first["step"]]), value=numbers(frame[first["value"]])),
        )
        for frame, holes in tables
    ]
    return _from_curves(rows, found_curves)


def _lm_eval(paths: Sequence[Path], label: str, digest: str) -> RunRows:
    """Return the results of lm-evaluation-harness: a row for each model and task."""
    made: list[dict[str, object]] = []
    better: dict[str, str] = {}
    for path in paths:
        try:
            page = json.loads(path.read_text(encoding="utf-8"))
            model, results = page.get("model_name") or path.stem, page["results"]
        except (ValueError, KeyError, AttributeError) as error:
            raise RunsError(f"{path.name}: expected results of lm-evaluation-harness") from error
        for task, scores in results.items():
            row: dict[str, object] = {"model": str(model), "task": task}
            for key, value in scores.items():
                metric = key.partition(",")[0]
                if isinstance(value, int | float) and metric != "alias":
                    row[metric] = value
            made.append(row)
            for metric, higher in page.get("higher_is_better", {}).get(task, {}).items():
                better[metric] = "higher" if higher else "lower"
    limit = (
        "Each model was trained once: the stderr of these files is that of test items. It says whether two "
        "checkpoints differ on such items, and nothing of other trainings of the same method."
    )
    frame = pl.DataFrame(made, infer_schema_length=None)
    return RunRows(
        frame=frame,
        form="lm-eval",
        label=label,
        digest=digest,
        named=("model", "task"),
        metrics=tuple(name for name in frame.columns if name in better),
        better=better,
        limits=(limit,),
        item_errors={name: f"{name}_stderr" for name in better if f"{name}_stderr" in frame.columns},
    )


def decimals_of(value: object) -> int:
    """Return how many decimals a number is written with; at most 12."""
    if value is None:
        return 0
    text = value.strip().lower() if isinstance(value, str) else repr(value)
    mantissa, _, exponent = text.partition("e")
    point = len(mantissa.partition(".")[2])
    try:
        return min(12, max(0, point - int(exponent or 0)))
    except ValueError:
        return 0
