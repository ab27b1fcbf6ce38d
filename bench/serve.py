"""Response times of `activemem serve` with 1,000 and 5,000 trials, and the delay of its live updates.

Run: python bench/serve.py, some minutes. The large stores are synthetic and compacted: each trial has 20
epochs of 4 metrics.
"""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from activemem.storage import MetricRow, Store, TrialRow
from activemem.studies.resolve.trial import Trial, settings_to_json
from activemem.studies.study import Study, load_study

SIZES, EPOCHS, REPEATS, POLL_S = (1000, 5000), 20, 5, 0.5
NAMES = ("loss", "accuracy", "max_length", "tokens_per_s")
STUDY = """\
[study]
name = "wide"
title = "Many trials"

[model]
recipe = "2 * ({mixer} >> ff(8))"
d_model = 8

[task]
name = "{task}"

[train]
optimizer = { name = "adam", lr = 1e-3 }
batch_size = 4
epochs = EPOCHS
steps_per_epoch = STEPS
curriculum = { start = 5 }

[factors]
mixer = MIXERS
task = ["reverse", "sort", "addition", "multiply", "not"]
seed = [0, 1]

[[table]]
name = "all"
rows = "mixer"
columns = "task"
value = "max_length"
"""


def main() -> None:
    """Print a line for each store, and one for a running study."""
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            measure_pages(Path(folder) / str(size), size)
        measure_updates(Path(folder) / "running")


def measure_pages(folder: Path, size: int) -> None:
    """Measure times and sizes of pages, and the server's memory."""
    study = wide(mixers=size // 10, steps=2)
    fill(Store(folder), study)
    with serving(folder) as server:
        first, _ = server.timed("/")
        cold, bytes_ = server.timed("/study/wide")
        warm = min(server.timed("/study/wide")[0] for _ in range(REPEATS))
        print(
            f"{len(study.trials):,} trials: first page {first:.2f} s, study page {cold:.2f} s, "
            f"again {warm:.3f} s, {bytes_ / 1000:,.0f} kB, memory {server.peak_mib():,.0f} MiB"
        )


def measure_updates(folder: Path) -> None:
    """Measure the delay between a new row and its display on an open page during a study."""
    study = wide(mixers=2, steps=60)
    path = folder / "wide.toml"
    path.parent.mkdir()
    path.write_text(study.document.text, encoding="utf-8")
    Store(folder / "results").records.save(study.name, {"text": study.document.text, "overrides": []})
    with serving(folder / "results") as server:
        words = ["study", "run", str(path), "--local", "--results", str(folder / "results")]
        run = subprocess.Popen([sys.executable, "-m", "activemem", *words], stderr=subprocess.DEVNULL)
        heard = list(server.follow("/study/wide", len(study.trials), folder / "results"))
        run.wait()
        changes, waits = len(heard), sorted(wait for wait in heard if wait is not None)
        print(
            f"a study of {len(study.trials)} trials trains: the page changed {changes} times, "
            f"a trial's end {waits[len(waits) // 2]:.2f} s after its row (at most {waits[-1]:.2f} s), "
            f"memory {server.peak_mib():,.0f} MiB"
        )


def wide(*, mixers: int, steps: int) -> Study:
    """Return a study with this many recipes on five tasks with two seeds."""
    kernels = json.dumps([f"conv(k={k})" for k in range(1, mixers + 1)])
    text = STUDY.replace("MIXERS", kernels).replace("EPOCHS", str(EPOCHS)).replace("STEPS", str(steps))
    return load_study(text)


def fill(store: Store, study: Study) -> None:
    """Store the rows of a run in which every tenth trial failed."""
    store.records.save(study.name, {"text": study.document.text, "overrides": []})
    for number, trial in enumerate(study.trials):
        store.write(trial_row(trial, number), courses(number))
    store.upkeep.compact()


def courses(number: int) -> list[MetricRow]:
    """Return a row for each metric after each epoch."""
    return [
        MetricRow(step=2 * epoch, epoch=epoch, name=name, value=(number % 7 + 1) / epoch)
        for epoch in range(1, EPOCHS + 1)
        for name in NAMES
    ]


def trial_row(trial: Trial, number: int) -> TrialRow:
    """Return the row of an ended trial."""
    started = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
    failed = number % 10 == 9
    return TrialRow(
        trial=trial.id,
        attempt=0,
        study=trial.study,
        recipe=trial.settings.model.recipe,
        recipe_id="00000000",
        task=trial.settings.task.name,
        seed=trial.settings.seed,
        status="failed" if failed else "done",
        reason="no reason\nTraceback " * 20 if failed else None,
        factors=json.dumps(dict(trial.levels)),
        settings=settings_to_json(trial.settings),
        metrics=() if failed else tuple((name, 0.5) for name in NAMES),
        parameters=100,
        flops=1e6,
        epochs=EPOCHS,
        steps=2 * EPOCHS,
        seconds=1.5,
        peak_mib=1.0,
        version="0.1.0",
        commit=None,
        device="cpu",
        host="here",
        started=started,
        finished=started + timedelta(seconds=2),
    )


@dataclass(frozen=True)
class Server:
    """A server in its own process."""

    port: int
    pid: int

    def timed(self, path: str) -> tuple[float, int]:
        """Return the seconds until a page is complete, and its size in bytes."""
        began = time.perf_counter()
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            size = len(answer.read())
        assert answer.status == 200, f"expected {path}, got status {answer.status}"
        return time.perf_counter() - began, size

    def peak_mib(self) -> float:
        """Return the peak memory of the process."""
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text(encoding="ascii"))
        assert found is not None
        return int(found[1]) / 1024

    def follow(self, path: str, trials: int, results: Path) -> Iterator[float | None]:
        """Ask for a page until all trials are done, as its script does, but more often.

        Yield, for each change of the page, the age of the newest row, or None if no further trial has ended.
        """
        told, version = 0, ""
        while told < trials:
            with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)) as connection:
                connection.request("GET", path, headers={"If-None-Match": version})
                answer = connection.getresponse()
                page = answer.read().decode()
            if answer.status == 200:
                version = answer.getheader("ETag", "")
                done = re.search(r"(\d+) of \d+ trials done", page)
                count = int(done[1]) if done else told
                yield time.time() - newest(results) if count > told else None
                told = max(told, count)
            time.sleep(POLL_S)


def newest(results: Path) -> float:
    """Return the time of the newest row of a trial."""
    return max(path.stat().st_mtime for path in (results / "trials").rglob("*.parquet"))


@contextmanager
def serving(results: Path) -> Iterator[Server]:
    """Yield a server of the store in a folder on a free port."""
    words = ["serve", "--port", "0", "--results", str(results)]
    process = subprocess.Popen(
        [sys.executable, "-m", "activemem", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        found = re.search(r":(\d+)/", process.stdout.readline())
        assert found is not None, "expected an address"
        yield Server(port=int(found[1]), pid=process.pid)
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
