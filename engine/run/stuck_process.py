"""Watcher process that kills its parent if native code does not return after two stop signals.

Python runs no signal handler while native code runs. But the interpreter still writes each signal's number to
a pipe, and this program reads it. It is run by its path and needs only the standard library.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PATIENCE_S = 10.0
"""The seconds that the parent has to end by itself after the second signal."""


@contextmanager
def killed_if_stuck() -> Iterator[None]:
    """Make the second Ctrl-C or SIGTERM end the calling process, even if it is stuck."""
    words = [sys.executable, "-I", "-S", __file__]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None, "stdin is a pipe"
    os.set_blocking(process.stdin.fileno(), False)
    before = signal.set_wakeup_fd(process.stdin.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        process.stdin.close()
        process.wait()


def watch(parent: int) -> None:
    """Read signal numbers until the parent closes the pipe; kill it if it is stuck."""
    signals, kill_at = 0, None
    while True:
        left_s = None if kill_at is None else max(kill_at - time.monotonic(), 0.0)
        if select.select([0], [], [], left_s)[0]:
            numbers = os.read(0, 64)
            if not numbers:
                return
            signals += sum(number in (signal.SIGINT, signal.SIGTERM) for number in numbers)
            if signals > 1 and kill_at is None:
                kill_at = time.monotonic() + PATIENCE_S
        elif os.getppid() == parent:
            os.kill(parent, signal.SIGKILL)
            with suppress(OSError):  # nobody may read it any more
                os.write(2, b"killed, as native code did not come back; what was finished before is stored\n")
            return


if __name__ == "__main__":
    watch(os.getppid())
