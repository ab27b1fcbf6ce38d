"""Faults of a driver on a Ray cluster of its own: its workers, its node and its head are killed."""

import signal
from contextlib import suppress
from random import Random

import psutil

from .drivers import Driver
from .faults import StrikeError
from .world import World

ENDS_WITHIN_S = 120.0
"""A driver that has lost a part of Ray ends within so long, and all that it has started."""

STARTS_WITHIN_S = 120.0


def kill_worker(world: World, draw: Random) -> str | None:
    """Kill a process that trains; Ray starts another, and the study goes on."""
    driver = _trains(world)
    found = _family(driver, "ray::ResourceTrainable") if driver else []
    if not found:
        return None
    return _kill(draw.choice(found))


def kill_part(world: World, _draw: Random, *, name: str) -> str | None:
    """Kill a part of the cluster that a driver has started: the driver ends, and so does all of it."""
    driver = _trains(world)
    found = _family(driver, name) if driver else []
    if not driver or not found:
        return None
    everything = _family(driver)
    killed = _kill(found[0])
    _end(driver, everything, f"its {name} was killed")
    return killed


def kill_driver(world: World, _draw: Random) -> str | None:
    """Kill a driver: its cluster ends without it."""
    return _signal(world, signal.SIGKILL)


def terminate_driver(world: World, _draw: Random) -> str | None:
    """SIGTERM: the driver ends in order, and its cluster with it."""
    return _signal(world, signal.SIGTERM)


def _signal(world: World, number: int) -> str | None:
    """Send a signal to a driver, which ends."""
    driver = _trains(world)
    if driver is None:
        return None
    everything = _family(driver)
    driver.send(number)
    _end(driver, everything, f"signal {number}")
    return driver.log.stem


def _trains(world: World) -> Driver | None:
    """The driver, once one of its trials has ended; None if it has ended itself."""
    before = world.num_told()
    if not any(driver.told() for driver in world.running()):
        world.wait_for_trials(1 if before == world.num_told() else 0, STARTS_WITHIN_S)
    return world.running()[0] if world.running() else None


def _end(driver: Driver, everything: list[psutil.Process], after: str) -> None:
    """Wait for the end of a driver and of all that it has started; Ray's agents would wait a minute."""
    if not driver.ends_within(ENDS_WITHIN_S):
        raise StrikeError(f"{driver.log.stem} did not end after {after}")
    for each in everything:
        with suppress(psutil.Error):
            if "Agent" in " ".join(each.cmdline()):
                each.kill()
    _, left = psutil.wait_procs(everything, timeout=ENDS_WITHIN_S)
    names = []
    for each in left:
        with suppress(psutil.Error):
            names.append(" ".join(each.cmdline())[:100])
            each.kill()
    if names:
        raise StrikeError(f"after {after} of {driver.log.stem} there are left: {', '.join(names)}")


def _family(driver: Driver, name: str = "") -> list[psutil.Process]:
    """The processes under a driver, by a part of their command line."""
    found = []
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(driver.pid).children(recursive=True):
            with suppress(psutil.Error):
                if name in " ".join(child.cmdline()):
                    found.append(child)
    return found


def _kill(process: psutil.Process) -> str | None:
    """Kill a process; its number, or None if it has ended."""
    with suppress(psutil.NoSuchProcess):
        process.kill()
        return f"process {process.pid}"
    return None
