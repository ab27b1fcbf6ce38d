"""Durable writes: after a crash a file is there in full or not at all."""

import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .processes import temporary_name


@contextmanager
def replacing(path: Path, folder: Path | None = None) -> Iterator[Path]:
    """Yield a temporary path for a file or a folder, which then becomes `path` or replaces a file there.

    At the end its contents are flushed, it is renamed, and its new name is flushed. So a crash of the machine
    leaves all of it or what was there before. Until then it is in `folder`, by default beside `path`. An
    exception leaves nothing behind.
    """
    with writing_temporary(path, folder or path.parent) as temporary:
        yield temporary
        put_in_place(temporary, path)


@contextmanager
def writing_temporary(path: Path, folder: Path) -> Iterator[Path]:
    """Yield a new path in a folder for what will become `path`; an exception leaves nothing there."""
    _make_folder(path.parent)
    _make_folder(folder)
    temporary = folder / temporary_name(path.name)
    try:
        yield temporary
    except BaseException:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)
        raise


def put_in_place(temporary: Path, path: Path) -> None:
    """Flush a file, or a folder with its contents, rename it to `path`, and flush the name."""
    within = temporary.rglob("*") if temporary.is_dir() else ()
    for written in (*within, temporary):
        sync(written)
    temporary.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Flush the contents of a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents, and flush their names."""
    missing = list(itertools.takewhile(lambda path: not path.exists(), (folder, *folder.parents)))
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        sync(path.parent)
