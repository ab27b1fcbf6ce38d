"""The files that a store makes: their names, and removal that follows no link.

A folder of results may also have files of the user's, and its folders may be links to other folders. So a
store removes or moves only regular files whose names it makes itself, and reaches them without a link.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Final

MARK: Final = ".activemem-store"
"""The file that marks a folder or a bucket as a store."""

DATASETS: Final = ("trials", "metrics", "probes", "tuning", "outputs", "tuned_outputs")
FOLDERS: Final = (
    *DATASETS,
    "weights",
    "final_checkpoints",
    "checkpoints",
    "studies",
    "leases",
    "unfinished",
    "quarantine",
)
"""The folders of a store."""

_ID: Final = "[0-9a-f]{16}"
_NAME: Final = "[A-Za-z0-9][A-Za-z0-9_.-]{0,99}"
_DATA: Final = rf"(?:{_ID}-\d+|(?:group|compacted)-[0-9a-f]{{16}}-[0-9a-f]{{8}})\.parquet"
_CHECKPOINT: Final = r"(?:state\.pt|previous\.pt|begun|reached\.json|crash_report|memory_tries)"
_WRITTEN: Final = (
    rf"(?:{_DATA}|{_NAME}\.json|{_ID}\.safetensors|{_ID}\.pt|{_CHECKPOINT}|sweeps|notes\.txt|now|seen|probe"
    rf"|{re.escape(MARK)})"
)
_TEMPORARY: Final = rf"\.{_WRITTEN}\.([0-9a-f]{{16}})[0-9a-f]{{16}}"
_OWN: Final = re.compile(
    rf"(?:{'|'.join(DATASETS)})/{_NAME}/{_DATA}"
    rf"|weights/(?:{_ID}\.safetensors|{_TEMPORARY})"
    rf"|final_checkpoints/(?:{_ID}\.pt|{_TEMPORARY})"
    rf"|checkpoints/{_ID}/(?:{_CHECKPOINT}(?:\.damaged)?|{_TEMPORARY})"
    rf"|studies/{_NAME}\.json"
    rf"|leases/(?:{_ID}-\d+|sweeps)"
    rf"|unfinished/{_TEMPORARY}",
    re.ASCII,
)
_CHECKPOINT_FOLDER: Final = re.compile(rf"checkpoints/{_ID}", re.ASCII)


def is_own(name: str) -> bool:
    """Return whether a path relative to a store, with slashes, is the name of a file that a store makes."""
    return _OWN.fullmatch(name) is not None


def writer_mark(name: str) -> str | None:
    """Return the mark of the process that writes the file of a temporary name, or None for another name."""
    found = re.fullmatch(_TEMPORARY, name, re.ASCII)
    return None if found is None else found[1]


def is_checkpoint_folder(name: str) -> bool:
    """Return whether a path relative to a store is the name of a trial's checkpoint folder."""
    return _CHECKPOINT_FOLDER.fullmatch(name) is not None


def linked_folder(root: Path, path: Path) -> Path | None:
    """Return the first folder between a store and one of its paths that is a link, or None."""
    inner = path.relative_to(root)
    above = (root / parent for parent in reversed(inner.parents) if parent.parts)
    return next((folder for folder in above if folder.is_symlink()), None)


def is_own_file(root: Path, path: Path) -> bool:
    """Return whether a path is a regular file of the store's own, which no link leads to."""
    try:
        is_regular = stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
    return is_regular and is_own(path.relative_to(root).as_posix()) and linked_folder(root, path) is None


def remove_own(root: Path, path: Path) -> None:
    """Remove a file of the store's own, or the store's files in a trial's checkpoint folder.

    Anything else stays: files of other names, links, and whatever only a link leads to. The folder is removed
    if it is empty then. A missing path is ignored; other errors raise OSError.
    """
    name = path.relative_to(root).as_posix()
    with suppress(FileNotFoundError, NotADirectoryError):
        if is_own(name):
            with _opened(root, PurePosixPath(name).parent) as folder:
                _unlink_regular(path.name, folder)
        elif is_checkpoint_folder(name):
            with _opened(root, PurePosixPath(name)) as folder:
                for each in os.listdir(folder):  # noqa: PTH208 -- of an open folder
                    if is_own(f"{name}/{each}"):
                        _unlink_regular(each, folder)
            with _opened(root, PurePosixPath(name).parent) as parent:
                try:
                    os.rmdir(path.name, dir_fd=parent)
                except OSError as error:
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # it has files of the user's
                        raise


@contextmanager
def _opened(root: Path, inner: PurePosixPath) -> Iterator[int]:
    """Yield the descriptor of a folder below `root`. Raise NotADirectoryError if a link leads to it.

    Each folder is opened within the one above, so nobody can put a link in between meanwhile.
    """
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in inner.parts:
            try:
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            except OSError as error:
                if error.errno == errno.ELOOP:  # what some systems answer for a link
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), part) from None
                raise
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _unlink_regular(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        if stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
