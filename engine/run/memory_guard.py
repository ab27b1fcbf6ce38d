"""Watcher process that kills its parent, a worker, when the worker's memory exceeds a limit.

It writes the reason to a file first. A worker cannot watch itself, because native code may allocate memory
without running Python. This program is run by its path and needs only the standard library.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

POLL_S = 0.05
"""The interval of the memory checks, in seconds."""


class MemoryGuard:
    """A watcher of the calling process's memory, until the process ends."""

    def __init__(self, limit_bytes: int) -> None:
        words = [sys.executable, "-I", "-S", __file__, str(limit_bytes)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)

    def __call__(self, path: Path) -> None:
        """Set the file for the reason, which the next attempt at the trial reads."""
        assert self._process.stdin is not None, "a pipe was asked for"
        with suppress(OSError):  # somebody has killed it
            self._process.stdin.write(os.fsencode(path.resolve()) + b"\n")
            self._process.stdin.flush()


def watch(parent: int, limit_bytes: int) -> None:
    """Watch the parent's memory until it ends or closes the pipe; kill it above the limit.

    The last line of the pipe is the path of the file for the reason.
    """
    reader = os.fdopen(0, "rb", buffering=0)
    pending, path, pause_s = b"", b"", POLL_S
    while True:
        if select.select([reader], [], [], pause_s)[0]:
            if not (read := reader.read(65536)):
                return
            *lines, pending = (pending + read).split(b"\n")
            path = lines[-1] if lines else path
        began = time.monotonic()
        if _resident_bytes(parent) > limit_bytes and os.getppid() == parent:
            _say(path, f"memory limit of {limit_bytes / 1e9:g} GB passed\n".encode())
            os.kill(parent, signal.SIGKILL)
            return
        pause_s = max(POLL_S, 10 * (time.monotonic() - began))  # at most a tenth of a core


def _say(path: bytes, reason: bytes) -> None:
    """Append the reason to the file; on failure do nothing, and the trial is retried."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
        try:
            os.write(descriptor, reason)
        finally:
            os.close(descriptor)


def _resident_bytes(process: int) -> int:
    """Return the resident memory of a process; 0 if unknown."""
    with suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{process}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    try:
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(process)], capture_output=True, check=False)
        return int(shown.stdout) * 1024
    except (OSError, ValueError):
        return 0


if __name__ == "__main__":
    watch(os.getppid(), int(sys.argv[1]))
