"""Does one thing to copies of a store, each time in a process that is killed one step later.

Usage: dying.py TEMPLATE FOLDER write|compact|remember. Copies are FOLDER/0, FOLDER/1, ...; the last one
is not killed. Steps are what changes a file system or makes a change durable; prints how many there are.
"""

import os
import signal
import sys
from pathlib import Path

import pyarrow.parquet  # noqa: F401  loaded once, before the forks
from making import copy, metrics, trial

from activemem.storage import Store

CHANGES = {"open", "os.mkdir", "os.rename", "os.remove", "os.scandir", "os.listdir"}
ACTIONS = {
    "write": lambda store: store.write(trial(9), metrics(9)),
    "compact": lambda store: store.compact(),
    "remember": lambda store: store.remember_study("alpha", {"text": "new"}),
}


def die_after(steps: int, root: str) -> None:
    """Arrange for this process to be killed before its next step on a path below a root, or on any fsync."""
    left = steps
    real_fsync = os.fsync

    def step() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in CHANGES and str(arguments[0]).startswith(root):
            step()

    def fsync(descriptor: int) -> None:
        step()
        real_fsync(descriptor)

    sys.addaudithook(hook)
    os.fsync = fsync


def killed(steps: int, root: Path, action: str) -> bool:
    """Act on a store in a new process; say whether it was killed."""
    child = os.fork()
    if child == 0:
        die_after(steps, str(root))
        ACTIONS[action](Store(root))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    assert os.waitstatus_to_exitcode(status) == 0, status
    return False


def main(template: str, folder: str, action: str) -> None:
    steps = 0
    while killed(steps, copy(template, Path(folder, str(steps))), action):
        steps += 1
    print(steps)  # noqa: T201  read by the test


main(*sys.argv[1:])
