"""A world: one study in one store, the drivers that run it, and what was done to its files."""

import math
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from .clock import set_clock
from .disk import Disk
from .drivers import NOTHING, Driver, Fate, start
from .scenes import NAME, Scene


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
    """A scene in a folder, its store on a disk, and its drivers, the latest last."""

    scene: Scene
    folder: Path
    store: Path
    disk: Disk
    drivers: list[Driver] = field(default_factory=list[Driver])
    damages: list[Damage] = field(default_factory=list[Damage])
    faults: list[str] = field(default_factory=list[str])

    def begin(self, fate: Fate = NOTHING, options: tuple[str, ...] | None = None) -> Driver:
        """Start a driver, by default with the options of the scene."""
        options = self.scene.options if options is None else options
        words = ["study", "run", f"{NAME}.toml", "--results", str(self.store)]
        return self._start([*words, *options], fate)

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


def make_world(scene: Scene, folder: Path, disk: Disk) -> World:
    """A new world with an empty store, and the clock of the machine."""
    folder.mkdir(parents=True)
    (folder / f"{NAME}.toml").write_text(scene.text, encoding="utf-8")
    os.environ["ACTIVEMEM_CPUS"] = "1"
    set_clock(0.0)
    return World(scene, folder, disk.folder / folder.name, disk)
