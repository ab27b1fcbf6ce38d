"""A world: a study in a store, its drivers, and the damage to its files."""

import os
import shutil
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
    """Damage to a file: kind, previous content, and its current bytes, None if not a file."""

    path: PurePath
    how: str
    place: str
    now: bytes | None
    trials: frozenset[str]

    def is_there(self) -> bool:
        """Return whether the file is unchanged since its damage."""
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
    keepsakes: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Files of the user's in the store, which no command may touch."""

    @property
    def place(self) -> str:
        """Return the path or address of the store, as given to drivers."""
        return str(self.store)

    def names(self) -> list[str]:
        """Return the names in the store: files, their replacements, and checkpoint folders."""
        return sorted(
            str(path.relative_to(self.store))
            for path in self.store.rglob("*")
            if not path.is_dir() or path.parent.name == "checkpoints"
        )

    def helpers(self) -> set[int]:
        """Return the processes that live as long as the harness."""
        return set()

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file in the store, None if missing."""
        path = self.store / name
        return path.read_bytes() if path.is_file() else None

    def is_there(self, damage: Damage) -> bool:
        """Return whether a file is unchanged since its damage."""
        return damage.is_there()

    def remove(self, name: str) -> None:
        """Remove a file of the store, or its replacement."""
        path = self.store / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def pass_days(self, days: float) -> None:
        """Age all files by some days."""
        for path in self.store.rglob("*"):
            os.utime(path, (time.time() - days * DAY_S,) * 2, follow_symlinks=False)

    def copy_store(self, folder: Path) -> None:
        """Copy the store, including pipes and links."""
        subprocess.run(["cp", "--archive", str(self.store), str(folder)], check=True)

    def remove_store(self) -> None:
        """Remove the store."""
        shutil.rmtree(self.store)

    def begin(self, fate: Fate = NOTHING, options: tuple[str, ...] | None = None) -> Driver:
        """Start a driver, by default with the scene's options."""
        options = self.scene.options if options is None else options
        words = ["study", "run", f"{NAME}.toml", "--results", self.place]
        return self._start([*words, *options], fate)

    def command(self, *words: str) -> Driver:
        """Start another command on the store."""
        return self._start([*words, "--results", self.place], NOTHING)

    def end(self) -> None:
        """End all running drivers."""
        for driver in self.drivers:
            driver.end()

    def running(self) -> list[Driver]:
        """Return the drivers that run and are not paused."""
        return [driver for driver in self.drivers if driver.runs() and not driver.is_paused]

    def num_told(self) -> int:
        """Return the number of trials that all drivers have reported as ended."""
        return sum(len(driver.told()) for driver in self.drivers)

    def wait_for_trials(self, count: int, seconds: float) -> None:
        """Wait until more trials were reported, no driver runs, or the time is over."""
        wanted, end = self.num_told() + count, time.monotonic() + seconds
        while self.running() and self.num_told() < wanted and time.monotonic() < end:
            time.sleep(0.005)

    def _start(self, words: list[str], fate: Fate) -> Driver:
        log = self.folder / f"driver-{len(self.drivers):02}.log"
        driver = start(words, log, self.folder, fate, self.place)
        self.drivers.append(driver)
        return driver


def make_world(scene: Scene, folder: Path, disk: Disk) -> World:
    """Return a new world with an empty store and the machine's clock."""
    prepare(scene, folder)
    return World(scene, folder, disk.folder / folder.name, disk)


def prepare(scene: Scene, folder: Path) -> None:
    """Create a world's folder, and reset the clock."""
    (folder / TEMPORARY).mkdir(parents=True)
    (folder / f"{NAME}.toml").write_text(scene.text, encoding="utf-8")
    os.environ["ACTIVEMEM_CPUS"] = "1"
    set_clock(0.0)
