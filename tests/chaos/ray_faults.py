"""Faults of a driver with its own Ray cluster: killed workers, nodes and heads."""

import signal
from contextlib import suppress
from random import Random

import psutil

from .drivers import Driver
from .faults import StrikeError
from .world import World

ENDS_WITHIN_S = 120.0
"""The time limit for a driver to end with its processes after losing part of Ray."""

STARTS_WITHIN_S = 120.0


def kill_worker(world: World, draw: Random) -> str | None:
    """Kill a training process; Ray starts another, and the study continues."""
    driver = _trains(world)
    found = _family(driver, "ray::ResourceTrainable") if driver else []
    if not found:
        return None
    return _kill(draw.choice(found))


def kill_part(world: World, _draw: Random, *, name: str) -> str | None:
    """Kill a part of a driver's cluster; the driver and all of its processes must end."""
    driver = _trains(world)
    found = _family(driver, name) if driver else []
    if not driver or not found:
        return None
    everything = _family(driver)
    killed = _kill(found[0])
    _end(driver, everything, f"its {name} was killed")
    return killed


def kill_driver(world: World, _draw: Random) -> str | None:
    """Kill a driver; its cluster must end."""
    return _signal(world, signal.SIGKILL)


def terminate_driver(world: World, _draw: Random) -> str | None:
    """Send SIGTERM to a driver; it must end cleanly, with its cluster."""
    return _signal(world, signal.SIGTERM)


def _signal(world: World, number: int) -> str | None:
    """Send a signal to a driver and wait for its end."""
    driver = _trains(world)
    if driver is None:
        return None
    everything = _family(driver)
    driver.send(number)
    _end(driver, everything, f"signal {number}")
    return driver.log.stem


def _trains(world: World) -> Driver | None:
    """Return a driver after one of its trials has ended; None if the driver has ended."""
    before = world.num_told()
    if not any(driver.told() for driver in world.running()):
        world.wait_for_trials(1 if before == world.num_told() else 0, STARTS_WITHIN_S)
    return world.running()[0] if world.running() else None


def _end(driver: Driver, everything: list[psutil.Process], after: str) -> None:
    """Wait for the end of a driver and its processes; Ray's agents are ended at once."""
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
    """Return the descendants of a driver, filtered by their command lines."""
    found = []
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(driver.pid).children(recursive=True):
            with suppress(psutil.Error):
                if name in " ".join(child.cmdline()):
                    found.append(child)
    return found


def _kill(process: psutil.Process) -> str | None:
    """Kill a process; return its number, None if it had ended."""
    with suppress(psutil.NoSuchProcess):
        process.kill()
        return f"process {process.pid}"
    return None
