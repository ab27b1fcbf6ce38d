"""A process that serves another one ends with it; how one has ended, in words."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> None:
    """Have this process killed when its parent ends, and sooner than others where memory is out."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    if os.getppid() != parent:
        os._exit(1)


def describe_end(code: int) -> str:
    """Describe how a process has ended, by its exit code: below 0, the number of a signal."""
    return f"signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit status {code}"
