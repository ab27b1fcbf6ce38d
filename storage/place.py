"""Places of a store: folders and buckets, with their guarantees about files."""

import errno
import os
import shutil
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final, final

from .errors import StoreError
from .files import read_regular, replacing, sync, temporary_name, writing_temporary

_NO_LINKS: Final = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


class Place(ABC):
    """The files of a store, below `root` on this machine.

    For a bucket, `root` is a copy: `fetch`, `fetch_file` and `list_names` update it, and writes reach the
    bucket before a method returns. A write that has returned survives a crash.
    """

    root: Path
    address: str | None
    """The address of a bucket; None for a folder."""

    poll_s: ClassVar[float]
    """The polling interval in seconds for a lease that somebody waits for."""

    lists_are_current: ClassVar[bool]
    """Whether every machine sees at once what another machine has stored."""

    @abstractmethod
    def fetch(self, folder: Path, name: str | None = None) -> None:
        """Update the local copy of a folder; with a name, only its files of that name."""

    @abstractmethod
    def fetch_file(self, path: Path) -> None:
        """Update the local copy of one file."""

    @abstractmethod
    def list_names(self, *folders: Path) -> None:
        """Update the local listing of folders with sizes and times, without file contents."""

    @abstractmethod
    def get(self, path: Path) -> bytes:
        """Return the current bytes of a file; raises `FileNotFoundError` and `UnreadableError`."""

    @abstractmethod
    def exists(self, path: Path) -> bool:
        """Return whether a file exists now."""

    @abstractmethod
    def put(self, path: Path, data: bytes | None = None) -> None:
        """Write or replace a file durably; without data, store the file already written under `root`."""

    @abstractmethod
    def put_new(self, path: Path, data: bytes) -> None:
        """Create a file durably; raise `FileExistsError` if it exists."""

    @abstractmethod
    def check_claims(self) -> None:
        """Raise `StoreError` if the place cannot keep two processes from claiming the same file."""

    @abstractmethod
    def claim(self, path: Path, data: bytes) -> bool:
        """Create a small file atomically; return False if another process has created it.

        It is not flushed: a crash of the machine may lose it.
        """

    @abstractmethod
    def touch(self, path: Path, mark: bytes) -> None:
        """Append a mark to a file that this process has claimed, unless it is gone or has another owner."""

    @abstractmethod
    def delete(self, *paths: Path) -> None:
        """Delete files, and folders with their contents; missing ones are ignored."""

    @abstractmethod
    def move(self, path: Path, target: Path) -> Path:
        """Rename a file to `target`, or to that name with a number if it is taken; return the new path.

        Raise `FileNotFoundError` if another process has moved it.
        """

    @abstractmethod
    def keep_previous(self, path: Path, target: Path) -> None:
        """Keep a file as `target`, if it exists, just before it is replaced."""

    @abstractmethod
    def now(self) -> float:
        """Return the time of a file written now, by the place's clock."""


@final
class FolderPlace(Place):
    """A folder that all nodes can see."""

    address = None
    poll_s = 0.5
    lists_are_current = False

    def __init__(self, root: Path) -> None:
        if os.path.exists(root) and not os.path.isdir(root):  # noqa: PTH110, PTH112 -- never raise
            raise StoreError(f"{root}: expected the folder of a store, got a file")
        self.root, self._unfinished = root, root / "unfinished"

    def fetch(self, folder: Path, name: str | None = None) -> None:
        """Do nothing: the folder is already the store's."""

    def fetch_file(self, path: Path) -> None:
        """Do nothing: the file is already in the store's folder."""

    def list_names(self, *folders: Path) -> None:
        """Do nothing: the folders are already the store's."""

    def get(self, path: Path) -> bytes:
        return read_regular(path)

    def exists(self, path: Path) -> bool:
        return os.path.lexists(path)

    def put(self, path: Path, data: bytes | None = None) -> None:
        """Write a file to `unfinished/`, flush it, rename it, and flush the name."""
        if data is not None:
            with replacing(path, self._unfinished) as temporary:
                temporary.write_bytes(data)

    def put_new(self, path: Path, data: bytes) -> None:
        """Write a file to `unfinished/`, flush it, link it to its name, and flush the name.

        Only one process can create a hard link, on NFS as well. On a file system without links, a file that
        another process writes at the same moment is replaced.
        """
        with writing_temporary(path, self._unfinished) as temporary:
            temporary.write_bytes(data)
            sync(temporary)
            try:
                os.link(temporary, path)
            except FileExistsError:
                if temporary.stat().st_nlink == 1:  # else it is ours: NFS may answer the same request twice
                    raise
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                if path.exists():
                    raise FileExistsError from error
                temporary.replace(path)
            temporary.unlink(missing_ok=True)
            sync(path.parent)

    def check_claims(self) -> None:
        """Do nothing: exclusive creation is atomic on a local disk and on NFS."""

    def claim(self, path: Path, data: bytes) -> bool:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            return False
        try:
            os.write(descriptor, data)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        return True

    def touch(self, path: Path, mark: bytes) -> None:
        """Append a mark in one write."""
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)  # never wait for a pipe
        try:
            os.write(descriptor, mark)
        finally:
            os.close(descriptor)

    def delete(self, *paths: Path) -> None:
        for path in paths:
            try:
                path.unlink(missing_ok=True)
            except (IsADirectoryError, PermissionError):  # the latter for a folder on macOS
                if not path.is_dir():
                    raise
                shutil.rmtree(path, ignore_errors=True)

    def move(self, path: Path, target: Path) -> Path:
        target.parent.mkdir(parents=True, exist_ok=True)
        return path.rename(unused_path(target))

    def keep_previous(self, path: Path, target: Path) -> None:
        with suppress(FileNotFoundError):
            path.replace(target)

    def now(self) -> float:
        """Return the time of a new file, which is the server's on a network file system."""
        self._unfinished.mkdir(parents=True, exist_ok=True)
        probe = self._unfinished / temporary_name("now")
        probe.touch()
        try:
            return probe.stat().st_mtime
        finally:
            probe.unlink()


def unused_path(path: Path) -> Path:
    """Return an unused path: this one, or one with a number."""
    target, count = path, 1
    while target.exists():
        count += 1
        target = path.with_name(f"{path.name}.{count}")
    return target
