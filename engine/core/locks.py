"""A lock for files that several processes would make: one makes it and the others wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a path, a file beside it, in a folder that is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f"{path.name}.lock")):
        yield
