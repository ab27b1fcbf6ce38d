"""Opening what should be a file: a pipe, a folder or a link to nothing is refused, and never waited for."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from ..errors import UnreadableError

_KINDS: Final = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_OF_THIS_FILE: Final = (errno.EACCES, errno.EPERM, errno.EIO, errno.ELOOP, errno.ENXIO, errno.EISDIR)
"""Errors of one file. Other errors, such as too many open files, concern the machine, not the file."""


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read its bytes.

    Raises `UnreadableError` with the reason, and `FileNotFoundError`.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        if path.is_symlink():
            raise UnreadableError("expected a file, got a link to nothing") from None
        raise
    except OSError as error:
        raise _unreadable(error) from error
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        raise UnreadableError(f"expected a file, got {_KINDS.get(kind, 'something else')}")
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path) -> bytes:
    """Return the bytes of a file; raises as `open_regular`."""
    try:
        with open_regular(path) as file:
            return file.read()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(error) from error


def is_other_than_file(path: Path) -> bool:
    """Return whether something but a file has this name, by one look, since others may remove a file."""
    try:
        kind = stat.S_IFMT(path.lstat().st_mode)
    except OSError:
        return False
    return kind != stat.S_IFREG and not (kind == stat.S_IFLNK and path.is_file())


def _unreadable(error: OSError) -> Exception:
    """Return `UnreadableError` for an error of this file alone, and an error of the machine unchanged."""
    if error.errno not in _OF_THIS_FILE:
        return error
    return UnreadableError(f"it cannot be read: {os.strerror(error.errno)}")
