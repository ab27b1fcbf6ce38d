"""Faults of processes, disks and clocks: what each does to a world."""

import os
import signal
import time
from collections.abc import Callable
from random import Random

from .clock import set_clock
from .drivers import LEASE_S, Fate
from .world import World

Strike = Callable[[World, Random], str | None]
"""A function that executes a fault and describes it; it returns None if the fault is impossible."""

ENDS_WITHIN_S = 20.0
"""The time limit for drivers to end after a stop or disk error, also on a busy machine."""

MOST_DRIVERS = 3
_LAST_STEP = 1500
_JUMP_S = 3 * 24 * 3600.0


class StrikeError(Exception):
    """Raised if a driver reacts wrongly to a fault."""


def kill(world: World, draw: Random) -> str | None:
    """Kill a driver with SIGKILL at a random moment."""
    if not (running := world.running()):
        return None
    driver = draw.choice(running)
    driver.send(signal.SIGKILL)
    driver.ends_within(ENDS_WITHIN_S)
    return driver.log.stem


def signal_at_step(world: World, draw: Random, *, number: int) -> str | None:
    """Start a driver that gets a signal before one of its file-system operations."""
    step = int(_LAST_STEP ** draw.random())
    driver = world.begin(Fate(signal_at_step=step, signal=number))
    if not driver.ends_within(ENDS_WITHIN_S * 3):
        raise StrikeError(f"{driver.log.stem} did not end after signal {number}")
    return f"{driver.log.stem} step {step}" if driver.status != 0 else None


def stop(world: World, draw: Random, *, number: int, times: int = 1) -> str | None:
    """Send SIGTERM or Ctrl-C to a driver, once or twice; the driver must end cleanly and soon."""
    if not (running := world.running()):
        return None
    driver = draw.choice(running)
    for _ in range(times):
        driver.send(number)
        time.sleep(0.05 * draw.random())
    if not driver.ends_within(ENDS_WITHIN_S):
        raise StrikeError(f"{driver.log.stem} did not end after signal {number}")
    return driver.log.stem


def pause(world: World, draw: Random) -> str | None:
    """Stop a driver with SIGSTOP for longer than a lease, while another one works, then continue it."""
    if not (running := world.running()):
        return None
    driver = draw.choice(running)
    driver.send(signal.SIGSTOP)
    driver.is_paused = True
    if not world.running():
        world.begin()
    time.sleep(LEASE_S * (0.5 + draw.random()))
    driver.send(signal.SIGCONT)
    driver.is_paused = False
    return driver.log.stem


def add_driver(world: World, _draw: Random) -> str | None:
    """Start another driver on the same store."""
    if not world.running() or len(world.running()) >= MOST_DRIVERS:
        return None
    return world.begin().log.stem


def fill_disk(world: World, draw: Random) -> str | None:
    """Fill the disk partly or fully until no driver runs or some time has passed."""
    world.disk.fill(draw.choice([0, 4096, 20_000, 60_000]))
    world.wait_for_trials(1000, 1.0 + draw.random())
    world.disk.make_room()
    return "full"


def lock_disk(world: World, draw: Random) -> str | None:
    """Make the disk read-only until no driver runs or some time has passed."""
    if not world.disk.lock():
        return None
    world.wait_for_trials(1000, 1.0 + draw.random())
    world.disk.unlock()
    return "read-only"


def slow_disk(world: World, draw: Random) -> str | None:
    """Start a driver with slow flushes, and kill it with SIGKILL after some trials."""
    driver = world.begin(Fate(flush_takes_s=draw.uniform(0.005, 0.05)))
    world.wait_for_trials(draw.randrange(3), 3.0)
    driver.send(signal.SIGKILL)
    driver.ends_within(ENDS_WITHIN_S)
    return driver.log.stem


def fail_flush(world: World, draw: Random) -> str | None:
    """Start a driver whose flush fails once with a disk error."""
    driver = world.begin(Fate(fails_at_flush=int(200 ** draw.random())))
    if not driver.ends_within(ENDS_WITHIN_S * 3):
        raise StrikeError(f"{driver.log.stem} did not end after a flush that failed")
    return driver.log.stem if driver.status != 0 else None


def jump_file_times(world: World, draw: Random) -> str | None:
    """Shift the time of each file by some days, as after a wrong clock."""
    shift, count = draw.uniform(-_JUMP_S, _JUMP_S), 0
    for folder in ("leases", "unfinished", "checkpoints"):
        for path in (world.store / folder).rglob("*"):
            try:
                at = path.lstat().st_mtime + shift
                os.utime(path, (at, at), follow_symlinks=False)
                count += 1
            except OSError:  # removed meanwhile
                continue
    return f"{count} files, {shift:+.0f} s" if count else None


def jump_clock(world: World, draw: Random) -> str | None:
    """Shift the wall clock of all drivers by days, or reset it; file times are unaffected."""
    shift = 0.0 if draw.random() < 0.25 else draw.uniform(-_JUMP_S, _JUMP_S)
    set_clock(shift)
    return f"{shift:+.0f} s" if world.running() else None
