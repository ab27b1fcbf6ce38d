"""A world: one study in one store, the drivers that run it, and what was done to its files."""

import math
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from activemem.studies.study import load_study

from ..study_texts import study_text
from .disk import Disk
from .drivers import NOTHING, Driver, Fate, start

NAME = "chaos"
MIXERS, TASKS, SEEDS = ("conv(k=3)", "conv(k=5)"), ("reverse", "not"), range(10)
TEXT = study_text(
    study={"name": NAME, "title": "Forty trials of a tenth of a second", "keep_weights": True},
    model={"recipe": "{mixer} >> ff(16)", "d_model": 16},
    train={"optimizer": {"name": "adam", "lr": 0.01}, "batch_size": 8, "epochs": 2, "steps_per_epoch": 3},
    factors={"mixer": list(MIXERS), "task": list(TASKS), "seed": list(SEEDS)},
    table=[{"name": "reached", "rows": "mixer", "columns": "task", "value": "loss"}],
)
IDS = {
    (trial.levels["mixer"], trial.levels["task"], str(trial.settings.seed)): trial.id
    for trial in load_study(TEXT).trials
}
"""The id of each trial, by its mixer, its task and its seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """What was done to a file: how, what it had been, and the bytes that it has since; None for no file."""

    path: Path
    how: str
    place: str
    now: bytes | None
    trials: frozenset[str]

    def is_there(self) -> bool:
        """Whether the file is still as it was after its damage."""
        if self.now is None:
            return os.path.lexists(self.path) and (self.path.is_symlink() or not self.path.is_file())
        return self.path.is_file() and self.path.read_bytes() == self.now


@dataclass(slots=True)
class World:
    """The folder of one study, its store on a disk, and its drivers, the latest last."""

    folder: Path
    store: Path
    disk: Disk
    drivers: list[Driver] = field(default_factory=list[Driver])
    damages: list[Damage] = field(default_factory=list[Damage])
    faults: list[str] = field(default_factory=list[str])

    def begin(self, fate: Fate = NOTHING) -> Driver:
        """Start a driver."""
        words = ["study", "run", f"{NAME}.toml", "--results", str(self.store), "--local"]
        return self._start(words, fate)

    def command(self, *words: str) -> Driver:
        """Start another command on the store."""
        return self._start([*words, "--results", str(self.store)], NOTHING)

    def end(self) -> None:
        """End what still runs."""
        for driver in self.drivers:
            driver.send(signal.SIGKILL)
            driver.ends_within(math.inf)

    def running(self) -> list[Driver]:
        """The drivers that run and are not paused."""
        return [driver for driver in self.drivers if driver.runs() and not driver.is_paused]

    def num_told(self) -> int:
        """How many trials have been told as ended so far, by all drivers."""
        return sum(len(driver.told()) for driver in self.drivers)

    def wait_for_trials(self, count: int, seconds: float) -> None:
        """Wait until so many more trials have been told, no driver runs, or the time is over."""
        wanted, end = self.num_told() + count, time.monotonic() + seconds
        while self.running() and self.num_told() < wanted and time.monotonic() < end:
            time.sleep(0.005)

    def _start(self, words: list[str], fate: Fate) -> Driver:
        log = self.folder / f"driver-{len(self.drivers):02}.log"
        driver = start(words, log, self.folder, fate, self.store)
        self.drivers.append(driver)
        return driver


def make_world(folder: Path, disk: Disk) -> World:
    """A new world with an empty store."""
    folder.mkdir(parents=True)
    (folder / f"{NAME}.toml").write_text(TEXT, encoding="utf-8")
    store = disk.folder / folder.name
    os.environ["ACTIVEMEM_CPUS"] = "1"
    return World(folder, store, disk)
