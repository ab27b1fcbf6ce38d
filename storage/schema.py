"""The columns of the datasets, in the order of the files."""

from typing import Final

import polars as pl

SCHEMA_VERSION: Final = 1
STATUSES: Final = ("done", "failed", "pruned")

TRIALS: Final = pl.Schema(
    {
        "trial": pl.String(),
        "attempt": pl.Int32(),
        "study": pl.String(),
        "recipe": pl.String(),
        "recipe_id": pl.String(),
        "task": pl.String(),
        "seed": pl.Int64(),
        "status": pl.String(),
        "reason": pl.String(),
        "factors": pl.String(),
        "settings": pl.String(),
        "metrics": pl.List(pl.Struct({"name": pl.String(), "value": pl.Float64()})),
        "parameters": pl.Int64(),
        "flops": pl.Float64(),
        "epochs": pl.Int32(),
        "steps": pl.Int64(),
        "seconds": pl.Float64(),
        "peak_mib": pl.Float64(),
        "version": pl.String(),
        "commit": pl.String(),
        "device": pl.String(),
        "host": pl.String(),
        "started": pl.Datetime("us", "UTC"),
        "finished": pl.Datetime("us", "UTC"),
    }
)
NULLABLE: Final = ("reason", "commit")
METRICS: Final = pl.Schema(
    {
        "trial": pl.String(),
        "attempt": pl.Int32(),
        "study": pl.String(),
        "step": pl.Int64(),
        "epoch": pl.Int32(),
        "name": pl.String(),
        "value": pl.Float64(),
    }
)
OUTPUTS: Final = pl.Schema(
    {
        "trial": pl.String(),
        "attempt": pl.Int32(),
        "study": pl.String(),
        "beam": pl.Int32(),
        "length_penalty": pl.Float64(),
        "coverage_penalty": pl.Float64(),
        "line": pl.Int32(),
        "source": pl.String(),
        "reference": pl.String(),
        "output": pl.String(),
    }
)
SCHEMAS: Final = {
    "trials": TRIALS,
    "metrics": METRICS,
    "probes": METRICS,
    "tuning": METRICS,
    "outputs": OUTPUTS,
    "tuned_outputs": OUTPUTS,
}
MEASURED_LATER: Final = ("probes", "tuning")
_BY_STEP: Final = ("trial", "attempt", "step", "epoch", "name")
_BY_LINE: Final = ("trial", "attempt", "line")
SORT_KEYS: Final = {
    "trials": ("trial", "attempt"),
    "metrics": _BY_STEP,
    **dict.fromkeys(MEASURED_LATER, _BY_STEP),
    "outputs": _BY_LINE,
    "tuned_outputs": _BY_LINE,
}
