"""The oracle: what a world must be in the end, whatever has happened to it."""

import hashlib
import json
import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import psutil

from activemem.engine.trial.checkpoints import load_weights
from activemem.storage import Store

from . import damage
from .drivers import Driver, in_child
from .world import IDS, NAME, World

PATIENCE_S = 120.0
_DAY_S = 24 * 3600.0
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_FILES_THAT_STAY = re.compile(
    rf"(trials|metrics)/{NAME}/compacted-[0-9a-f]+-[0-9a-f]+\.parquet"
    rf"|weights/[0-9a-f]{{16}}\.pt|studies/{NAME}\.json|quarantine/.*"
)
_TRAINED_AGAIN = ("row", "merged rows", "metrics", "merged metrics", "weights")
"""Where damage costs a trial what is done of it."""

_OF_THE_CLOCK = ("attempt", "seconds", "peak_mib", "started", "finished", "host", "metrics")


class OracleError(Exception):
    """A world is not as it must be; the message says in which way."""


def undisturbed(world: World) -> dict[str, Any]:
    """What a world is after a run that nothing happens to."""
    _must_end(world.begin())
    return _describe(world)


def judge(world: World, expected: dict[str, Any]) -> None:
    """Let the study end in peace, and look at it; raises OracleError.

    What the store tells of damage is mended as its documents say: by `store repair`, by removing what is no
    file of a store, and by running the study again.
    """
    for driver in world.drivers:
        if not driver.ends_within(PATIENCE_S):
            raise OracleError(f"{driver.log.stem} does not end")
    _must_end(world.begin())
    _must_end(world.command("store", "check"), statuses=(0, 1))
    problems = _silent(world)
    _must_end(world.command("store", "repair"), statuses=(0, 1))
    damage.remove_strangers(world)
    _must_end(world.begin())
    _pass_a_day(world)
    last = world.begin()
    _must_end(last)
    if last.told():
        problems.append("a run of a study that has ended trained something")
    found = _describe(world)
    problems += [f"{name} differ from the undisturbed" for name in expected if found[name] != expected[name]]
    problems += _repeated(world) + _left_behind(world)
    problems += [f"{each.log.stem} wrote a traceback" for each in world.drivers if "Traceback" in each.text()]
    if problems:
        raise OracleError("\n  ".join(problems))


def _must_end(driver: Driver, statuses: tuple[int, ...] = (0,)) -> None:
    """Wait for the end of a command that nothing disturbs."""
    if not driver.ends_within(PATIENCE_S):
        raise OracleError(f"{driver.log.stem} does not end, and nothing disturbs it")
    if driver.status not in statuses:
        raise OracleError(f"{driver.log.stem} ended with {driver.status}, and nothing disturbed it")


def _describe(world: World) -> dict[str, Any]:
    """The table of a study, its rows and metrics without times, its weights and how often trials are done."""
    table = world.command("table", "render", NAME, "--format", "markdown")
    _must_end(table)
    page = world.folder / "description.json"
    _must_end(in_child(lambda: _dump(world.store, page), world.folder / "description.log", world.folder))
    return {"the table": _DATE.sub("DATE", table.output()), **json.loads(page.read_text(encoding="utf-8"))}


def _dump(root: Path, page: Path) -> None:
    """Write a description of a store's contents."""
    store = Store(root)
    metrics = store.metrics().filter(pl.col("name") != "tokens_per_s").drop("attempt")
    weights = {path.stem: _digest(path) for path in sorted(root.glob("weights/*.pt"))}
    page.write_text(
        json.dumps(
            {"rows": store.trials().drop(_OF_THE_CLOCK).rows(), "metrics": metrics.rows(), "weights": weights}
        ),
        encoding="utf-8",
    )


def _digest(path: Path) -> str:
    """A digest of the weights in a file."""
    digest = hashlib.sha256()
    for name, weight in sorted(load_weights(path).items()):
        digest.update(name.encode() + weight.numpy().tobytes())
    return digest.hexdigest()


def _repeated(world: World) -> list[str]:
    """Trials that were told as done more often than once, and once for each damage to what they had done."""
    spoilt = Counter(trial for each in world.damages if each.place in _TRAINED_AGAIN for trial in each.trials)
    told = Counter((status, *names) for driver in world.drivers for status, *names in driver.told())
    problems = [f"a trial was told as {status}" for status, *_ in told if status != "done"]
    for (_, *names), times in told.items():
        trial = IDS[tuple(names)]
        if times > 1 + spoilt[trial]:
            problems.append(
                f"trial {trial} was {times} times told as done, its files damaged {spoilt[trial]} times"
            )
    return problems


def _silent(world: World) -> list[str]:
    """Damage that is still there and of which nothing was told, in all that was printed and noted."""
    notes = world.store / "quarantine" / "notes.txt"
    told = "\n".join(driver.text() for driver in world.drivers)
    told += notes.read_text(encoding="utf-8") if notes.is_file() else ""
    return [
        f"{each.how}, {each.place} {each.path.relative_to(world.store)}: nothing was told of it"
        for each in world.damages
        if each.path.name not in told and each.is_there() and each.place not in damage.WITHOUT_PROMISE
    ]


def _pass_a_day(world: World) -> None:
    """Give all files the times that they would have two days later."""
    for path in world.store.rglob("*"):
        os.utime(path, (time.time() - 2 * _DAY_S,) * 2, follow_symlinks=False)


def _left_behind(world: World) -> list[str]:
    """Processes and files that should not be there any more."""
    left = [f"process {each.pid}" for each in psutil.Process().children(recursive=True)]
    for path in sorted(world.store.rglob("*")):
        name = str(path.relative_to(world.store))
        is_file = not path.is_dir() or path.parent.name == "checkpoints"
        if is_file and not _FILES_THAT_STAY.fullmatch(name):
            left.append(name)
    return [f"{each} is left" for each in left]
