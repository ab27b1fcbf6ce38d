"""Places of a store: where its files are, and what each place promises about them."""

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

    Of a bucket, `root` is a copy: `fetch`, `fetch_file` and `list_names` bring it up to date, and what is
    written goes to the bucket before a method returns. A write that has returned survives a crash.
    """

    root: Path
    address: str | None
    """The address of a bucket; None for a folder."""

    poll_s: ClassVar[float]
    """The seconds between two looks at a lease that somebody waits for."""

    lists_are_current: ClassVar[bool]
    """Whether every machine sees immediately what another machine has stored."""

    @abstractmethod
    def fetch(self, folder: Path, name: str | None = None) -> None:
        """Bring a folder up to date; with a name, only the files of this name below it."""

    @abstractmethod
    def fetch_file(self, path: Path) -> None:
        """Bring one file up to date."""

    @abstractmethod
    def list_names(self, *folders: Path) -> None:
        """Bring the names in folders up to date, with sizes and times, but not what the files contain."""

    @abstractmethod
    def get(self, path: Path) -> bytes:
        """Return the current bytes of a file; raises `FileNotFoundError` and `UnreadableError`."""

    @abstractmethod
    def exists(self, path: Path) -> bool:
        """Return whether a file is there now."""

    @abstractmethod
    def put(self, path: Path, data: bytes | None = None) -> None:
        """Write or replace a file durably; without data, the file that was written durably under `root`."""

    @abstractmethod
    def put_new(self, path: Path, data: bytes) -> None:
        """Write a file durably; raises `FileExistsError` if another is there."""

    @abstractmethod
    def check_claims(self) -> None:
        """Raise `StoreError` if the place cannot keep two processes from claiming the same file."""

    @abstractmethod
    def claim(self, path: Path, data: bytes) -> bool:
        """Create a small file that only one process can create; return whether it was this one.

        It is not flushed: a crash of the machine may lose it.
        """

    @abstractmethod
    def touch(self, path: Path, mark: bytes) -> None:
        """Append a mark to a file that this process has claimed, unless it is gone or another's by now."""

    @abstractmethod
    def delete(self, *paths: Path) -> None:
        """Remove files and folders with their contents, as far as they are there."""

    @abstractmethod
    def move(self, path: Path, target: Path) -> Path:
        """Rename a file to a path that is free, `target` or one with a number behind it; return which.

        Raises `FileNotFoundError` if another process has moved it.
        """

    @abstractmethod
    def keep_previous(self, path: Path, target: Path) -> None:
        """Keep a file as `target`, if it is there, just before another one replaces it."""

    @abstractmethod
    def now(self) -> float:
        """Return the time that a file gets which is written now, by the clock of the place."""


@final
class FolderPlace(Place):
    """A folder that all nodes see."""

    address = None
    poll_s = 0.5
    lists_are_current = False

    def __init__(self, root: Path) -> None:
        if os.path.exists(root) and not os.path.isdir(root):  # noqa: PTH110, PTH112 -- never raise
            raise StoreError(f"{root}: expected the folder of a store, got a file")
        self.root, self._unfinished = root, root / "unfinished"

    def fetch(self, folder: Path, name: str | None = None) -> None:
        """Do nothing: the folder is the store."""

    def fetch_file(self, path: Path) -> None:
        """Do nothing: the file is the store's."""

    def list_names(self, *folders: Path) -> None:
        """Do nothing: the folders are the store's."""

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

        Only one process can make a hard link, on NFS as well. On a file system without links a file that
        another process writes in the same moment is replaced.
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
    """Return a path that no file has, this one or one with a number."""
    target, count = path, 1
    while target.exists():
        count += 1
        target = path.with_name(f"{path.name}.{count}")
    return target
