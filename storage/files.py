"""Local files with writes that survive a crash, and reads that never block.

After a crash, a file is either complete or missing. Reading a pipe, a folder or a broken link raises an
error.
"""

import errno
import itertools
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from .errors import UnreadableError
from .processes import process_mark


def temporary_name(name: str) -> str:
    """Return a new hidden name for a file that is being written. It also names this process."""
    return f".{name}.{process_mark()}{secrets.token_hex(8)}"


def temporary_paths(path: Path) -> list[Path]:
    """Return the files and folders that processes have begun to write for a path; links are left out."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{32}}")
    return [each for each in path.parent.iterdir() if name.fullmatch(each.name) and not each.is_symlink()]


@contextmanager
def replacing(path: Path, folder: Path | None = None, *, flush: bool = True) -> Iterator[Path]:
    """Yield a temporary path, whose file or folder replaces `path` at the end.

    When the context ends, the contents are flushed, then the file is renamed, and the new name is flushed. So
    a crash of the machine leaves the complete new version or the old one. The temporary path is in `folder`,
    by default the folder of `path`. After an exception the temporary file is removed. Without `flush`, a
    crash of the machine may damage the new version.
    """
    folder = folder or path.parent
    make_folder(path.parent)
    make_folder(folder)
    temporary = folder / temporary_name(path.name)
    try:
        yield temporary
        if flush:
            put_in_place(temporary, path)
        else:
            temporary.replace(path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:  # such as a full disk
            error.filename = str(path)
        remove(temporary)
        raise


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file of the user's. If that fails, as on a full disk, an earlier file keeps its content.

    A link, a device or a pipe is written in place, and so is a file in a folder that takes no new file.
    """
    data = content.encode() if isinstance(content, str) else content
    is_other = path.is_symlink() or (path.exists() and not path.is_file())
    if is_other or (path.is_file() and not os.access(path.parent, os.W_OK)):
        path.write_bytes(data)
        return
    try:
        with replacing(path) as temporary:
            temporary.write_bytes(data)
            if path.is_file():  # who may read it does not change
                shutil.copymode(path, temporary)
    except OSError as error:
        error.filename = str(path)  # not the temporary file, which the user does not know
        raise


def remove(path: Path) -> None:
    """Remove a file or a folder that this process has written, with its contents. Ignore a missing one."""
    try:
        path.unlink(missing_ok=True)
    except OSError:  # IsADirectoryError for a folder on Linux, PermissionError on macOS
        if not path.is_dir():
            raise
        shutil.rmtree(path, ignore_errors=True)


def keep_readers(path: Path, replaced: Iterable[Path]) -> None:
    """Let the group and all others read a new file if they may read one of the files that it replaces."""
    for each in replaced:
        with suppress(OSError):  # it was removed meanwhile, or the file system has no modes
            path.chmod(stat.S_IMODE(path.stat().st_mode | each.stat().st_mode & 0o044))


def put_in_place(temporary: Path, path: Path) -> None:
    """Move a finished file or folder to `path` so that it survives a crash of the machine.

    Its contents are flushed to disk before the move, and its new name after the move.
    """
    within = temporary.rglob("*") if temporary.is_dir() else ()
    for written in (*within, temporary):
        sync(written)
    # a rename is atomic: others see the old file or the new one
    temporary.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Flush the contents of a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, so that they survive a crash of the machine.

    A folder that another process has just made may not be on the disk yet. So at first use, this process also
    flushes the names of the folder and of the one above it, even if they exist.
    """
    missing = list(itertools.takewhile(lambda path: not path.exists(), (folder, *folder.parents)))
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        sync(path.parent)
    if not missing and folder not in _FLUSHED:
        for path in (folder, folder.parent):
            with suppress(OSError):  # this process may not read the folder above
                sync(path.parent)
    _FLUSHED.add(folder)


_FLUSHED: Final = set[Path]()
"""The folders whose names this process has flushed."""


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes to an open file. The system may take only some of them at a time.

    Raise OSError if it takes none, as on a full disk.
    """
    left = memoryview(data)
    while left:
        if not (written := os.write(descriptor, left)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left = left[written:]


def closed_folder(path: Path) -> Path | None:
    """Return the folder that this process may not enter: `path` or one above it; None if there is none."""
    above = (each for each in reversed(path.parents) if not os.access(each, os.X_OK))
    own = path if os.path.isdir(path) and not os.access(path, os.R_OK | os.X_OK) else None  # noqa: PTH112 -- never raise
    return next(above, own)


_IRREGULAR: Final = "expected a file, got a folder, a pipe, a broken link or the like"
_OF_THIS_FILE: Final = (errno.EACCES, errno.EPERM, errno.EIO, errno.ELOOP, errno.ENXIO, errno.EISDIR)
"""Errors of one file. Other errors, such as too many open files, concern the machine, not the file."""


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raise `UnreadableError` with the reason, or `FileNotFoundError`."""
    try:
        # with O_NONBLOCK, opening a pipe does not wait for a writer
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        if path.is_symlink():
            raise UnreadableError(_IRREGULAR) from None
        raise
    except OSError as error:
        raise _unreadable(error) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadableError(_IRREGULAR)
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path) -> bytes:
    """Return the bytes of a file; raise the errors of `open_regular`."""
    try:
        with open_regular(path) as file:
            return file.read()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(error) from error


def _unreadable(error: OSError) -> Exception:
    """Convert a system error that concerns only one file to an `UnreadableError`; keep other errors."""
    if error.errno not in _OF_THIS_FILE:
        return error
    if error.errno == errno.ENXIO:  # what Linux answers to an attempt to open a socket
        return UnreadableError(_IRREGULAR)
    return UnreadableError(f"it cannot be read: {os.strerror(error.errno)}")
