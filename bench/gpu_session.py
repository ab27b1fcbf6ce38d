"""Tests, benchmarks and a study for a GPU machine, resumable over calls of a few minutes each.

python bench/gpu_session.py FOLDER [--minutes 9] [--keep FILE] [--tiny]

The stages are the tests that need a GPU, the table of `make bench-gpu`, a timed run of `algorithmic.toml`,
and all other tests in parts. Progress is kept in FOLDER. On machines that keep nothing between calls,
`--keep` stores the folder in an archive, which is unpacked at the start. Only tests of Ray need Ray.

The archive has logs, times and the rows of ended trials, but not the large states of running trials.

The study runs as one process for each core but two, on one store. Their kernels run side by side if NVIDIA's
multi-process service is installed.

A failed stage prints its log, and the other stages continue. The exit status is 75 while a stage remains,
then 1 if one has failed, else 0. If CUDA cannot allocate a tensor, nothing starts. With an archive the study
is left out once no trial ends in two calls in a row. `--tiny` tries the session itself at a very small size
on a CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from activemem.storage import Store
from activemem.storage.files import replacing

ROOT = Path(__file__).parents[1]
NO_TESTS = 5
"""pytest's exit status for a part whose tests are all slow, and thus not selected."""

LEAST_S, GRACE_S, MOST_TRIES = 20.0, 30.0, 2
TINY_TESTS = ("tests/engine/objectives/test_devices.py", "tests/grammar/test_canonical.py")
WAITS_FOR_GPU = 'reason="needs a GPU'
MPS = "nvidia-cuda-mps-control"
"""The program that starts and ends NVIDIA's multi-process service."""

