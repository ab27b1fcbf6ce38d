"""Time to build a table of 10,000 trials; the targets are below 0.3 s warm and below 2 s cold.

Run: python bench/tables.py. The store is synthetic and compacted: each trial has 100 epochs of 5 metrics.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from activemem.reporting.kinds import build_table
from activemem.reporting.tables.render import render
from activemem.storage import Store
from activemem.storage.checksums import encode
from activemem.storage.place import FolderPlace, new_compacted_path
from activemem.storage.rows import METRIC_COLUMNS, TRIALS
from activemem.studies.study import Study, load_study

NAMES = ("max_length", "accuracy", "loss", "length", "tokens_per_s")
EPOCHS, REPEATS, WARM_S, COLD_S = 100, 5, 0.3, 2.0
STUDY = f"""\
[study]
name = "wide"
title = "Ten thousand trials"

[model]
recipe = "2 * ({{mixer}} >> ff(8))"
d_model = 8

[task]
name = "{{task}}"

[train]
optimizer = {{ name = "adam", lr = 1e-3 }}
batch_size = 4
epochs = {EPOCHS}
steps_per_epoch = 2
curriculum = {{ start = 5 }}

[factors]
mixer = {json.dumps([f"conv(k={k})" for k in range(1, 41)])}
task = ["reverse", "sort", "addition", "multiply", "not"]
seed = {list(range(50))}

[[table]]
name = "all"
rows = "mixer"
columns = "task"
value = {json.dumps(NAMES)}
"""


def fill_store(folder: Path, study: Study) -> None:
    """Write a compacted store with all trials of the study."""
    values = pl.DataFrame({"trial": [trial.id for trial in study.trials]})
    values = values.with_columns(number=pl.int_range(pl.len()).cast(pl.Float64))
    place = FolderPlace(folder)
    for name, frame, schema in (
        ("trials", trial_rows(study, values), TRIALS),
        ("metrics", metric_rows(values), METRIC_COLUMNS),
    ):
        columns = [pl.col(each).cast(kind) for each, kind in schema.items()]
        data = encode(frame.with_columns(attempt=0, study=pl.lit(study.name)).sort("trial").select(columns))
        place.put(new_compacted_path(folder / name / study.name), data)
    Store(folder).records.save(study.name, {"text": STUDY, "overrides": [], "path": None})


VERSIONS = (
    "torch_version",
    "cuda_version",
    "gpus",
    "python_version",
    "continued_from",
    "continued_after",
    "packed_steps",
)
"""The columns of versions, which are empty in synthetic rows."""


def trial_rows(study: Study, values: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each trial."""
    settings = [trial.settings for trial in study.trials]
    finals = (
        pl.struct(name=pl.lit(name), value=(pl.col("number") * (7 + place)) % 97)
        for place, name in enumerate(NAMES)
    )
    now = pl.lit(datetime.now(UTC))
    texts = {"recipe_id": "00000000", "status": "done", "version": "0.1.0", "device": "none", "host": "none"}
    numbers = {"parameters": 1, "flops": 1, "epochs": EPOCHS, "steps": EPOCHS, "seconds": 1, "peak_mib": 1}
    return values.with_columns(
        pl.Series("seed", [each.seed for each in settings]),
        pl.Series("task", [each.task.name for each in settings]),
        pl.Series("recipe", [each.model.recipe for each in settings]),
        pl.Series("factors", [json.dumps(dict(trial.levels)) for trial in study.trials]),
        pl.Series("settings", [each.model_dump_json() for each in settings]),
        *(pl.lit(value).alias(name) for name, value in (texts | numbers).items()),
        *(pl.lit(None).alias(name) for name in ("reason", "commit", *VERSIONS)),
        metrics=pl.concat_list(*finals),
        started=now,
        finished=now,
    )


def metric_rows(values: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each epoch and metric of each trial."""
    steps = pl.DataFrame({"epoch": range(1, EPOCHS + 1)}).join(pl.DataFrame({"name": NAMES}), how="cross")
    return values.join(steps, how="cross").with_columns(
        step=2 * pl.col("epoch"), value=(pl.col("number") * pl.col("epoch") * 0.001).sin()
    )


def min_seconds(what: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the shortest time of a call in seconds, which other processes disturb least."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        what()
        times.append(time.perf_counter() - begin)
    return min(times)


PEAK = """\
import atexit, sys
from activemem.cli.app import main
atexit.register(lambda: sys.stderr.write(open("/proc/self/status").read()))
main()
"""
"""Runs a command, and writes what Linux knows of its process to standard error."""


def peak_mib(arguments: Sequence[str]) -> float:
    """Return the peak memory of a command in MiB; NaN where the system does not tell it."""
    if not Path("/proc/self/status").is_file():
        return math.nan
    command = [sys.executable, "-c", PEAK, *arguments]
    status = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    """Create a store, and print the times of its table and of reading all epochs."""
    study = load_study(STUDY)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill_store(folder, study)
        store = Store(folder)
        command = [sys.executable, "-m", "activemem", "table", "render", "wide", "--results", name]
        cold = min_seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), 3)
        peak = peak_mib(command[3:])
        warm = min_seconds(lambda: render(build_table(study, study.tables[0], store.trials()), "rich"))
        made = build_table(study, study.tables[0], store.trials())
        assert all(cell.count == 50 for row in made.cells for cell in row), (
            "expected every trial in the table"
        )
        every = min_seconds(store.metrics, 1)
        megabytes = sum(path.stat().st_size for path in folder.rglob("*.parquet")) / 1e6
    count = len(study.trials)
    print(f"{count:,} trials × {EPOCHS} epochs × {len(NAMES)} metrics, {megabytes:.0f} MB")
    met = warm < WARM_S and cold < COLD_S
    print(f"  table, in a process that has it loaded   {warm:5.2f} s   target below {WARM_S} s")
    print(f"  table, as a command of its own           {cold:5.2f} s   target below {COLD_S} s")
    print(f"  peak memory of that command              {peak:4.0f} MiB")
    print(f"  every epoch of every trial, read once    {every:5.2f} s   no table needs it")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
