"""A store in a bucket, with local copies of its objects.

Only requested objects are copied. Writes reach the bucket before a method returns. Reads first compare the
local folder with the bucket's listing. The folder is removed when the process ends, or by a later process if
this one was killed. Keys that would lead out of the folder are ignored.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Final, final

from .bucket import Bucket
from .errors import StoreError
from .files import replacing
from .own_files import is_own, remove_own
from .place import Place, is_compacted

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutResult

_DOWNLOADS: Final = 16
_MAX_TRIES: Final = 100
_LOCK: Final = "in-use"

_log = logging.getLogger(__name__)


@final
class BucketPlace(Place):
    """The location of a store in a bucket. The threads of a process may share this object."""

    poll_s, look_s = 2.0, 10.0  # each look is a request
    # object stores list a new object at once
    lists_are_current = True

    def __init__(self, address: str) -> None:
        self.bucket = Bucket(address)
        self.address, self.root = self.bucket.address, _make_own_folder()
        self._held: dict[str, str] = {}
        """The tag of the object of each local copy, by key."""
        self._claimed: dict[str, tuple[bytes, PutResult]] = {}
        self._left_out: set[str] = set()
        self._lock, self._claiming = threading.RLock(), threading.Lock()

    def __reduce__(self) -> tuple[Callable[[str], BucketPlace], tuple[str]]:
        return BucketPlace, (self.bucket.address,)

    def list(self, *folders: Path, contents: bool | str = False) -> None:
        """Give the local files in these folders the names, sizes and times of the bucket's objects.

        An object without a current local copy is downloaded if `contents` asks for it. Otherwise it becomes a
        sparse file, which has only its size and time.
        """
        with self._lock:
            for folder in folders:
                if contents is True:
                    self._download_folder(folder)
                    continue
                named = list[str]()
                for key, each in self._list(folder).items():
                    path = self._path(key)
                    if self._held.get(key) == _tag(each) or not self._make_folder(path):
                        continue
                    if path.name == contents:
                        named.append(key)
                    else:
                        self._held.pop(key, None)
                        path.unlink(missing_ok=True)
                        with path.open("wb") as file:
                            file.truncate(each["size"])
                        _set_time(path, each)
                self._download_all(named)

    def _download_folder(self, folder: Path) -> None:
        """Download the objects of a folder that have no current local copy.

        A compaction adds the merged object before it removes the objects that it merged. A listing of several
        pages may have neither. So the folder is listed again if an object has vanished, or a merged one has
        appeared.
        """
        for _ in range(_MAX_TRIES):
            listed = self._list(folder)
            new = [key for key, each in listed.items() if self._held.get(key) != _tag(each)]
            fits = [key for key in new if self._make_folder(self._path(key))]
            fetched = all(self._download_all(fits))
            now = (each["path"] for each in self.bucket.list(self._key(folder)) if fetched)
            merged = (key for key in now if is_compacted(PurePosixPath(key)))
            if fetched and all(key in listed for key in merged):
                return
        raise StoreError(
            f"{self.address}: compactions have interrupted each attempt to read: try again later"
        )

    def fetch(self, *files: Path) -> None:
        with self._lock:
            self._download_all([self._key(path) for path in files])

    def get(self, path: Path) -> bytes:
        if (found := self.bucket.get(self._key(path))) is None:
            raise FileNotFoundError(path)
        return found.data

    def put(self, path: Path, data: bytes | None = None, *, replaced: Iterable[Path] = ()) -> None:
        """Upload a local file as an object. With `data`, write these bytes to the file first."""
        if data is not None:
            with replacing(path, self.root / "unfinished") as temporary:
                temporary.write_bytes(data)
        key = self._key(path)
        with self._lock:
            self._held.pop(key, None)  # if the upload fails, the local copy is not current
            self._held[key] = str(self.bucket.put(key, path)["e_tag"])

    def check_claims(self) -> None:
        """Raise `StoreError` if the server lacks the conditional writes that claims need."""
        self.bucket.require_conditions()

    def put_if_absent(self, path: Path, data: bytes) -> bool:
        key = self._key(path)
        try:
            self._claimed[key] = data, self.bucket.create(key, data)
        except FileExistsError:
            return False
        return True

    def touch(self, path: Path, mark: bytes) -> None:
        """Renew a claim, unless another process owns it now. A mark is added to the claim's object."""
        key = self._key(path)
        with self._claiming:
            if (claimed := self._claimed.get(key)) is None:
                return
            data, version = claimed
            first_line, data = data.partition(b"\n")[0], data + mark
            written = self.bucket.update(key, data, version)
            if written is None:  # perhaps the answer to an earlier renewal was lost
                found = self.bucket.get(key)
                if found is not None and found.data.startswith(first_line):
                    written = self.bucket.update(key, data, found.version)
            if written is None:
                self._claimed.pop(key, None)
            else:
                self._claimed[key] = data, written

    def delete(self, *paths: Path) -> None:
        """Delete files and folders in the bucket, and their local copies."""
        with self._lock:
            keys = list[str]()
            for path in paths:
                inside = self.bucket.list(self._key(path)) if path.is_dir() else None
                found = [self._key(path)] if inside is None else [each["path"] for each in inside]
                keys += [key for key in found if is_own(key)]
            self.bucket.delete(keys)
            for key in keys:
                self._held.pop(key, None)
                self._claimed.pop(key, None)
            for path in paths:
                remove_own(self.root, path)

    def move(self, path: Path, target: Path) -> None:
        """Move an object within the bucket, and its local copy."""
        with self._lock:
            if not self.bucket.copy(self._key(path), self._key(target)):
                path.unlink(missing_ok=True)
                raise FileNotFoundError(path)
            self._held.pop(self._key(target), None)
            target.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                path.replace(target)
            self.delete(path)

    def _list(self, folder: Path) -> dict[str, ObjectMeta]:
        """Return the objects of a folder by key, and remove local files that have no object.

        Objects whose keys cannot be local paths are left out.
        """
        found = {each["path"]: each for each in self.bucket.list(self._key(folder))}
        folders = {str(parent) for key in found for parent in PurePosixPath(key).parents}
        for key in [key for key in found if key in folders or not _is_plain_key(key)]:
            self._leave_out(key)
            del found[key]
        # the contents of a folder come before the folder itself
        inside = sorted(folder.rglob("*"), reverse=True)
        for path in inside:
            if path.is_dir():
                with suppress(OSError):  # it is not empty
                    path.rmdir()
            elif (key := self._key(path)) not in found:
                path.unlink()
                self._held.pop(key, None)
        return found

    def _download_all(self, keys: Sequence[str]) -> Sequence[bool]:
        if len(keys) < 2:
            return [self._download(key) for key in keys]
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  only stores in a bucket need it

        with ThreadPoolExecutor(_DOWNLOADS) as pool:
            return list(pool.map(self._download, keys))

    def _download(self, key: str) -> bool:
        path = self._path(key)
        # one file for each thread, outside of the folder that mirrors the bucket
        temporary = self.root.parent / f"{self.root.name}.{threading.get_ident()}"
        if (found := self.bucket.get(key)) is None:
            path.unlink(missing_ok=True)
            self._held.pop(key, None)
            return False
        temporary.write_bytes(found.data)
        _set_time(temporary, found.meta)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.replace(path)
        self._held[key] = _tag(found.meta)
        return True

    def _make_folder(self, path: Path) -> bool:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            self._leave_out(self._key(path))
            return False
        return True

    def _leave_out(self, key: str) -> None:
        if key not in self._left_out:
            self._left_out.add(key)
            _log.warning("%s/%s is skipped: its name is not a valid file name", self.address, key)

    def _path(self, key: str) -> Path:
        return self.root / key

    def _key(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def _tag(meta: ObjectMeta) -> str:
    """Return the ETag of an object's version or, without one, its time and size."""
    return str(meta["e_tag"] or (meta["last_modified"].timestamp(), meta["size"]))


def _set_time(path: Path, meta: ObjectMeta) -> None:
    changed = meta["last_modified"].timestamp()
    os.utime(path, (changed, changed))


def _is_plain_key(key: str) -> bool:
    """Return whether a key is a relative path that does not lead out of its folder."""
    parts = key.split("/")
    plain = all(part not in ("", ".", "..") and PurePath(part).name == part for part in parts)
    return plain and "\\" not in key and "\0" not in key


def _make_own_folder() -> Path:
    """Make a folder that is locked as long as this process lives; remove those of dead processes."""
    from filelock import FileLock, Timeout  # noqa: PLC0415  0.1 s, only for stores in a bucket

    user = os.getuid() if hasattr(os, "getuid") else 0
    base = Path(tempfile.gettempdir()) / f"activemem-objects-{user}"
    base.mkdir(mode=0o700, exist_ok=True)
    if base.is_symlink() or base.stat().st_uid != user:
        raise StoreError(f"{base} belongs to another user: set TMPDIR to a folder of your own")
    # otherwise another process could remove the new folder before it is locked
    with FileLock(base / "making"):
        for folder in base.iterdir():
            if folder.is_dir():
                with suppress(Timeout, OSError), FileLock(folder / _LOCK, timeout=0):
                    shutil.rmtree(folder, ignore_errors=True)
        own = Path(tempfile.mkdtemp(dir=base))
        # without thread_local=False, only the thread that took the lock could release it
        lock = FileLock(own / _LOCK, thread_local=False)
        lock.acquire()

    def leave() -> None:
        if os.getpid() == pid:  # a forked process must not remove the folder
            shutil.rmtree(own, ignore_errors=True)
            lock.release()

    pid = os.getpid()
    atexit.register(leave)
    root = own / "store"
    root.mkdir()
    return root
