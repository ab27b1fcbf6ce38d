"""Crash reports of processes that died in training, in a file beside the checkpoint.

The module also limits how often the processes of a trial may die in one of its epochs before it fails.
"""

from __future__ import annotations

import faulthandler
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .checkpoints import CrashCounts

Guard = Callable[[Path], None]
"""Sets the file for the reason, before a watcher kills this process for its memory."""

MAX_WORKER_DEATHS = 3
"""The number of worker deaths in the same epoch of a trial, within one run, after which the trial fails."""

MAX_DEATHS = 6
"""The same for deaths of processes in all runs together."""

_FILE = "crash_report"
_STDERR = 2
_MEMORY_LIMIT = "memory limit of "
_FATAL = re.compile(r"^Fatal Python error: (.*)$", re.MULTILINE)
_TIMEOUT = re.compile(r"^Timeout \(.*\)!$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashReport:
    """The traceback or reason left by a dead process, and its time limit."""

    limit_s: float | None
    text: str

    def reason(self, limit_s: float | None, where: str) -> str | None:
        """Return why the trial fails after this single death; None if it is retried under this limit."""
        if self.passed_memory_limit:
            return f"{self.text.splitlines()[0]} {where}"
        if limit_s is None or self.limit_s is None or limit_s > self.limit_s:
            return None
        if _TIMEOUT.search(self.text):
            what = f"time limit of {self.limit_s:g} s passed {where}, in native code that did not come back"
            return f"{what}\n{self.text}"
        return None

    @property
    def passed_memory_limit(self) -> bool:
        """Return whether the process was killed for exceeding its memory limit."""
        return self.text.startswith(_MEMORY_LIMIT)

    @property
    def summary(self) -> str:
        """Return the cause of death in a few words; "" if unknown."""
        if found := _FATAL.search(self.text):
            return found[1].lower()
        return self.text.partition("\n")[0]

    @property
    def rest(self) -> str:
        """Return the full text on new lines, if the summary does not contain all of it."""
        return "" if self.text.strip() == self.summary else f"\n{self.text}"


@contextmanager
def recording_crashes(folder: Path, limit_s: float | None) -> Iterator[int]:
    """Record crashes of the process within a context in a file of the folder; yield its descriptor.

    A crash such as a segmentation fault writes its traceback there, unless this process has other fault
    handlers.
    """
    descriptor = _open(folder)
    mine = not faulthandler.is_enabled()
    try:
        with suppress(OSError):  # the next write to the store reports a full disk
            os.write(descriptor, b"" if descriptor == _STDERR else f"{limit_s}\n".encode())
        if mine:
            faulthandler.enable(descriptor)
        yield descriptor
    finally:
        if mine:
            faulthandler.disable()
        if descriptor != _STDERR:
            os.close(descriptor)


def crash_report_file(folder: Path) -> Path:
    """Return the file for the crash reports of processes that train this checkpoint's trial."""
    return folder / _FILE


def take_crash_report(folder: Path) -> CrashReport | None:
    """Return and remove the last process's crash report; None if it left none."""
    path = crash_report_file(folder)
    try:
        limit, _, text = path.read_text(encoding="utf-8", errors="replace").partition("\n")
        path.unlink()
        return CrashReport(limit_s=None if limit == "None" else float(limit), text=text) if text else None
    except (OSError, ValueError):
        return None


def _open(folder: Path) -> int:
    """Return the truncated file, or standard error if the file cannot be written."""
    try:
        return os.open(crash_report_file(folder), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
    except OSError:
        return _STDERR


def failure_by_death(
    deaths: CrashCounts, words: CrashReport | None, limit_s: float | None, where: str
) -> str | None:
    """Return why a trial fails after deaths of its processes; None if it is retried."""
    if words is not None and (reason := words.reason(limit_s, where)) is not None:
        return reason
    if deaths.in_run < MAX_WORKER_DEATHS and deaths.in_all < MAX_DEATHS:
        return None
    most = MAX_WORKER_DEATHS if deaths.in_run >= MAX_WORKER_DEATHS else deaths.in_all
    how = "" if words is None else f", the last time by: {words.summary}{words.rest}"
    return f"the worker died {most} times {where}{how}"
