"""The oracle: the required final state of a world after any faults."""

import hashlib
import json
import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import psutil

from activemem import load_study
from activemem.engine.core.models import read_model_file
from activemem.reporting.outcomes import load_outcomes
from activemem.storage import Store
from activemem.studies.searches import points as search_points

from . import damage
from .clock import set_clock
from .drivers import TEMPORARY, Driver, in_child
from .scenes import NAME
from .world import World

PATIENCE_S = 300.0
_DAYS = 2.0
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_FILES_THAT_STAY = re.compile(
    rf"(trials|metrics)/{NAME}/compacted-[0-9a-f]+-[0-9a-f]+\.parquet"
    r"|\.activemem-store|weights/[0-9a-f]{16}\.safetensors|final_checkpoints/[0-9a-f]{16}\.pt"
    rf"|studies/{NAME}\.json|leases/sweeps|quarantine/.*"
)
_NEVER_WRITTEN = ("Traceback", "which is stored already")
"""Texts that no driver may print: leases prevent duplicate attempts, and retries recognise their own rows."""

_LOCKS = ("making",)
"""Empty files that remain in temporary folders."""

_TRAINED_AGAIN = ("row", "merged rows", "metrics", "merged metrics", "weights")
"""Places whose damage loses a trial's results."""

_OF_THE_CLOCK = ("attempt", "seconds", "peak_mib", "started", "finished", "host", "metrics")


class OracleError(Exception):
    """Raised if a world is in a wrong state; the message says how."""


def undisturbed(world: World) -> dict[str, Any]:
    """Return the state of a world after an undisturbed run."""
    _must_end(world.begin(options=("--local", *world.scene.reference)))
    return _describe(world)


def judge(world: World, expected: dict[str, Any]) -> None:
    """Finish the study without faults, and check the world; raises OracleError.

    Reported damage is repaired as the documents of the store say: by `store repair`, by removing foreign
    files, and by running the study again.
    """
    for driver in world.drivers:
        if not driver.ends_within(PATIENCE_S):
            raise OracleError(f"{driver.log.stem} does not end")
    set_clock(0.0)
    begin = partial(world.begin, options=("--local",))
    _must_end(begin())
    _must_end(world.command("store", "check"), statuses=(0, 1))
    problems = _silent(world)
    _must_end(world.command("store", "repair"), statuses=(0, 1))
    damage.remove_strangers(world)
    _must_end(begin())
    world.pass_days(_DAYS)
    last = begin()
    _must_end(last)
    if last.told():
        problems.append("a run of a study that has ended trained something")
    found = _describe(world)
    compare = _compare_search if world.scene.points else _compare
    problems += compare(world, found, expected)
    problems += _repeated(world) + _left_behind(world) + _touched(world)
    for what in _NEVER_WRITTEN:
        problems += [f"{each.log.stem} wrote {what!r}" for each in world.drivers if what in each.text()]
    if problems:
        raise OracleError("\n  ".join(problems))


def _must_end(driver: Driver, statuses: tuple[int, ...] = (0,)) -> None:
    """Wait for the successful end of an undisturbed command."""
    if not driver.ends_within(PATIENCE_S):
        raise OracleError(f"{driver.log.stem} does not end, and nothing disturbs it")
    if driver.status not in statuses:
        raise OracleError(f"{driver.log.stem} ended with {driver.status}, and nothing disturbed it")


def _describe(world: World) -> dict[str, Any]:
    """Return a study's table, its points in order, and each trial's row, metrics and weights."""
    page = world.folder / "description.json"
    dump = partial(_dump, world.place, world.scene.text, page)
    _must_end(in_child(dump, world.folder / "description.log", world.folder))
    found = json.loads(page.read_text(encoding="utf-8"))
    if world.scene.points:
        return found
    table = world.command("table", "render", NAME, "--format", "markdown")
    _must_end(table)
    return {"the table": _DATE.sub("DATE", table.output()), **found}


def _dump(place: str, text: str, page: Path) -> None:
    """Write a description of a store's contents, without times."""
    store, study = Store(place), load_study(text)
    metrics: dict[str, list[tuple[Any, ...]]] = {}
    for trial, *rest in store.metrics().filter(pl.col("name") != "tokens_per_s").drop("attempt").iter_rows():
        metrics.setdefault(trial, []).append(rest)
    search_points.MAX_POINTS = len(metrics)
    points = search_points.find_points(study, load_outcomes(store, study)) if study.search else None
    ranking = [(each.values, each.mean) for each in points.best()] if points else []
    store.files.trials_with_weights(())  # of a bucket it fetches the names of all
    kept = sorted(path.stem for path in store.root.glob("weights/*.safetensors"))
    found = {
        "rows": {row["trial"]: row for row in store.trials().drop(_OF_THE_CLOCK).iter_rows(named=True)},
        "metrics": metrics,
        "weights": {trial: _digest(store.files.weights_file(trial)) for trial in kept},
        "ranking": ranking,
    }
    page.write_text(json.dumps(found), encoding="utf-8")


def _compare(_world: World, found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Return the differences from the undisturbed result."""
    return [f"{name} differ from the undisturbed" for name in expected if found[name] != expected[name]]


def _compare_search(world: World, found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Return what is wrong with a search; `expected` has the results of all of its points.

    Which points it tried, and which it gave up, depends on who was faster; what they came to does not.
    """
    problems, seeds = list[str](), len({names[-1] for names in world.scene.ids})
    rows = found["rows"]
    if len(rows) != seeds * world.scene.points:
        problems.append(f"{len(rows)} trials, expected {seeds} of each of {world.scene.points} points")
    for trial, row in rows.items():
        if row["status"] == "done":
            same = all(found[name][trial] == expected[name][trial] for name in ("rows", "metrics", "weights"))
        else:
            course = [each for each in expected["metrics"][trial] if each[1] <= row["epochs"]]
            same = found["metrics"].get(trial, []) == course
        if not same:
            problems.append(f"trial {trial}, {row['status']}, differs from the undisturbed")
    tried = [values for values, _ in found["ranking"]]
    if found["ranking"] != [each for each in expected["ranking"] if each[0] in tried]:
        problems.append("the points are in another order")
    return problems


def _digest(path: Path) -> str:
    """Return a digest of the weights in a file."""
    digest = hashlib.sha256()
    for name, weight in sorted(read_model_file(path).weights.items()):
        digest.update(name.encode() + weight.numpy().tobytes())
    return digest.hexdigest()


def _repeated(world: World) -> list[str]:
    """Return the trials that are reported as done more often than damage to their results explains."""
    spoilt = Counter(trial for each in world.damages if each.place in _TRAINED_AGAIN for trial in each.trials)
    told = {status for driver in world.drivers for status, *_ in driver.told()}
    statuses = world.scene.statuses
    problems = [f"a trial was told as {status}" for status in told if status not in statuses]
    ended = Counter(tuple(names) for driver in world.drivers for _, *names in driver.told())
    for names, times in ended.items():
        trial = world.scene.ids[names]
        if times > 1 + spoilt[trial]:
            problems.append(
                f"trial {trial} was {times} times told as ended, its files damaged {spoilt[trial]} times"
            )
    return problems


def _silent(world: World) -> list[str]:
    """Return the damage that still exists and that no output or log mentions."""
    notes = world.read("quarantine/notes.txt") or b""
    told = "\n".join(driver.text() for driver in world.drivers)
    told += notes.decode(errors="replace")
    return [
        f"{each.how}, {each.place} {each.path}: nothing was told of it"
        for each in world.damages
        if each.path.name not in told and world.is_there(each) and each.place not in damage.WITHOUT_PROMISE
    ]


def _touched(world: World) -> list[str]:
    """Return the files of the user's that a command has changed or removed."""
    return [f"{name} was touched" for name, data in world.keepsakes.items() if world.read(name) != data]


def _left_behind(world: World) -> list[str]:
    """Return the processes and files that the world has left behind."""
    children = psutil.Process().children(recursive=True)
    left = [f"process {each.pid}" for each in children if each.pid not in world.helpers()]
    ours = (name for name in world.names() if name not in world.keepsakes)
    left += [name for name in ours if not _FILES_THAT_STAY.fullmatch(name)]
    temporary = world.folder / TEMPORARY
    for path in sorted(temporary.rglob("*")):
        if not path.is_dir() and path.name not in _LOCKS:
            left.append(str(path.relative_to(world.folder)))
    return [f"{each} is left" for each in left]
