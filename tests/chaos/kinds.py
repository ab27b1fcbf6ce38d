"""The kinds of faults by their names, and which of them strike which scene."""

import signal
from collections.abc import Mapping
from functools import partial

from . import damage, faults, ray_faults
from .disk import Disk
from .faults import Strike
from .scenes import GRID, SEARCH, Scene

_PROCESSES: dict[str, tuple[int, Strike]] = {
    "a driver killed": (5, faults.kill),
    "a driver killed at a step": (5, partial(faults.signal_at_step, number=signal.SIGKILL)),
    "a driver terminated": (3, partial(faults.stop, number=signal.SIGTERM)),
    "a driver terminated at a step": (2, partial(faults.signal_at_step, number=signal.SIGTERM)),
    "Ctrl-C": (2, partial(faults.stop, number=signal.SIGINT)),
    "Ctrl-C twice": (2, partial(faults.stop, number=signal.SIGINT, times=2)),
    "a driver paused": (2, faults.pause),
    "one more driver": (3, faults.add_driver),
}
_MACHINE: dict[str, tuple[int, Strike]] = {
    "a flush that fails": (2, faults.fail_flush),
    "a slow disk": (1, faults.slow_disk),
    "a full disk": (2, faults.fill_disk),
    "a read-only disk": (2, faults.lock_disk),
    "times of files that jump": (1, faults.jump_file_times),
    "a clock that jumps": (2, faults.jump_clock),
}
_FILES: dict[str, tuple[int, Strike]] = {
    **{how: (3, partial(damage.damage_a_file, how=how)) for how in damage.IN_PLACE},
    **{how: (1, partial(damage.add_a_file, how=how)) for how in damage.AS_NEW},
}
_RAY: dict[str, tuple[int, Strike]] = {
    "a worker of Ray killed": (2, ray_faults.kill_worker),
    "a raylet killed": (1, partial(ray_faults.kill_part, name="raylet")),
    "the head of a cluster killed": (1, partial(ray_faults.kill_part, name="gcs_server")),
    "a driver on Ray killed": (1, ray_faults.kill_driver),
    "a driver on Ray terminated": (1, ray_faults.terminate_driver),
}

KILLS = ("a driver killed", "a driver killed at a step", "a slow disk", "a worker of Ray killed")
"""What can kill a trial in the same epoch again and again."""

_OF_OWN_DISK = ("a full disk", "a read-only disk")


def kinds_of(scene: Scene, disk: Disk) -> Mapping[str, tuple[int, Strike]]:
    """Each kind that strikes a scene, as far as this machine allows it: how often it is drawn, what it does.

    No files of a search are damaged: what is lost of a point keeps its place in the budget, and others are
    chosen by what is there.
    """
    if scene is GRID:
        kinds = _PROCESSES | _MACHINE | _FILES
    elif scene is SEARCH:
        kinds = _PROCESSES | _MACHINE
    else:
        kinds = _RAY
    return {name: kind for name, kind in kinds.items() if disk.is_own or name not in _OF_OWN_DISK}


def left_out(disk: Disk) -> list[str]:
    """The kinds that this machine does not allow."""
    return [] if disk.is_own else list(_OF_OWN_DISK)
