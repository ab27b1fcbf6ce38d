"""The kinds of faults by name, and the scenes that use them."""

import signal
from collections.abc import Mapping
from functools import partial

from . import bucket_faults, damage, faults, ray_faults
from .disk import Disk
from .faults import Strike
from .scenes import BUCKET, GRID, SEARCH, Scene

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
_NETWORK: dict[str, tuple[int, Strike]] = {
    "answers of a server lost": (3, partial(bucket_faults.bad_network, fault="lost", least=0.02, most=0.3)),
    "requests dropped": (2, partial(bucket_faults.bad_network, fault="dropped", least=0.02, most=0.4)),
    "answers of a server cut short": (
        2,
        partial(bucket_faults.bad_network, fault="cut", least=0.02, most=0.2),
    ),
    "a server that is busy": (2, partial(bucket_faults.bad_network, fault="busy", least=0.2, most=1.0)),
    "a slow server": (2, partial(bucket_faults.bad_network, fault="delay_s", least=0.01, most=0.5)),
    "a server that is away": (2, bucket_faults.server_away),
}
_OBJECTS: dict[str, tuple[int, Strike]] = {
    **{how: (3, partial(bucket_faults.damage_an_object, how=how)) for how in bucket_faults.DAMAGE},
    "a foreign object": (2, bucket_faults.add_an_object),
}
_CLOCK: dict[str, tuple[int, Strike]] = {"a clock that jumps": (2, faults.jump_clock)}

KILLS = ("a driver killed", "a driver killed at a step", "a slow disk", "a worker of Ray killed")
"""Faults that can kill a trial repeatedly in the same epoch."""

_OF_OWN_DISK = ("a full disk", "a read-only disk")


def kinds_of(scene: Scene, disk: Disk) -> Mapping[str, tuple[int, Strike]]:
    """Return the faults of a scene that this machine allows, with their frequencies and functions.

    Files of a search are not damaged, because lost results of a point still count in the budget and change
    the choice of later points.
    """
    if scene is GRID:
        kinds = _PROCESSES | _MACHINE | _FILES
    elif scene is SEARCH:
        kinds = _PROCESSES | _MACHINE
    elif scene is BUCKET:
        kinds = _PROCESSES | _NETWORK | _OBJECTS | _CLOCK
    else:
        kinds = _RAY
    return {name: kind for name, kind in kinds.items() if disk.is_own or name not in _OF_OWN_DISK}


def left_out(disk: Disk) -> list[str]:
    """Return the fault kinds that this machine does not allow."""
    return [] if disk.is_own else list(_OF_OWN_DISK)
