"""A folder of this process that has what a bucket has, as far as somebody has asked for it.

What is written here goes to the bucket before anybody is told of it; what is read here is compared with the
bucket's list first. The folder is removed when the process ends, or by the next that starts after it was
killed, and not before: paths in it have been handed out. Keys that would lead out of it are left out.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

from ..paths import StoreError, is_compacted
from .address import is_plain_key
from .bucket import Bucket, ObjectInfo

_DOWNLOADS: Final = 16
_MAX_TRIES: Final = 100
_LOCK: Final = "in-use"

_log = logging.getLogger(__name__)


class Mirror:
    """A copy of a bucket in a folder; threads of one process may use it at once."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket, self.root = bucket, _own_folder()
        self._held: dict[str, str] = {}
        self._left_out: set[str] = set()
        self._lock = threading.RLock()

    def pull(self, folder: Path) -> None:
        """Bring a folder up to date.

        A compaction adds the merged object before it removes the others, and a list of several pages may have
        neither: so all is listed again if an object has vanished, or a merged one has appeared.
        """
        with self._lock:
            for _ in range(_MAX_TRIES):
                listed = self._list(folder)
                self._forget(folder, listed)
                wanted = [each for each in listed.values() if self._held.get(each.key) != _tag(each)]
                if all(self._download_all(wanted)) and not self._new_merged(folder, listed):
                    return
        raise StoreError(f"{self.bucket.address}: expected a pause between compactions, got none")

    def pull_names(self, folder: Path) -> None:
        """Bring the names in a folder up to date: what was not pulled becomes a hole of its object's size."""
        with self._lock:
            listed = self._list(folder)
            self._forget(folder, listed)
            for each in listed.values():
                path = self._path(each.key)
                if self._held.get(each.key) != _tag(each) and self._make_folder(path):
                    self._held.pop(each.key, None)
                    path.unlink(missing_ok=True)
                    with path.open("wb") as file:
                        file.truncate(each.size)
                    os.utime(path, (each.changed, each.changed))

    def pull_files(self, paths: Iterable[Path]) -> None:
        """Bring single files up to date."""
        with self._lock:
            wanted = [self._key(path) for path in paths]
            for key, found in zip(wanted, self._fetch(wanted), strict=True):
                if found is None:
                    self._path(key).unlink(missing_ok=True)
                    self._held.pop(key, None)

    def publish(self, path: Path) -> None:
        """Write a file that is here to the bucket."""
        key = self._key(path)
        with self._lock:
            self._held.pop(key, None)
            self._held[key] = str(self.bucket.put(key, path).e_tag)

    def publish_new(self, path: Path, data: bytes) -> None:
        """Write an object that is not there yet; raises `FileExistsError` if another is."""
        key = self._key(path)
        with self._lock:
            self._held[key] = str(self.bucket.create(key, data).e_tag)

    def copy(self, source: Path, target: Path) -> None:
        """Copy an object within the bucket, if it is there, for a file that was renamed here."""
        with self._lock:
            self.bucket.copy(self._key(source), self._key(target))
            self._held.pop(self._key(target), None)

    def remove(self, paths: Sequence[Path]) -> None:
        """Remove files, and folders with their contents, there and here."""
        with self._lock:
            keys = list[str]()
            for path in paths:
                inside = self.bucket.list(self._key(path)) if path.is_dir() else None
                keys += [self._key(path)] if inside is None else [each.key for each in inside]
            self.bucket.delete(keys)
            for key in keys:
                self._held.pop(key, None)
            for path in paths:
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)

    def _list(self, folder: Path) -> dict[str, ObjectInfo]:
        """What the bucket has below a folder and a file can be here, by key."""
        found = {each.key: each for each in self.bucket.list(self._key(folder))}
        folders = {str(parent) for key in found for parent in PurePosixPath(key).parents}
        for key in [key for key in found if key in folders or not is_plain_key(key)]:
            self._leave_out(key)
            del found[key]
        return found

    def _new_merged(self, folder: Path, listed: dict[str, ObjectInfo]) -> bool:
        now = (each.key for each in self.bucket.list(self._key(folder)))
        return any(is_compacted(self._path(key)) for key in now if key not in listed)

    def _forget(self, folder: Path, listed: dict[str, ObjectInfo]) -> None:
        """Remove what is below a folder and not in the bucket any more."""
        for path in list(folder.rglob("*")):
            if path.is_file() and (key := self._key(path)) not in listed:
                path.unlink()
                self._held.pop(key, None)
        folders = [path for path in folder.rglob("*") if path.is_dir()]
        for path in sorted(folders, reverse=True):
            with suppress(OSError):  # one that is not empty
                path.rmdir()

    def _download_all(self, wanted: Sequence[ObjectInfo]) -> list[bool]:
        """Fetch objects; whether each was still there, or can be no file here."""
        fits = [each.key for each in wanted if self._make_folder(self._path(each.key))]
        return [found is not None for found in self._fetch(fits)]

    def _fetch(self, keys: Sequence[str]) -> list[ObjectInfo | None]:
        if len(keys) < 2:
            return [self._download(key) for key in keys]
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  nor this

        with ThreadPoolExecutor(_DOWNLOADS) as pool:
            return list(pool.map(self._download, keys))

    def _download(self, key: str) -> ObjectInfo | None:
        """Fetch one object, in place of what is here under its name."""
        path = self._path(key)
        temporary = self.root.parent / f"{self.root.name}.{threading.get_ident()}"
        found = self.bucket.download(key, temporary)
        if found is not None:
            os.utime(temporary, (found.changed, found.changed))
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.replace(path)
            self._held[key] = _tag(found)
        return found

    def _make_folder(self, path: Path) -> bool:
        """Make the folder of a file; False where something else has its name, or that of one above it."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            self._leave_out(self._key(path))
            return False
        return True

    def _leave_out(self, key: str) -> None:
        if key not in self._left_out:
            self._left_out.add(key)
            _log.warning("%s/%s is left out: no file can have its name", self.bucket.address, key)

    def _path(self, key: str) -> Path:
        return self.root / key

    def _key(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def _tag(info: ObjectInfo) -> str:
    """What tells an object's contents from others; a time and a size where the server has no tags."""
    return str(info.version.e_tag or (info.changed, info.size))


def _own_folder() -> Path:
    """A new folder that is locked while this process lives; those of killed processes are removed."""
    from filelock import FileLock, Timeout  # noqa: PLC0415  a tenth of a second that folders do not cost

    user = os.getuid() if hasattr(os, "getuid") else 0
    base = Path(tempfile.gettempdir()) / f"activemem-objects-{user}"
    base.mkdir(mode=0o700, exist_ok=True)
    if base.is_symlink() or base.stat().st_uid != user:
        raise StoreError(f"{base}: expected a folder of this user's, got another's; set TMPDIR")
    with FileLock(base / "making"):
        for folder in base.iterdir():
            if folder.is_dir():
                with suppress(Timeout, OSError), FileLock(folder / _LOCK, timeout=0):
                    shutil.rmtree(folder, ignore_errors=True)
        own = Path(tempfile.mkdtemp(dir=base))
        lock = FileLock(own / _LOCK, thread_local=False)
        lock.acquire()

    def leave() -> None:
        if os.getpid() == pid:  # and no fork of it
            shutil.rmtree(own, ignore_errors=True)
            lock.release()

    pid = os.getpid()
    atexit.register(leave)
    root = own / "store"
    root.mkdir()
    return root
