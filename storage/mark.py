"""The mark of a store: which folders and buckets count as stores, and how one becomes a store."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from .checksums import verify_checksum
from .errors import StoreError, UnreadableError
from .files import read_regular
from .own_files import DATASETS, FOLDERS, MARK, is_own, writer_mark
from .place import Layout, all_names, data_files

VERSION: Final = 1
"""The version of a store's layout, the only line of its mark."""

_QUARANTINED: Final = re.compile(r"quarantine/(.+?)(?:\.\d+)?", re.ASCII | re.DOTALL)
_NUM_SHOWN: Final = 3


def holds_store(layout: Layout) -> bool:
    """Return whether a folder or a bucket is a store: it has the mark, or an intact file of trials' rows.

    Raise `StoreError` if its mark has another version.
    """
    mark = layout.root / MARK
    layout.place.fetch(mark)
    try:
        text = read_regular(mark).decode(errors="replace").strip()
    except FileNotFoundError:
        return _has_rows(layout)
    except UnreadableError as error:
        raise StoreError(f"{mark}: {error}") from error
    if text != str(VERSION):
        raise StoreError(f"{mark}: expected a store of version {VERSION}, got {text[:40]!r}")
    return True


def _has_rows(layout: Layout) -> bool:
    for partition in layout.partitions("trials"):
        for path in data_files(partition):
            with suppress(OSError, StoreError):
                verify_checksum(read_regular(path))
                return True
    return False


def check_links(root: Path) -> None:
    """Raise `StoreError` if a folder of a store is a link, because a run would write into another folder."""
    holders = (*DATASETS, "checkpoints")
    inner = (f"{name}/{each}" for name in holders for each in all_names(root / name))
    above = (*FOLDERS, *inner)
    if (link := next((root / name for name in above if (root / name).is_symlink()), None)) is not None:
        raise StoreError(
            f"{link}: expected a folder of the store, got a link, and nothing is written or removed through "
            "links. Put a folder in its place; the folder of results itself may be a link"
        )


def mark_store(layout: Layout) -> list[str]:
    """Make a folder or a bucket a store: write its mark if it has none.

    Return the names in the folder that do not belong to the store, if it was not a store before. Raise
    `StoreError` if files of other names are in a folder that the store would use, or if one is a link.
    """
    root = layout.root
    check_links(root)
    mark = root / MARK
    layout.place.fetch(mark)
    if mark.is_file():
        holds_store(layout)
        return []
    others = list[str]()
    if not holds_store(layout):
        layout.place.list(*(root / name for name in FOLDERS))
        if clashes := _clashes(root):
            shown = ", ".join(clashes[:_NUM_SHOWN]) + (", …" if len(clashes) > _NUM_SHOWN else "")
            raise StoreError(
                f"{layout.place.name}: expected a store, or a folder that can become one, got a "
                f"folder with files that no store made, where a store keeps its own: {shown}. Choose another "
                "folder: --results DIR"
            )
        others = sorted(
            each.name for each in _listed(root) if each.name not in FOLDERS and writer_mark(each.name) is None
        )
    layout.place.put(mark, f"{VERSION}\n".encode())
    return others


def _clashes(root: Path) -> list[str]:
    """Return the first path of a file that no store made, for each folder of a store; sorted."""
    found = list[str]()
    for name in FOLDERS:
        folder = root / name
        if folder.is_dir():
            names = (path.relative_to(root).as_posix() for path in _walk(folder))
            found += islice((each for each in names if not _belongs(each)), 1)
        elif os.path.lexists(folder):
            found.append(name)
    return sorted(found)


def _belongs(name: str) -> bool:
    moved = _QUARANTINED.fullmatch(name)
    return is_own(name) or name == "quarantine/notes.txt" or (moved is not None and is_own(moved[1]))


def _walk(folder: Path) -> Iterator[Path]:
    """Yield all paths below a folder but folders; links are yielded, not followed."""
    for above, folders, files in os.walk(folder):
        linked = [each for each in folders if os.path.islink(os.path.join(above, each))]  # noqa: PTH114, PTH118 -- many
        yield from (Path(above, each) for each in (*linked, *files))


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []
