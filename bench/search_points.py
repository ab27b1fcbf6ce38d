"""The driver's time per point of a search, for searches of up to 10,000 points.

Run: python bench/search_points.py [POINTS [SAMPLER …]]

A search of a conditional space, with dimensions of all kinds, continues with a store on disk that already has
that many random points in merged files. Rows and metrics of further points are written as by a worker. The
time is CPU seconds of the driver's whole work for a point: proposing, reading, reporting to Optuna, and
merging files. Each number is the mean over 256 points, one of which merges files. The other columns are the
time from a restart to the first point.
"""

from __future__ import annotations

import math
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from random import Random

from activemem.engine.core.events import ENDED_BETWEEN_LOOKS, NOBODY
from activemem.engine.core.run import Run
from activemem.engine.run.driver import MERGED_TOGETHER
from activemem.engine.run.search.conformance import STUDY
from activemem.engine.run.search.samplers.search_observations import distribution, draw
from activemem.engine.run.search.search import Search
from activemem.engine.trial.outcome import trial_row
from activemem.storage import AttemptRows, MetricRow, Store
from activemem.studies.resolve.trial import Trial
from activemem.studies.study import Study, load_study

POINTS = 10_000
TIMED = 256
SAMPLERS = ("random", "evolution", "gp_trees", "nsga2", "grid", "tpe")

WIDER = (
    "search.trials=100000",
    "model.recipe={count} * ({mixer} >> ff({filter}))",
    'search.space.mixer="choice(sa(heads={heads}), conv(k={kernel}) + conv(k={other}), gru)"',
    'search.space.count="integer(1, 4)"',
    'search.space.filter="integer(8, 128)"',
)
"""Changes to the search of the conformance suite that allow this many points."""

SPACES = {
    "grid": (STUDY, (*WIDER, 'search.space.rate="choice(0.0001, 0.001, 0.01, 0.1)"')),
}
"""The searches for samplers that need finitely many points."""


def load(sampler: str) -> Study:
    """Return the search study on which a sampler is timed."""
    text, changes = SPACES.get(sampler, (STUDY, WIDER))
    return load_study(text, [*changes, f"search.sampler={sampler}"])


def outcome(trial: Trial, attempt: int = 0) -> AttemptRows:
    """Return the row of a trial whose loss depends on the rate and the filter."""
    levels = trial.levels
    worth = float(levels["filter"]) / 128 - abs(math.log10(float(levels["rate"])) + 2)
    run = Run(attempt=attempt, status="done", metrics={"dev_accuracy": worth}, epoch=1)
    row = trial_row(trial, run, started=datetime.now(UTC))
    return AttemptRows(row, [MetricRow(step=1, epoch=1, name="dev_accuracy", value=worth)])


def fill(study: Study, store: Store, count: int) -> None:
    """Store random points of a study."""
    space = {name: distribution(each) for name, each in study.dimensions.items()}
    rng = Random(count)
    points = (study.search.choose(lambda name, _: draw(space[name], rng)) for _ in range(count))
    store.write_together([outcome(study.search.trial_of(values)) for values in points])
    store.upkeep.compact()


def search(study: Study, store: Store) -> tuple[float, float]:
    """Return the seconds per point, and the seconds until the first point."""
    begun = time.process_time()
    asked = Search(study, store, "bench", NOBODY)
    job = asked.next_job()
    first = time.process_time() - begun
    seconds = 0.0
    for number in range(1, TIMED + 1):
        assert job is not None, "a space of infinitely many points"
        found = outcome(job.trial, job.attempt)
        store.write(found.trial, found.metrics)
        begun = time.process_time()
        asked.job_ended(job, paused_at=None)
        if number % ENDED_BETWEEN_LOOKS == 0:
            store.upkeep.merge_ended(study.name, at_least=MERGED_TOGETHER)
        job = asked.next_job()
        seconds += time.process_time() - begun
    return seconds / TIMED, first


def main() -> None:
    """Print a table of milliseconds per point."""
    points = int(sys.argv[1]) if len(sys.argv) > 1 else POINTS
    ends = [10**power for power in range(3, 9) if 10**power <= points]
    samplers = sys.argv[2:] or SAMPLERS
    columns: dict[str, list[str]] = {sampler: [] for sampler in samplers}
    with tempfile.TemporaryDirectory() as folder:
        for end, sampler in product(ends, samplers):
            study = load(sampler)
            filled = Path(folder) / f"{end} {sampler if sampler in SPACES else ''}"
            if not filled.exists():
                fill(study, Store(filled), end - TIMED)
            copy = shutil.copytree(filled, filled.with_name("copy"))
            point, first = search(study, Store(copy))
            shutil.rmtree(copy)
            columns[sampler] += [f"{1000 * point:.1f}", f"{first:.1f}"]
            print(f"{sampler}, {end:,} points: {1000 * point:.1f} ms a point", file=sys.stderr)
    head = "".join(f"{f'{end:,} points':>16}{'begins, s':>12}" for end in ends)
    print(f"{'ms a point, up to':<20}{head}")
    for sampler, cells in columns.items():
        shown = (f"{cell:>{12 if number % 2 else 16}}" for number, cell in enumerate(cells))
        print(f"{sampler:<20}{''.join(shown)}")


if __name__ == "__main__":
    main()
