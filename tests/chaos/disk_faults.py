"""Episodes with errors of the file system, and with power cuts."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from activemem.storage import Store

from .disk import Disk
from .drivers import Fate, in_child
from .faulty_disk import (
    CALLS,
    INJECTIONS,
    Injection,
    cut_power,
    error_settings,
    power_settings,
)
from .oracle import OracleError, judge
from .scenes import NAME, SMALL
from .world import World, make_world

ENDS_WITHIN_S = 120.0
"""The time limit for a driver whose disk fails, also on a busy machine."""

CUTS_IN_A_ROW = 3
_TRIES = 8
_MONTH_S = 30 * 24 * 3600.0

KEEPSAKES = {
    "thesis.tex": b"mine",
    "unfinished/paper.tex": b"mine too",
    "unfinished/.paper.tex.0123456789abcdef0123456789abcdef": b"and this",
    "weights/.env": b"KEY=1",
    "leases/notes-1": b"to do",
    f"trials/{NAME}/draft.md": b"a draft",
}
"""Old files of the user's in a store, which must stay."""


def _put_keepsakes(world: World) -> None:
    Store(world.place).make()
    then = time.time() - _MONTH_S
    for name, data in KEEPSAKES.items():
        path = world.store / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (then, then))
    world.keepsakes = dict(KEEPSAKES)


def inject_error(
    world: World, injection: Injection, draw: Random, expected: dict[str, Any], *, is_new: bool
) -> bool:
    """Run a driver whose calls fail, then finish the study; return False if no call has failed.

    The driver must end, and say so if it has not trained all trials. Raise OracleError otherwise.
    """
    if not is_new:
        _put_keepsakes(world)
    log = world.folder / "injected"
    first = int(CALLS[injection.call] ** draw.random())
    world.faults.append(f"{injection} from call {first}, {'a new store' if is_new else 'with own files'}")
    driver = world.begin(Fate(library=tuple(error_settings(injection, first, log).items())))
    if not driver.ends_within(ENDS_WITHIN_S):
        raise OracleError(f"{driver.log.stem} does not end")
    if not log.is_file():
        return False
    told = len(driver.told())
    if driver.status == 0 and told < len(world.scene.ids):
        raise OracleError(
            f"{driver.log.stem} ended with 0 and reported {told} of {len(world.scene.ids)} trials"
        )
    if driver.status != 0 and not driver.log.read_text("utf-8").strip():
        raise OracleError(f"{driver.log.stem} ended with {driver.status} and said nothing")
    judge(world, expected)
    return True


def _stored_trials(world: World) -> list[str]:
    """Return the trials in the store. Another process reads it, since users of Polars must not be forked."""
    page = world.folder / "stored.json"

    def dump() -> None:
        page.write_text(json.dumps(list(Store(world.place).latest_attempts())), encoding="utf-8")

    reader = in_child(dump, world.folder / "stored.log", world.folder)
    if not reader.ends_within(ENDS_WITHIN_S) or reader.status != 0:
        raise OracleError(f"the store cannot be read after a power cut: {reader.text()}")
    return json.loads(page.read_text(encoding="utf-8"))


def cut_power_some(world: World, draw: Random, expected: dict[str, Any], *, is_forgetful: bool) -> int:
    """Cut the power of some drivers, then finish the study; return the number of cuts.

    After each cut the store must have every trial that was reported before. Raise OracleError otherwise.
    """
    shadow = world.folder / "shadow"
    for number in range(CUTS_IN_A_ROW):
        settings = power_settings(shadow, world.store, is_forgetful=is_forgetful)
        driver = world.begin(Fate(library=tuple(settings.items())))
        world.wait_for_trials(draw.randrange(4), ENDS_WITHIN_S)
        time.sleep(0.3 * draw.random())
        driver.end()
        world.faults.append(f"power cut {number}")
        cut_power(shadow, world.store)
        stored = _stored_trials(world)
        for names in (tuple(names) for each in world.drivers for _, *names in each.told()):
            if world.scene.ids[names] not in stored:
                raise OracleError(f"trial {world.scene.ids[names]} was reported, and a power cut has lost it")
    judge(world, expected)
    return CUTS_IN_A_ROW


def run_disk_episodes(
    folder: Path,
    disk: Disk,
    expected: dict[str, Any],
    *,
    errors: int,
    cuts: int,
    seed: int,
    is_forgetful: bool,
    report: Callable[[str, World | None, OracleError | None], None],
) -> None:
    """Run episodes until this many errors and power cuts have struck.

    `report` is called after each episode with the kind of fault, and with the world and the error if the
    oracle objects.
    """

    def attempt(kind: str, name: str, episode: Callable[[World], int]) -> int:
        world = make_world(SMALL, folder / name, disk)
        try:
            struck = episode(world)
        except OracleError as error:
            report(kind, world, error)
            return 1
        else:
            for _ in range(struck):
                report(kind, None, None)
            return struck
        finally:
            world.end()
            world.remove_store()

    order = Random(seed).sample(INJECTIONS, len(INJECTIONS))
    for number in range(errors):
        injection, draw = order[number % len(order)], Random(f"{seed} error {number}")
        for tried in range(_TRIES):  # the call may not happen so often
            done = attempt(
                injection.kind,
                f"error-{number}-{tried}",
                lambda world, which=injection, chance=draw, new=number % 2 == 0: int(
                    inject_error(world, which, chance, expected, is_new=new)
                ),
            )
            if done:
                break
    struck = 0
    while struck < cuts:
        draw = Random(f"{seed} cut {struck}")
        struck += attempt(
            "a power cut",
            f"cuts-{struck}",
            lambda world, chance=draw: cut_power_some(world, chance, expected, is_forgetful=is_forgetful),
        )
