"""All that is to be done on a machine with a GPU, in pieces: a call works for some minutes, the next goes on.

The tests that wait for one; the table of `make bench-gpu`; a part of `algorithmic.toml` by graphs, then all
of it, timed; at last all other tests, a part after the other. What is left and known is in a folder, or in a
file of it for machines that keep nothing between calls. Without Ray all but tests of it can be done.

A stage that fails is told with its log, and the others go on: the exit status is 75 while any is left, then 1
where one has failed, else 0.

python bench/gpu_session.py FOLDER [--minutes 9] [--keep FILE] [--tiny]
    --keep FILE   an archive of the folder: unpacked first if it is there, packed again at the end
    --tiny        the same on a CPU and very small, to try the session itself
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
NO_TESTS = 5
"""How pytest exits where a part has no tests but slow ones, which is as it should be."""

LEAST_S, GRACE_S, MOST_TRIES = 20.0, 30.0, 2
TINY_TESTS = ("tests/engine/objectives/test_devices.py", "tests/grammar/test_canonical.py")
SHORT_STUDY = ("--set", "train.epochs=2", "--max-trials", "32")
TINY_STUDY = ("--set", "train.epochs=1", "--set", "train.steps_per_epoch=3", "--max-trials", "2")


@dataclass(frozen=True, slots=True)
class Stage:
    """A command, and the statuses that are `fine`; one that `goes_on` is begun again where it was.

    Others may be cut off only so often.
    """

    name: str
    command: tuple[str, ...]
    goes_on: bool = False
    fine: tuple[int, ...] = (0,)

    def has_done(self, how: str) -> bool:
        """Whether it ended as one that has done what it should."""
        return how in [f"status {status}" for status in self.fine]


@dataclass(slots=True)
class Notes:
    """What is known of the stages, in a file: how each ended, how often it was cut off, what it took."""

    file: Path
    ended: dict[str, str]
    cut_off: dict[str, int]
    seconds: dict[str, float]

    @classmethod
    def read(cls, file: Path) -> Notes:
        """What calls before have written."""
        known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        return cls(file, known.get("ended", {}), known.get("cut_off", {}), known.get("seconds", {}))

    def write(self) -> None:
        """Keep all for the next call."""
        page = {"ended": self.ended, "cut_off": self.cut_off, "seconds": self.seconds}
        self.file.write_text(json.dumps(page, indent=2) + "\n", encoding="utf-8")


def stages(folder: Path, *, tiny: bool) -> Iterator[Stage]:
    """All there is to do, in its order."""
    plugins = ("-p", "xdist", "-p", "hypothesispytest", "-p", "no:cacheprovider")
    # of others that are there some warn of what the tests do, which is an error here
    test = ("env", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1", sys.executable, "-m", "pytest", "-q", *plugins)
    test += ("--continue-on-collection-errors",)  # of tests of what is not installed
    test += () if tiny else ("--numprocesses", str(max(2, (os.cpu_count() or 2) - 2)), "--dist", "worksteal")
    yield Stage(
        "test gpu",
        (*test, "-m", "gpu and not slow", *(TINY_TESTS if tiny else ("tests",))),
        fine=(0, NO_TESTS),
    )
    bench = ("bench/step.py", "0.1") if tiny else ("bench/summary.py", "--cuda", "10")
    yield Stage("bench", (sys.executable, *bench))
    program = (sys.executable, "-m", "activemem")
    results = ("--results", str(folder / "results"))
    study = (*program, "study", "run", "algorithmic", "--local", "--pack", "auto")
    graphs = ("env", "ACTIVEMEM_GRAPHS=true", *study, "--results", str(folder / "recorded"))
    yield Stage("study recorded", (*graphs, *(TINY_STUDY if tiny else SHORT_STUDY)), goes_on=True)
    yield Stage("study", (*study, *results, *(TINY_STUDY if tiny else ())), goes_on=True)
    if not tiny:
        yield Stage("table", (*program, "table", "render", "algorithmic", "--published", *results))
    for part in TINY_TESTS if tiny else parts_of_tests():
        yield Stage(f"test {part}", (*test, "-m", "not slow and not gpu", part), fine=(0, NO_TESTS))


def parts_of_tests() -> list[str]:
    """The folders and files of tests, the engine's in parts."""
    tests, engine = ROOT / "tests", ROOT / "tests" / "engine"
    found = [path for folder in (engine, tests) for path in sorted(folder.iterdir())]
    found = [path for path in found if path != engine and path.name not in ("__pycache__", "chaos")]
    tested = [path for path in found if path.is_dir() or path.name.startswith("test_")]
    return [str(path.relative_to(ROOT)) for path in tested]


def run(stage: Stage, log: Path, seconds: float) -> int | None:
    """The exit status of a stage; None if it was cut off after so long, in order if it can be."""
    with log.open("ab") as out:
        process = subprocess.Popen(  # a group of its own, so that its workers end with it
            stage.command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return None


def work(folder: Path, todo: Sequence[Stage], until: float) -> Notes:
    """Go on with what has not ended, until that time of the clock."""
    folder.mkdir(parents=True, exist_ok=True)
    notes = Notes.read(folder / "notes.json")
    for stage in todo:
        left = until - time.monotonic()
        if stage.name in notes.ended or left < LEAST_S:
            continue
        began = time.monotonic()
        status = run(stage, folder / f"{stage.name.replace('/', '-').replace(' ', '-')}.log", left)
        notes.seconds[stage.name] = notes.seconds.get(stage.name, 0.0) + time.monotonic() - began
        if status is not None:
            notes.ended[stage.name] = f"status {status}"
        else:
            notes.cut_off[stage.name] = notes.cut_off.get(stage.name, 0) + 1
            if not stage.goes_on and notes.cut_off[stage.name] >= MOST_TRIES:
                notes.ended[stage.name] = f"cut off {MOST_TRIES} times"
        notes.write()
        print(f"{stage.name}: {notes.ended.get(stage.name, 'goes on')}, {notes.seconds[stage.name]:.0f} s")
    return notes


def without_checkpoints(file: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """What is kept of a folder: not the states of trials under way, hundreds of MB, which begin anew."""
    return None if "checkpoints" in Path(file.name).parts else file


def main() -> None:
    """A call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--tiny", action="store_true")
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes - GRACE_S
    folder = given.folder.resolve()
    if given.keep is not None and given.keep.is_file():
        with tarfile.open(given.keep) as archive:
            archive.extractall(folder, filter="data")
    todo = list(stages(folder, tiny=given.tiny))
    notes = work(folder, todo, until)
    if given.keep is not None:
        with tarfile.open(given.keep, "w:gz") as archive:
            archive.add(folder, ".", filter=without_checkpoints)
    left = [stage.name for stage in todo if stage.name not in notes.ended]
    print(f"left: {', '.join(left)}; the same command goes on" if left else "all has ended")
    ended = [(stage, notes.ended[stage.name]) for stage in todo if stage.name in notes.ended]
    failed = [stage.name for stage, how in ended if not stage.has_done(how)]
    if failed:
        print(f"not as it should be: {', '.join(failed)}; see the logs in {folder}")
    sys.exit(75 if left else 1 if failed else 0)  # EX_TEMPFAIL: call again


if __name__ == "__main__":
    main()
