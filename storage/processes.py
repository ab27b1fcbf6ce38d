"""Processes of this machine: which one holds or writes something, and whether it has ended."""

import os
import re
import secrets
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

_WRITER: Final = re.compile(r"\.([0-9a-f]{12})-([0-9]{1,9})-([0-9]{1,19})\.[0-9a-f]{16}\Z", re.ASCII)


@cache
def this_machine() -> str | None:
    """Return a name for this machine since its start, and for the processes that can be seen from here."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def is_running(pid: int, started: str | None) -> bool:
    """Return whether the process of this machine with a number and a start runs; True if nobody can say."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # another user's process, of which more may be hidden
        pass
    found = process_start(pid)
    return found is None or found == started


def process_start(pid: int) -> str | None:
    """Return when a process began, in ticks since the start of the machine.

    It is "" for a process that has ended, and None where the system does not say.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()  # its name, before that, may have anything in it
    return "" if state in "ZX" else fields[18]


def temporary_name(name: str) -> str:
    """Return a new hidden name for a file that this process writes, which also says who writes it."""
    machine, pid, chance = this_machine(), os.getpid(), secrets.token_hex(8)
    started = process_start(pid)
    if machine is None or not started:
        return f".{name}.{chance}"
    return f".{name}.{_short(machine)}-{pid}-{started}.{chance}"


def writer_runs(name: str) -> bool | None:
    """Return whether the process that made a temporary name still runs; None if nobody here can see that."""
    machine, found = this_machine(), _WRITER.search(name)
    if machine is None or found is None or found[1] != _short(machine):
        return None
    return is_running(int(found[2]), found[3])


def _short(machine: str) -> str:
    """Return a machine's name as twelve characters that a file's name may have."""
    return sha256(machine.encode()).hexdigest()[:12]
