"""Runs of studies within a budget: each in a process of its own, which is stopped in order in time."""

from __future__ import annotations

import signal
import sys
import time
from dataclasses import dataclass, field
from subprocess import DEVNULL
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from ...errors import ActivememError

if TYPE_CHECKING:
    import anyio
    from anyio.abc import Process

GRACE_S = 60.0
"""So long a run has to end its step after it was stopped; it is killed then, and loses what came since its
last epoch."""

_LOG_CHARACTERS = 4_000

_LAUNCH = (
    "import ctypes, os, signal, sys\n"
    "if sys.platform == 'linux':\n"
    "    ctypes.CDLL(None).prctl(1, signal.SIGTERM)\n"  # PR_SET_PDEATHSIG: it ends with its server, in order
    "os.execv(sys.executable, [sys.executable, '-m', 'activemem', *sys.argv[1:]])\n"
)


class BudgetError(ActivememError):
    """There is no time left to train in."""


def _new_lock() -> anyio.Lock:
    import anyio

    return anyio.Lock()


@dataclass(slots=True)
class TrainingBudget:
    """How long an agent may train in all, by the clock, and what of that is spent."""

    seconds: float
    spent: float = 0.0
    _lock: anyio.Lock = field(default_factory=_new_lock)

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return max(0.0, self.seconds - self.spent)

    async def run(self, arguments: list[str], seconds: float) -> RunEnd:
        """Run `activemem` with these arguments, for at most so long and as the budget allows.

        One run at a time; raises BudgetError where nothing is left.
        """
        async with self._lock:
            if not self.left:
                raise BudgetError(f"expected time left of the budget of {self.seconds:g} s, got none")
            start = time.monotonic()
            try:
                return await _run(arguments, min(seconds, self.left))
            finally:
                self.spent += time.monotonic() - start


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run ended: its exit status, whether its time was over, and the end of what it said."""

    status: int
    timed_out: bool
    log: str


async def _run(arguments: list[str], seconds: float) -> RunEnd:
    """Run for so long, then stop it as Ctrl-C does."""
    import anyio

    with TemporaryFile() as said:
        command = [sys.executable, "-c", _LAUNCH, *arguments]
        process = await anyio.open_process(command, stdin=DEVNULL, stdout=said, stderr=said)
        async with process:
            with anyio.move_on_after(seconds):
                await process.wait()
            timed_out = process.returncode is None
            if timed_out:
                await _stop(process)
        said.seek(0)
        log = said.read().decode(errors="replace")[-_LOG_CHARACTERS:]
    return RunEnd(status=process.returncode or 0, timed_out=timed_out, log=log)


async def _stop(process: Process) -> None:
    """Ask a run to stop after its step; kill it where it does not."""
    import anyio

    process.send_signal(signal.SIGINT)
    with anyio.move_on_after(GRACE_S):
        await process.wait()
        return
    process.kill()
    await process.wait()
