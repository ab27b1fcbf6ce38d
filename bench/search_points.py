"""What a search costs besides its trainings: asking for a point and telling its end, up to 10,000 points.

A search of a conditional space of all kinds of dimensions runs against a store on disk, in which a row and
metrics of each point are written as a worker would. What is timed, in seconds of one CPU, is all that the
driver does for a point: proposing, looking for what others have done, reading, telling, merging files.
Each number is the mean over the last 256 points, of which one has files merged. The last column is a search
that begins anew on what is there, as after a kill, up to its first point.

Run: python bench/search_points.py [POINTS [SAMPLER …]]
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from activemem.engine.core.events import NOBODY
from activemem.engine.run.driver import ENDED_BETWEEN_LOOKS, MERGED_TOGETHER
from activemem.engine.run.search.optuna_search import OptunaSearch
from activemem.engine.trial.outcome import Job, Totals, trial_row
from activemem.storage import MetricRow, Store
from activemem.studies.study import Study, load_study

POINTS = 10_000
LAST = 256
SAMPLERS = ("random", "quasi_random", "evolution", "gp_trees", "tpe")

STUDY = """
[study]
name = "points"
title = "A search of many points"
[model]
recipe = "{count} * ({mixer} >> ff({filter}))"
d_model = 8
[task]
name = "sort"
[train]
optimizer = { name = "adam", lr = "{rate}" }
batch_size = 1
epochs = 1
steps_per_epoch = 1
lengths = [1, 8]
[search]
trials = 1_000_000
metric = "dev_accuracy"
direction = "max"
[search.space]
count = "integer(1, 4)"
mixer = "choice(sa(heads={heads}), conv(k={kernel}) + conv(k={other}), gru)"
kernel = "integer(2, 8, step=2)"
other = "integer(2, 64, log=true)"
heads = "integer(1, 4)"
filter = "integer(8, 128)"
rate = "real(1e-4, 1e-1, log=true)"
"""


def train(store: Store, jobs: Sequence[Job]) -> None:
    """Store what trainings would: a worth that rises with the rate up to 0.01, and with the filter."""
    now = datetime.now(UTC)
    for job in jobs:
        levels = job.trial.levels
        worth = float(levels["filter"]) / 128 - abs(math.log10(float(levels["rate"])) + 2)
        row = trial_row(job, Totals(), {"dev_accuracy": worth}, status="done", reason=None, started=now)
        store.write(row, [MetricRow(step=1, epoch=1, name="dev_accuracy", value=worth)])


def search(study: Study, store: Store, points: int) -> tuple[list[float], float]:
    """The seconds of each point, and those of a search that begins anew behind them."""
    asked, seconds = OptunaSearch(study, store, "bench", NOBODY), list[float]()
    for number in range(1, points + 1):
        begun = time.process_time()
        cohort = asked.next_cohort()
        paused = time.process_time()
        assert cohort is not None, "a space of infinitely many points"
        name, jobs = cohort
        train(store, jobs)
        resumed = time.process_time()
        asked.cohort_ended(name, completed=True)
        if number % ENDED_BETWEEN_LOOKS == 0:
            store.merge_ended(study.name, at_least=MERGED_TOGETHER)
        seconds.append(time.process_time() - resumed + paused - begun)
    begun = time.process_time()
    OptunaSearch(study, store, "anew", NOBODY).next_cohort()
    return seconds, time.process_time() - begun


def main() -> None:
    """Print a table of milliseconds a point."""
    points = int(sys.argv[1]) if len(sys.argv) > 1 else POINTS
    ends = [10**power for power in range(2, 9) if 10**power <= points]
    print(f"{'ms a point, after':<20}{''.join(f'{end:>10,}' for end in ends)}{'anew, s':>10}")
    for sampler in sys.argv[2:] or SAMPLERS:
        study = load_study(STUDY, [f"search.sampler={sampler}"])
        with tempfile.TemporaryDirectory() as folder:
            seconds, anew = search(study, Store(Path(folder) / "results"), points)
        cells = "".join(f"{1000 * fmean(seconds[max(0, end - LAST) : end]):>10.1f}" for end in ends)
        print(f"{sampler:<20}{cells}{anew:>10.1f}", flush=True)


if __name__ == "__main__":
    main()
