"""Run one action on copies of a store, killed after 0, 1, 2, … steps.

Usage: kill_at_every_step.py TEMPLATE FOLDER ACTION. The copies are FOLDER/0, FOLDER/1, ...; the action on the
last copy is not killed. It prints its steps, one per line: its file-system operations.
"""

import os
import signal
import sys
from pathlib import Path

import pyarrow.parquet  # noqa: F401  loaded once, before the forks
from factories import copy_store, make_metric_rows, make_outputs, make_trial_row

from activemem.storage import AttemptRows, Store

AUDIT_EVENTS = {
    "open",
    "os.mkdir",
    "os.rename",
    "os.link",
    "os.remove",
    "os.rmdir",
    "os.scandir",
    "os.listdir",
}
ACTIONS = {
    "together": lambda store: store.write_together(
        [AttemptRows(make_trial_row(each), make_metric_rows(each)) for each in (8, 9)]
    ),
    "write": lambda store: store.write(make_trial_row(9), make_metric_rows(9), make_outputs()),
    "compact": lambda store: store.upkeep.compact(),
    "merge": lambda store: store.upkeep.merge_ended("alpha", at_least=2),
    "remember": lambda store: store.records.save("alpha", {"text": "new"}),
}


def touched_path(event: str, arguments: tuple[object, ...]) -> str:
    """Return the path of a file-system operation, also if it is relative to an open folder."""
    path, folder = str(arguments[0]), arguments[-1]
    if event in ("os.remove", "os.rmdir") and isinstance(folder, int) and folder >= 0:
        return str(Path(f"/proc/self/fd/{folder}").readlink() / path)
    return path


def kill_after(steps: int, root: str) -> list[str]:
    """Kill this process after `steps` file-system operations below a root; return the operations' names."""
    taken: list[str] = []
    real_fsync = os.fsync

    def step(name: str) -> None:
        if len(taken) == steps:
            os.kill(os.getpid(), signal.SIGKILL)
        taken.append(name)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in AUDIT_EVENTS and touched_path(event, arguments).startswith(root):
            step(event.removeprefix("os."))

    def fsync(descriptor: int) -> None:
        step("fsync")
        real_fsync(descriptor)

    sys.addaudithook(hook)
    os.fsync = fsync
    return taken


def was_killed(steps: int, root: Path, action: str) -> bool:
    """Run an action on a store in a new process; return whether it was killed."""
    child = os.fork()
    if child == 0:
        taken = kill_after(steps, str(root))
        ACTIONS[action](Store(root))
        print("\n".join(taken), flush=True)  # noqa: T201  read by the test
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    assert os.waitstatus_to_exitcode(status) == 0, status
    return False


def main(template: str, folder: str, action: str) -> None:
    steps = 0
    while was_killed(steps, copy_store(template, Path(folder, str(steps))), action):
        steps += 1


main(*sys.argv[1:])
