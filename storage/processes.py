"""Processes of this machine, and how the name of a file says which one writes it."""

import os
from functools import cache
from hashlib import blake2s
from pathlib import Path


@cache
def this_machine() -> str | None:
    """Return an identifier of this boot of the machine and of the process namespace; None if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def is_running(pid: int, started: str | None) -> bool:
    """Return whether a process with this pid and start time runs here. Return True if this is unknown."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # the process belongs to another user, so more may be hidden
        pass
    found = process_start(pid)
    # the system may have given the pid to a new process
    return found is None or found == started


def process_start(pid: int) -> str | None:
    """Return when a process began, in ticks since boot; "" if it has ended, None if it is not reported."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()  # the process's name before it may have any characters
    return "" if state in "ZX" else fields[18]


def process_mark() -> str:
    """Return 16 hexadecimal digits that stand for this process: 8 of its machine, then 8 of its pid."""
    return f"{_machine_mark()}{os.getpid():08x}"


def has_ended(mark: str) -> bool:
    """Return whether the process of a mark has certainly ended. Return False for one of another machine."""
    if this_machine() is None or mark[:8] != _machine_mark():
        return False
    pid = int(mark[8:], 16)
    return not is_running(pid, process_start(pid) or None)


@cache
def _machine_mark() -> str:
    return blake2s((this_machine() or "").encode(), digest_size=4).hexdigest()
