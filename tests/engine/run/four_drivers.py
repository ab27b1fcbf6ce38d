"""Four drivers of one study, of which two are killed during a trial and restarted."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from ...study_texts import study_text
from ...waiting import wait_for

STUDY = study_text(
    study={"name": "shared", "title": "Trials of some tenths of a second"},
    model={"recipe": "{mixer} >> ff(32)", "d_model": 32},
    train={"optimizer": {"name": "adam", "lr": 0.01}, "batch_size": 16, "epochs": 4, "steps_per_epoch": 8},
    factors={"mixer": ["conv(k=5)", "conv(k=3)"], "task": ["reverse", "not"], "seed": [0, 4, 6]},
    table=[{"name": "reached", "rows": "mixer", "columns": "task", "value": "max_length"}],
)
TRIALS = 12  # of these seeds each of four shares has three


def run_four_drivers(folder, study, *store, shares=False):
    """Run a study in a folder to its end; each trial and each of its epochs must be trained once.

    A killed driver's trials that were not reported as ended may be trained again, from their last
    checkpoints.
    """
    (folder / "shared.toml").write_text(study, encoding="utf-8")
    command = [sys.executable, str(Path(__file__).with_name("forked_drivers.py")), *store]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as drivers:

        def start(name):
            share = f" {'abcd'.index(name[0]) + 1}/4" if shares else ""
            drivers.stdin.write(f"{name}{share}\n")
            drivers.stdin.flush()
            return int(drivers.stdout.readline())

        started = {name: start(name) for name in ("a", "b", "c", "d")}
        for name in ("a", "b"):
            wait_for(lambda name=name: _has_trained(folder, name))
            os.kill(started[name], signal.SIGKILL)
            start(f"{name}-again")
        well, _ = drivers.communicate(timeout=600)
    events = [line for log in folder.glob("*.log") for line in _told(folder, log.stem)]
    assert {"c", "d", "a-again", "b-again"} <= set(well.split()), events
    ended = Counter(line[1] for line in events if line[0] == "ended")
    assert set(ended.values()) == {1}, ended
    starts = Counter(line[1] for line in events if line[0] == "started")
    assert len(starts) == TRIALS
    killed = [line[:2] for name in ("a", "b") for line in _told(folder, name)]
    lost = [line for line in killed if line[0] == "started" and ["ended", line[1]] not in killed]
    # a driver may be killed after it has stored a trial's row, and before it tells of it
    assert starts.keys() - ended.keys() <= {trial for _, trial in lost}
    assert sum(starts.values()) <= TRIALS + len(lost)  # short trials that end together are told together
    epochs = Counter((line[1], line[2]) for line in events if line[0] == "epoch")
    assert all(count <= starts[trial] for (trial, _), count in epochs.items())


def _has_trained(folder, name):
    """Return whether a driver has trained an epoch, or cannot since all trials have ended."""
    logs = [line[0] for log in folder.glob("*.log") for line in _told(folder, log.stem)]
    return logs.count("ended") == TRIALS or any(line[0] == "epoch" for line in _told(folder, name))


def _told(folder, name):
    """Return a driver's events as lists of words."""
    log = folder / f"{name}.log"
    return [line.split() for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []
