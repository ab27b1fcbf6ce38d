"""Chaos tests: a study under faults of a seeded schedule, and an oracle that checks the result.

python -m tests.chaos [--faults 1000] [--errors 200] [--power-cuts 60] [--seed 1] [--scene NAME] [--episode N]
    [--keep FOLDER] [--table FILE]

An episode is one study in its own store, with several faults one after the other; then the study may finish
without faults. Most episodes are a grid, some a search with two drivers, and one of twenty runs on Ray.
`--scene` selects one of these scenes, or `bucket`, the grid with its store in a bucket. The kinds, times and
files of the faults depend only on the seed and the number of the episode. So `--episode` repeats an episode,
as far as processes of a machine are repeatable. The logs of failed episodes are kept.

`--errors` and `--power-cuts` use a library that makes calls of the file system fail or write short, and that
forgets at a power cut whatever was not flushed. With `--forgetful`, no fsync of a folder counts: the control,
in which reported trials must be lost.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bucket import Server
    from .disk import Disk
    from .faults import Strike
    from .world import World

MAX_KILLS_IN_A_ROW = 3
"""A trial must end between more kills, since six deaths in one epoch make it fail by design."""


@dataclass(slots=True)
class Tally:
    """Counts of each fault kind: executed, impossible, and episodes with objections of the oracle."""

    struck: Counter[str] = field(default_factory=Counter[str])
    missed: Counter[str] = field(default_factory=Counter[str])
    problems: int = 0


def strike_some(
    world: "World", kinds: Mapping[str, tuple[int, "Strike"]], draw: Random, tally: Tally
) -> None:
    """Execute the faults of an episode; raises StrikeError."""
    from .kinds import KILLS

    kills = 0
    for _ in range(world.scene.faults):
        (name,) = draw.choices(list(kinds), weights=[weight for weight, _ in kinds.values()])
        trials, delay_s, own = draw.randrange(4), 0.15 * draw.random(), Random(draw.random())
        if kills >= MAX_KILLS_IN_A_ROW:
            trials, kills = max(trials, 1), 0
        kills += name in KILLS
        while len(world.running()) < world.scene.drivers:
            world.begin()
        world.wait_for_trials(trials, 10.0)
        time.sleep(delay_s)
        world.faults.append(f"{name}: …")
        what = kinds[name][1](world, own)
        (tally.missed if what is None else tally.struck)[name] += 1
        world.faults[-1] = f"{name}: {what or 'nothing to strike'}"


def run_episodes(options: argparse.Namespace, folder: Path, disk: "Disk", server: "Server | None") -> Tally:
    """Run episodes until enough faults were executed, or one selected episode."""
    from .bucket import make_bucket_world
    from .faults import StrikeError
    from .kinds import kinds_of, left_out
    from .oracle import OracleError, judge, undisturbed
    from .scenes import SCENES
    from .world import make_world

    tally, episode, expected = Tally(), options.episode or 0, dict[str, Any]()
    for name in left_out(disk):
        print(f"left out, since this machine does not allow it: {name}")
    while tally.struck.total() < options.faults:
        draw = Random(f"{options.seed} {episode}")
        (name,) = draw.choices(list(SCENES), [weight for weight, _ in SCENES.values()])
        name = options.scene or name
        scene = SCENES[name][1]
        if scene.text not in expected:
            expected[scene.text] = undisturbed(make_world(scene, folder / f"undisturbed-{name}", disk))
        begun = folder / f"episode-{episode}"
        world = make_bucket_world(scene, begun, server, disk) if server else make_world(scene, begun, disk)
        try:
            strike_some(world, kinds_of(scene, disk), draw, tally)
            judge(world, expected[scene.text])
        except (StrikeError, OracleError) as error:
            tally.problems += 1
            print(
                f"episode {episode}, {name}, of seed {options.seed}:",
                *world.faults,
                error,
                sep="\n  ",
                flush=True,
            )
            world.end()
            if options.keep:
                keep(world, options.keep / world.folder.name)
        finally:
            world.end()
        world.remove_store()
        if options.episode is not None:
            break
        episode += 1
    return tally


def strike_disk(options: argparse.Namespace, folder: Path, disk: "Disk", tally: Tally) -> None:
    """Run the episodes with errors of the file system and with power cuts."""
    from .disk_faults import run_disk_episodes
    from .oracle import undisturbed
    from .scenes import SMALL
    from .world import make_world

    def report(kind: str, world: "World | None", error: Exception | None) -> None:
        tally.struck[kind] += 1
        if world is not None:
            tally.problems += 1
            print(
                f"{world.folder.name} of seed {options.seed}:", *world.faults, error, sep="\n  ", flush=True
            )
            if options.keep:
                keep(world, options.keep / world.folder.name)

    run_disk_episodes(
        folder,
        disk,
        undisturbed(make_world(SMALL, folder / "undisturbed-small", disk)),
        errors=options.errors,
        cuts=options.power_cuts,
        seed=options.seed,
        is_forgetful=options.forgetful,
        report=report,
    )


def keep(world: "World", folder: Path) -> None:
    """Copy the logs and the store of a world."""
    shutil.copytree(world.folder, folder)
    world.copy_store(folder / "store")


def main() -> int:
    """Run the episodes, and print the number of faults by kind."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--faults", type=int, default=1000, help="how many must strike")
    parser.add_argument("--errors", type=int, default=0, help="how many errors of the file system")
    parser.add_argument("--power-cuts", type=int, default=0, help="how many power cuts")
    parser.add_argument("--forgetful", action="store_true", help="forget what is flushed of folders")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--scene", choices=["grid", "search", "ray", "bucket"], help="what alone is disturbed"
    )
    parser.add_argument("--episode", type=int, help="run this one alone")
    parser.add_argument("--keep", type=Path, help="where to leave what went wrong")
    parser.add_argument("--table", type=Path, help="the document whose table of kinds is replaced")
    options = parser.parse_args()
    if options.errors or options.power_cuts:
        from .faulty_disk import start_again_with_library

        start_again_with_library()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # before torch is imported: a process with threads must not be forked
    from activemem.engine.trial import outcome

    from .bucket import Server
    from .disk import Disk

    outcome.commit()  # once, for all that is forked
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        disk = Disk(Path(folder, "disk"))
        server = Server() if options.scene == "bucket" else None
        try:
            tally = run_episodes(options, Path(folder), disk, server) if options.faults else Tally()
            if options.errors or options.power_cuts:
                strike_disk(options, Path(folder), disk, tally)
        finally:
            disk.remove()
            if server is not None:
                server.remove()
    for name in sorted(tally.struck.keys() | tally.missed.keys()):
        print(f"{tally.struck[name]:5}  {name}")
    seconds = time.monotonic() - begun
    print(f"{tally.struck.total()} faults, {tally.problems} episodes with problems, {seconds:.0f} s")
    if options.table:
        from .report import write_table

        write_table(
            options.table,
            command=f"python -m tests.chaos --faults {options.faults} --seed {options.seed}",
            struck=tally.struck,
            problems=tally.problems,
            seconds=seconds,
        )
    return 1 if tally.problems else 0


if __name__ == "__main__":
    sys.exit(main())
