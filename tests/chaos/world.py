"""A world: one study in one store, the drivers that run it, and what was done to its files."""

import math
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from .clock import set_clock
from .disk import Disk
from .drivers import NOTHING, TEMPORARY, Driver, Fate, start
from .scenes import NAME, Scene

DAY_S = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """What was done to a file: how, what it had been, and the bytes that it has since; None for no file."""

    path: PurePath
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
    """A scene in a folder, its store on a disk, and its drivers, the latest last.

    The drivers have a folder for temporary files in it.
    """

    scene: Scene
    folder: Path
    store: Path
    disk: Disk
    drivers: list[Driver] = field(default_factory=list[Driver])
    damages: list[Damage] = field(default_factory=list[Damage])
    foreign: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])

    @property
    def place(self) -> str:
        """Where the store is, as a driver is told it."""
        return str(self.store)

    def names(self) -> list[str]:
        """What the store has: its files, what stands in the place of one, and the folders of checkpoints."""
        return sorted(
            str(path.relative_to(self.store))
            for path in self.store.rglob("*")
            if not path.is_dir() or path.parent.name == "checkpoints"
        )

    def helpers(self) -> set[int]:
        """The processes that are there as long as the harness."""
        return set()

    def read(self, name: str) -> bytes | None:
        """A file of the store, if it is there."""
        path = self.store / name
        return path.read_bytes() if path.is_file() else None

    def is_there(self, damage: Damage) -> bool:
        """Whether a file is still as it was after its damage."""
        return damage.is_there()

    def remove(self, name: str) -> None:
        """Remove a file of the store, or whatever stands in its place."""
        path = self.store / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def pass_days(self, days: float) -> None:
        """Give all files the times that they would have so many days later."""
        for path in self.store.rglob("*"):
            os.utime(path, (time.time() - days * DAY_S,) * 2, follow_symlinks=False)

    def copy_store(self, folder: Path) -> None:
        """Copy the store, pipes and links as they are."""
        subprocess.run(["cp", "--archive", str(self.store), str(folder)], check=True)

    def remove_store(self) -> None:
        """Remove the store."""
        shutil.rmtree(self.store)

    def begin(self, fate: Fate = NOTHING, options: tuple[str, ...] | None = None) -> Driver:
        """Start a driver, by default with the options of the scene."""
        options = self.scene.options if options is None else options
        words = ["study", "run", f"{NAME}.toml", "--results", self.place]
        return self._start([*words, *options], fate)

    def command(self, *words: str) -> Driver:
        """Start another command on the store."""
        return self._start([*words, "--results", self.place], NOTHING)

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
        driver = start(words, log, self.folder, fate, self.place)
        self.drivers.append(driver)
        return driver


def make_world(scene: Scene, folder: Path, disk: Disk) -> World:
    """A new world with an empty store, and the clock of the machine."""
    prepare(scene, folder)
    return World(scene, folder, disk.folder / folder.name, disk)


def prepare(scene: Scene, folder: Path) -> None:
    """Make the folder of a world, and put the clock of the machine right."""
    (folder / TEMPORARY).mkdir(parents=True)
    (folder / f"{NAME}.toml").write_text(scene.text, encoding="utf-8")
    os.environ["ACTIVEMEM_CPUS"] = "1"
    set_clock(0.0)
