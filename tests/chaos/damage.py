"""Damage to files of a store: truncation, a flipped bit, other bytes, a pipe, a link, a folder."""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

from .scenes import NAME
from .world import Damage, World

_LOOSE = "?" * 16 + "-*.parquet"
PLACES = {
    "row": f"trials/{NAME}/{_LOOSE}",
    "metrics": f"metrics/{NAME}/{_LOOSE}",
    "merged rows": f"trials/{NAME}/compacted-*.parquet",
    "merged metrics": f"metrics/{NAME}/compacted-*.parquet",
    "checkpoint": "checkpoints/*/*.pt",
    "list of starts": "checkpoints/*/begun",
    "lease": "leases/*",
    "weights": "weights/*.safetensors",
    "study record": f"studies/{NAME}.json",
}
"""The patterns of a store's files by content."""

WITHOUT_PROMISE = ("lease", "list of starts")
"""Places with weaker guarantees: who trains which trial, and the number of starts."""

STOPS_A_STUDY = [
    ("a folder in place of a file", place) for place in ("weights", "study record", "checkpoint")
]
"""Damage that stops a study, with the folder's name, until it is removed."""

BESIDE = {
    "rows": f"trials/{NAME}/foreign.parquet",
    "metrics": f"metrics/{NAME}/foreign.parquet",
    "weights": "weights/foreign.safetensors",
    "study records": "studies/foreign.json",
    "leases": "leases/foreign",
    "unfinished files": "unfinished/foreign",
    "checkpoints": "checkpoints/foreign",
    "studies": "trials/foreign",
}
"""Places for foreign files."""


def cut_short(path: Path, draw: Random) -> None:
    """Truncate a file, possibly to nothing."""
    os.truncate(path, draw.randrange(path.stat().st_size))


def flip_a_bit(path: Path, draw: Random) -> None:
    """Flip one bit of a file in place."""
    with path.open("r+b") as file:
        at = draw.randrange(path.stat().st_size)
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ (1 << draw.randrange(8))]))


def write_other_bytes(path: Path, draw: Random) -> None:
    """Replace a file by unrelated bytes."""
    path.write_bytes(draw.randbytes(draw.randrange(4096)))


def make_pipe(path: Path, _draw: Random) -> None:
    """Replace a file by a pipe."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def make_link_to_nothing(path: Path, _draw: Random) -> None:
    """Replace a file by a broken link."""
    path.unlink(missing_ok=True)
    path.symlink_to("nothing")


def make_folder(path: Path, _draw: Random) -> None:
    """Replace a file by a folder."""
    path.unlink(missing_ok=True)
    path.mkdir()


IN_PLACE: dict[str, Callable[[Path, Random], None]] = {
    "a file cut short": cut_short,
    "a bit flipped": flip_a_bit,
    "other bytes in a file": write_other_bytes,
    "a pipe in place of a file": make_pipe,
    "a link to nothing in place of a file": make_link_to_nothing,
    "a folder in place of a file": make_folder,
}
AS_NEW = {
    "a foreign file": write_other_bytes,
    "a foreign pipe": make_pipe,
    "a foreign link to nothing": make_link_to_nothing,
    "a foreign folder": make_folder,
}


def damage_a_file(world: World, draw: Random, *, how: str) -> str | None:
    """Damage a file of a randomly drawn kind; return its path, or None if there is no file to damage.

    Only regular files are damaged, since opening a pipe for writing would block.
    """
    found = {
        place: sorted(path for path in world.store.glob(pattern) if path.is_file() and not path.is_symlink())
        for place, pattern in PLACES.items()
    }
    places = [place for place, paths in found.items() if paths and (how, place) not in STOPS_A_STUDY]
    if not places:
        return None
    place = draw.choice(places)
    path = draw.choice(found[place])
    ids = frozenset(world.scene.ids.values())
    trials = frozenset(trial for trial in ids if trial in str(path)) or ids
    try:
        IN_PLACE[how](path, draw)
        now = path.read_bytes() if path.is_file() else None
    except (OSError, ValueError, IndexError):  # it has been removed meanwhile, or was empty
        return None
    world.damages.append(Damage(path=path, how=how, place=place, now=now, trials=trials))
    return f"{place} {path.relative_to(world.store)}"


def add_a_file(world: World, draw: Random, *, how: str) -> str | None:
    """Add a foreign file; return its path, or None if no folder is suitable."""
    path = world.store / draw.choice(list(BESIDE.values()))
    if not path.parent.is_dir() or os.path.lexists(path):
        return None
    AS_NEW[how](path, draw)
    world.foreign.append(str(path.relative_to(world.store)))
    return world.foreign[-1]


def remove_strangers(world: World) -> None:
    """Remove irregular and foreign files, as a warned user would."""
    for name in world.foreign:
        world.remove(name)
    # a run sets aside a folder in the place of a checkpoint's file, and leaves its removal to the user
    patterns = [*PLACES.values(), "checkpoints/*/*.damaged"]
    for path in [path for pattern in patterns for path in world.store.glob(pattern)]:
        if path.is_symlink() or not path.is_file():
            world.remove(str(path.relative_to(world.store)))
