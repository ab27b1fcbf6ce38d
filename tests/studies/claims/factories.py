"""A small study for claims, with simulated outcomes."""

import platform
from datetime import UTC, datetime

import polars as pl

from activemem import Study, load_study

from ...study_texts import study_text

STUDY_TEXT = study_text(
    model={"d_model": "{width}"},
    factors={
        "mixer": ["sa", "conv(k=3)", "conv(k=20)", "sa + conv(k=3)"],
        "task": ["reverse", "not", "addition"],
        "width": [8],
        "seed": [0, 1, 2],
    },
)

WHEN = datetime(2026, 11, 28, 12, tzinfo=UTC)


def study_with_claims(*holds, text=STUDY_TEXT, overrides=(), **keys):
    """Return the study with a claim for each of these statements, named by number."""
    more = "".join(f"{key} = {value!r}\n" for key, value in keys.items())
    claims = "".join(
        f'\n[[claim]]\nname = "{number}"\nholds = """{each}"""\n{more}' for number, each in enumerate(holds)
    )
    return load_study(text + claims, overrides)


def make_outcomes(study: Study, found, *, metric="max_length", by=("mixer", "task")):
    """Return outcomes; `found` has values or "failed: REASON" by mixer and task, one per seed.

    A value is a number, or a dictionary of numbers by metric.
    """
    rows = []
    for trial in study.cells:
        ends = found.get(tuple(trial.levels[factor] for factor in by), ())
        place = (*study.seeds, *study.later_seeds).index(trial.levels["seed"])
        end = ends[place] if place < len(ends) else None
        if end is None:
            continue
        status, _, reason = end.partition(": ") if isinstance(end, str) else ("done", "", None)
        measured = {} if isinstance(end, str) else end if isinstance(end, dict) else {metric: end}
        metrics = [{"name": name, "value": float(value)} for name, value in measured.items()]
        rows.append(
            (
                trial.id,
                trial.settings.seed,
                "sa",
                trial.settings.task.name,
                status,
                reason,
                metrics,
                len(trial.levels["mixer"]),
                1.0,
                1.0,
                1.0,
            )
        )
    schema = {
        "trial": pl.String,
        "seed": pl.Int64,
        "recipe": pl.String,
        "task": pl.String,
        "status": pl.String,
        "reason": pl.String,
        "metrics": pl.List(pl.Struct({"name": pl.String, "value": pl.Float64})),
        "parameters": pl.Int64,
        "flops": pl.Float64,
        "seconds": pl.Float64,
        "peak_mib": pl.Float64,
    }
    machine = {"host": platform.node(), "device": "cpu", "recipe_id": "", "finished": WHEN}
    found = pl.DataFrame(rows, schema=schema, orient="row")
    machine |= {"study": study.name, "steps": 1}
    return found.with_columns(**{name: pl.lit(value) for name, value in machine.items()})
