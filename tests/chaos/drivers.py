"""Drivers: `activemem study run` in processes forked from this one, which has imported everything.

A driver that uses Ray is a new program, since Ray does not support forked processes.
"""

import atexit
import errno
import logging
import math
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch._dynamo  # noqa: F401  which torch's optimisers import: once, before the forks

from activemem.__main__ import main
from activemem.storage import Store, bucket, leases
from activemem.storage.bucket import BucketPlace
from activemem.storage.leases import Leases, this_process
from activemem.storage.place import FolderPlace, is_address

from .clock import use_shifted_clock
from .faulty_disk import use_faults

LEASE_S = 2.0
"""The lease time of the drivers, short enough for pauses to exceed it."""

PATIENCE = (4.0, 3.0, 10), (2.0, 1.0, 2)
"""Wait times for data and for lease renewals in a bucket, shortened like the leases."""

TEMPORARY = "temporary"
"""The folder for temporary files of all drivers of a world."""

_RAY_ENVIRONMENT = os.environ | {"RAY_AUTH_MODE": "disabled", "ACTIVEMEM_CPUS": "1"}
_STEPS = {"open", "os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.scandir", "os.listdir"}
_REPORTED = re.compile(r"^ *\d+/\d+   (\w+) .*?(conv\(k=\d\)).*?(reverse|not) .*?seed (\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """A fault inside a driver, which happens at a given count of file-system operations in its store.

    With a store in a bucket, the requests are counted instead, at their beginning and at their end.

    The fault is a signal before an operation, a slow flush, or a failing flush.
    """

    signal_at_step: int | None = None
    signal: int = signal.SIGKILL
    flush_takes_s: float = 0.0
    fails_at_flush: int | None = None
    library: tuple[tuple[str, str], ...] = ()
    """The settings of `faulty_disk`."""


NOTHING = Fate()


@dataclass(slots=True)
class Driver:
    """A started driver and its log file."""

    pid: int
    log: Path
    status: int | None = None
    is_paused: bool = False

    def runs(self) -> bool:
        """Return whether the driver still runs; after its end, `status` is the exit status."""
        if self.status is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is None

    def send(self, number: int) -> None:
        """Send a signal to the driver if the driver runs."""
        if self.runs():
            os.kill(self.pid, number)

    def ends_within(self, seconds: float) -> bool:
        """Wait for the end of the driver; return False if the driver still runs after this time."""
        end = time.monotonic() + seconds
        while self.runs():
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True

    def end(self) -> None:
        """Kill the driver, and wait for its end."""
        self.send(signal.SIGKILL)
        self.ends_within(math.inf)

    def text(self) -> str:
        """Return the driver's output and error output."""
        return self.log.read_text(encoding="utf-8", errors="replace") + self.output()

    def output(self) -> str:
        """Return the driver's standard output."""
        return self.log.with_suffix(".out").read_text(encoding="utf-8", errors="replace")

    def told(self) -> list[tuple[str, ...]]:
        """Return the trials reported as ended: status, mixer, task and seed."""
        return _REPORTED.findall(self.text())


def start(
    words: list[str], log: Path, folder: Path, fate: Fate = NOTHING, store: str | None = None
) -> Driver:
    """Fork a process that runs the command in a folder, with a log."""
    if words[:2] == ["study", "run"] and "--local" not in words:
        program = [sys.executable, "-m", "activemem", *words]
        return in_child(lambda: os.execve(program[0], program, _RAY_ENVIRONMENT), log, folder)
    return in_child(lambda: _command(words, fate, store), log, folder)


def in_child(action: Callable[[], None], log: Path, folder: Path) -> Driver:
    """Fork a process that runs a function, with a log."""
    for path in (log, log.with_suffix(".out")):
        path.write_text("", encoding="utf-8")
    pid = os.fork()
    if pid == 0:
        _run(action, log, folder)
    return Driver(pid, log)


def _run(action: Callable[[], None], log: Path, folder: Path) -> None:
    """Run a function in this forked process, then exit."""
    status = 70
    try:
        os.setsid()
        os.chdir(folder)
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder / TEMPORARY)
        atexit._clear()
        os.dup2(os.open(log.with_suffix(".out"), os.O_WRONLY), 1)
        os.dup2(os.open(log, os.O_WRONLY), 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        action()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        logging.exception("the driver died")
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _command(words: list[str], fate: Fate, store: str | None) -> None:
    """Run the command line in this forked process, with a fault."""
    leases.LEASE_S = LEASE_S  # of those whose length cannot be read
    use_shifted_clock()
    Store.leases = _short_leases
    if store is not None:
        _meet(fate, store)
    sys.argv = ["activemem", *words]
    main()


def _short_leases(store: Store, run: str) -> Leases:
    """Return the leases of a store with a short lease time."""
    store._layout.place.check_claims()
    return Leases(store._layout, this_process(run), lease_s=LEASE_S)


def _touched_path(event: str, arguments: tuple[object, ...]) -> str:
    """Return the path of a file-system operation, also if it is relative to an open folder."""
    path, folder = str(arguments[0]), arguments[-1]
    if event in ("os.remove", "os.rmdir") and isinstance(folder, int) and folder >= 0:
        return str(Path(f"/proc/self/fd/{folder}").readlink() / path)
    return path


def _meet(fate: Fate, root: str) -> None:
    """Install a fault in this process."""
    steps = flushes = 0
    real_fsync = os.fsync
    if fate.library:
        use_faults(root, dict(fate.library))
        return

    def step() -> None:
        nonlocal steps
        steps += 1
        if steps == fate.signal_at_step:
            os.kill(os.getpid(), fate.signal)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in _STEPS and _touched_path(event, arguments).startswith(root):
            step()

    def fsync(descriptor: int) -> None:
        nonlocal flushes
        flushes += 1
        step()
        time.sleep(fate.flush_takes_s)
        if flushes == fate.fails_at_flush:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real_fsync(descriptor)

    ask = BucketPlace._file_errors

    @contextmanager
    def asking(self: BucketPlace, key: str) -> Iterator[None]:
        step()
        with ask(self, key):
            yield
        step()

    if is_address(root):
        bucket._PATIENT, bucket._PROMPT = PATIENCE
        BucketPlace.poll_s = FolderPlace.poll_s
        BucketPlace._file_errors = asking
        return
    os.fsync = fsync
    if fate.signal_at_step is not None:
        sys.addaudithook(hook)