ASK_GPU = """
import torch
try:
    torch.ones(1, device="cuda").item()
except Exception as error:
    raise SystemExit(f"{type(error).__name__}: {error}".splitlines()[0])
"""
TINY_STUDY = ("--set", "train.epochs=1", "--set", "train.steps_per_epoch=3", "--max-trials", "2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A command with its signs of success: an exit status in `fine`, and a log that contains `text`.

    A stage with trials in `results` resumes; others may be interrupted only a few times. The command runs
    `at_once` times side by side.
    """

    name: str
    command: tuple[str, ...]
    results: Path | None = None
    fine: tuple[int, ...] = (0,)
    text: str = ""
    at_once: int = 1

    def how_it_ended(self, status: int, log: Path) -> str:
        """Describe the exit status, and the expected texts that the log does not contain."""
        told, wrong = log.read_text(encoding="utf-8", errors="replace"), ""
        if self.text not in told:
            wrong = f", but its log is without {self.text!r}"
        return f"status {status}{wrong}"

    def has_done(self, how: str) -> bool:
        """Return whether the stage ended successfully."""
        return how in [f"status {status}" for status in self.fine]

    def count_trials(self) -> int:
        """Return how many trials of the stage have ended."""
        return 0 if self.results is None else len(Store(self.results).trials())


@dataclass(slots=True)
class Notes:
    """Progress of the stages, saved in a file: how each ended, how often it was interrupted, and its time."""

    file: Path
    ended: dict[str, str]
    cut_off: dict[str, int]
    seconds: dict[str, float]

    @classmethod
    def read(cls, file: Path) -> Notes:
        """Return the notes of earlier calls."""
        known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        return cls(file, known.get("ended", {}), known.get("cut_off", {}), known.get("seconds", {}))

    def write(self) -> None:
        """Save the notes for the next call."""
        page = {"ended": self.ended, "cut_off": self.cut_off, "seconds": self.seconds}
        with replacing(self.file) as temporary:
            temporary.write_text(json.dumps(page, indent=2) + "\n", encoding="utf-8")

    @contextmanager
    def timing(self, name: str) -> Iterator[None]:
        """Add the time spent within a context to the time of a stage, even if the context raises."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began
            self.write()

    def note_cut_off(self, stage: Stage, *, gets_on: bool) -> None:
        """Record an interruption of a stage; after several calls without progress, end the stage."""
        self.cut_off[stage.name] = tries = 0 if gets_on else self.cut_off.get(stage.name, 0) + 1
        if tries >= MOST_TRIES:
            no_trial = "" if stage.results is None else ", with no trial ended"
            self.ended[stage.name] = f"cut off {MOST_TRIES} times{no_trial}"


def stages(folder: Path, *, tiny: bool) -> Iterator[Stage]:
    """Yield all stages in order."""
    processes = 2 if tiny else max(2, (os.cpu_count() or 2) - 2)
    plugins = ("-p", "xdist", "-p", "hypothesispytest", "-p", "no:cacheprovider")
    # other installed plug-ins may warn, and warnings are errors here
    test = ("env", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1", "TORCHINDUCTOR_COMPILE_THREADS=2")  # for each process
    test += (sys.executable, "-m", "pytest", "-q", *plugins)
    test += ("--continue-on-collection-errors",)  # for tests whose packages are missing
    test += ("--numprocesses", str(processes), "--dist", "worksteal")
    on_gpu = (*test, "-m", "gpu and not slow")
    if tiny:
        yield Stage(name="test gpu", command=(*on_gpu, *TINY_TESTS), fine=(0, NO_TESTS))
    else:
        yield Stage(name="test gpu", command=(*on_gpu, *tests_on_gpu()), text=" passed")
    bench = ("bench/summary.py", *(("--tiny",) if tiny else ("--cuda", "10")))
    yield Stage(name="bench", command=(sys.executable, *bench))
    yield from stages_of_study(folder, processes, tiny=tiny)
    for part in TINY_TESTS if tiny else parts_of_tests():
        command = (*test, "-m", "not slow and not gpu", part)
        yield Stage(name=f"test {part}", command=command, fine=(0, NO_TESTS))


def stages_of_study(folder: Path, processes: int, *, tiny: bool) -> Iterator[Stage]:
    """Yield the stages of the study: its trials, then its table."""
    program, results = (sys.executable, "-m", "activemem"), folder / "results"
    study = (*program, "study", "run", "algorithmic", "--local", "--results", str(results))
    # without a GPU it would train on a CPU, for days
    device = ("OMP_NUM_THREADS=1",) if tiny else ("OMP_NUM_THREADS=1", "ACTIVEMEM_GPUS=1")
    yield Stage(
        name="study",
        command=("env", *device, *study, *(TINY_STUDY if tiny else ())),
        results=results,
        at_once=processes,
    )
    table = ("table", "render", "algorithmic", "--published", "--results", str(results))
    yield Stage(name="table", command=(*program, *table))


def tests_on_gpu() -> list[str]:
    """Return the files of tests that need a GPU, found by the reason of their skip mark.

    Pytest then imports no other files, which may need missing packages.
    """
    found = sorted((ROOT / "tests").rglob("test_*.py"))
    found = [path.relative_to(ROOT) for path in found if WAITS_FOR_GPU in path.read_text(encoding="utf-8")]
    return [str(path) for path in found]


def parts_of_tests() -> list[str]:
    """Return the folders and files of tests, with the entries of `tests/engine` instead of that folder."""
    tests, engine = ROOT / "tests", ROOT / "tests" / "engine"
    found = [path for folder in (engine, tests) for path in sorted(folder.iterdir())]
    found = [path for path in found if path != engine and path.name not in ("__pycache__", "chaos")]
    tested = [path for path in found if path.is_dir() or path.name.startswith("test_")]
    return [str(path.relative_to(ROOT)) for path in tested]


def run(stage: Stage, log: Path, seconds: float) -> int | None:
    """Run a stage and end its processes; return its exit status, or None if the time was too short.

    The status of several processes is the largest of theirs.
    """
    until, processes = time.monotonic() + seconds, list[subprocess.Popen[bytes]]()
    try:
        with log.open("ab") as out:
            for _ in range(
                stage.at_once
            ):  # each in a process group of its own, so that its workers end with it
                processes.append(
                    subprocess.Popen(
                        stage.command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
                    )
                )
        return max(process.wait(max(0.0, until - time.monotonic())) for process in processes)
    except subprocess.TimeoutExpired:
        return None
    finally:
        end([process for process in processes if process.returncode is None])


def end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End processes and their groups, gracefully if possible."""
    try:
        for process in processes:
            os.killpg(process.pid, signal.SIGINT)
        until = time.monotonic() + GRACE_S
        for process in processes:
            process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        pass
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def shared_gpu() -> Iterator[None]:
    """Within this context, kernels of several processes run side by side if MPS is installed."""
    if shutil.which(MPS) is None:
        yield
        return
    subprocess.run((MPS, "-d"), check=False)
    try:
        yield
    finally:
        subprocess.run((MPS,), input=b"quit", check=False)


def work(folder: Path, todo: Sequence[Stage], until: float, *, keeps_states: bool) -> Notes:
    """Run the unfinished stages until a time.

    Without saved states of running trials, only ended trials count as progress.
    """
    folder.mkdir(parents=True, exist_ok=True)
    notes = Notes.read(folder / "notes.json")
    for stage in todo:
        left = until - time.monotonic()
        if stage.name in notes.ended or left < LEAST_S:
            continue
        log = folder / f"{stage.name.replace('/', '-').replace(' ', '-')}.log"
        before = stage.count_trials()
        with notes.timing(stage.name):
            status = run(stage, log, left)
        gets_on = stage.results is not None and (keeps_states or stage.count_trials() > before)
        if status is not None:
            notes.ended[stage.name] = stage.how_it_ended(status, log)
        else:
            notes.note_cut_off(stage, gets_on=gets_on)
        notes.write()
        anew = "begins anew" if stage.results is None else "begins anew, as no trial ended in this call"
        how = notes.ended.get(stage.name, "goes on" if gets_on else anew)
        print(f"{stage.name}: {how}, {notes.seconds[stage.name]:.0f} s")
    return notes


def without_checkpoints(file: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Return the file for the archive, or None if it is the state of a running trial.

    A state has hundreds of MB, and its trial can start again without it.
    """
    return None if "checkpoints" in Path(file.name).parts else file


def require_gpu() -> None:
    """Exit if CUDA cannot allocate a tensor; a separate process checks it, so the GPU stays empty."""
    asked = subprocess.run((sys.executable, "-c", ASK_GPU), capture_output=True, text=True, check=False)
    if asked.returncode:
        told = asked.stderr.splitlines() or [f"status {asked.returncode}"]
        sys.exit(f"no GPU can be used: {told[-1]}")


def unpack(keep: Path, folder: Path) -> None:
    """Unpack the archive of earlier calls; exit if it is unreadable or the folder is not writable."""
    try:
        keep.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=keep.parent):
            pass
        if keep.exists():
            with tarfile.open(keep) as archive:
                archive.extractall(folder, filter="data")
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        sys.exit(f"--keep {keep}: expected an archive of a session, or room for a new one, got {error!r}")


def pack(folder: Path, keep: Path) -> None:
    """Save a folder for the next call; the new archive replaces the old one only when it is complete."""
    with replacing(keep) as temporary, tarfile.open(temporary, "w:gz") as archive:
        archive.add(folder, ".", filter=without_checkpoints)


def main() -> None:
    """Run the remaining stages for some minutes, and exit with the status that the module describes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--tiny", action="store_true")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        sys.exit(call(given.folder.resolve(), 60 * given.minutes - GRACE_S, given.keep, tiny=given.tiny))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def call(folder: Path, seconds: float, keep: Path | None, *, tiny: bool) -> int:
    """Run stages for some time, print the remaining and the failed stages, and return the exit status."""
    until = time.monotonic() + seconds
    if not tiny:
        require_gpu()
    if keep is not None:
        unpack(keep, folder)
    todo = list(stages(folder, tiny=tiny))
    try:
        with shared_gpu():
            notes = work(folder, todo, until, keeps_states=keep is None)
    finally:
        if keep is not None:
            pack(folder, keep)
    left = [stage.name for stage in todo if stage.name not in notes.ended]
    print(
        f"left: {', '.join(left)}; run the same command again to continue"
        if left
        else "all stages have ended"
    )
    ended = [(stage, notes.ended[stage.name]) for stage in todo if stage.name in notes.ended]
    failed = [stage.name for stage, how in ended if not stage.has_done(how)]
    if failed:
        print(f"failed: {', '.join(failed)}; see the logs in {folder}")
    return 75 if left else 1 if failed else 0  # EX_TEMPFAIL: call again


if __name__ == "__main__":
    main()
