"""A store in a bucket of an object store such as S3, with local copies of its objects.

Only requested objects are copied. Writes reach the bucket before a method returns. Reads first compare the
local folder with the bucket's listing. The folder is removed when the process ends, or by a later process if
this one was killed.

A server may have carried out a request whose answer was lost, and obstore repeats some requests
automatically. So a method that finds an existing object checks whether this is the object that it should
write.
"""

from __future__ import annotations

import atexit
import errno
import logging
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, final

from ..errors import ActivememError
from .errors import StoreError
from .files import replacing, temporary_name
from .own_files import is_own, remove_own
from .place import Place, is_compacted, place_fault

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode, PutResult
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

_DOWNLOADS: Final = 16
_MAX_TRIES: Final = 100
_LOCK: Final = "in-use"

_CREATE_TRIES: Final = 4
_PAUSE_S: Final = 0.2
_INSTALL: Final = 'pip install "activemem[objects]"'

_PATIENT: Final[tuple[float, float, int]] = (60.0, 120.0, 10)
"""Limits for data requests: timeout, total time of retries in seconds, and number of retries."""

_PROMPT: Final[tuple[float, float, int]] = (5.0, 10.0, 2)
"""The limits for lease renewals, and for the first request, which should fail quickly."""

_log = logging.getLogger(__name__)


class BucketError(OSError, ActivememError):
    """Error for a server that cannot be reached or refuses a request: the machine fails, not the trial."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


@final
class BucketPlace(Place):
    """The location of a store in a bucket. The threads of a process may share this object.

    A key is an object's name below the address. Raise `StoreError` for a wrong address, missing credentials
    or an unsuitable server, and `BucketError` if the server fails later.
    """

    poll_s, look_s = 2.0, 10.0  # each look is a request
    # object stores list a new object at once
    lists_are_current = True

    def __init__(self, address: str) -> None:
        if fault := place_fault(address):
            raise StoreError(fault)
        self.name = address.rstrip("/")
        try:
            self._server: Any = import_module("obstore")  # only stores in a bucket need it
            self._data, self._prompt = (_connect(self.name, *each) for each in (_PATIENT, _PROMPT))
            # a first request, so that a wrong address or missing credentials are found here
            self._objects("studies", self._prompt)
        except ModuleNotFoundError as error:
            raise StoreError(f"{self.name}: expected the package obstore, got none; {_INSTALL}") from error
        except BucketError as error:
            raise StoreError(f"{self.name}: expected a bucket, got: {error.strerror}") from error
        self.root = _make_own_folder()
        self._held: dict[str, str] = {}
        """The tag of the object of each local copy, by key."""
        self._claimed: dict[str, tuple[bytes, PutResult]] = {}
        self._left_out: set[str] = set()
        self._lock, self._claiming = threading.RLock(), threading.Lock()
        self._has_conditions = False

    @property
    def absolute_name(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], BucketPlace], tuple[str]]:
        return BucketPlace, (self.name,)

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
                    if self._held.get(key) == _tag(each):
                        continue
                    if path.name == contents:
                        named.append(key)
                    else:
                        self._held.pop(key, None)
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.unlink(missing_ok=True)
                        with path.open("wb") as file:
                            file.truncate(each["size"])
                        _set_time(path, each)
                self._download_all(named)

    def fetch(self, *files: Path) -> None:
        with self._lock:
            self._download_all([self._key(path) for path in files])

    def get(self, path: Path) -> bytes:
        if (found := self._object(self._key(path))) is None:
            raise FileNotFoundError(path)
        return found[0]

    def put(self, path: Path, data: bytes | None = None, *, replaced: Iterable[Path] = ()) -> None:
        """Upload a local file as an object. With `data`, write these bytes to the file first."""
        if data is not None:
            with replacing(path, self.root / "unfinished") as temporary:
                temporary.write_bytes(data)
        key = self._key(path)
        with self._lock:
            self._held.pop(key, None)  # if the upload fails, the local copy is not current
            self._held[key] = str(self._put(self._data, key, path, "overwrite")["e_tag"])

    def check_claims(self) -> None:
        """Raise `StoreError` if the server ignores the conditions of writes, which claims need."""
        if self._has_conditions:
            return
        path = self.root / "unfinished" / temporary_name("probe")
        try:
            self.put_if_absent(path, b"first")
            ignored = "If-None-Match" if self.put_if_absent(path, b"second") else None
            if ignored is None:
                self.touch(path, b", renewed")
                is_renewed = self.get(path) == b"first, renewed"
                self._put(self._data, self._key(path), b"another", "overwrite")
                self.touch(path, b", renewed")
                ignored = None if is_renewed and self.get(path) == b"another" else "If-Match"
        except BucketError as error:
            raise StoreError(f"{self.name}: cannot write objects: {error.strerror}") from error
        finally:
            self.delete(path)
        if ignored is not None:
            raise StoreError(
                f"{self.name}: expected a server with conditional writes (else two drivers may "
                f"train the same trial), got one that ignores {ignored}"
            )
        self._has_conditions = True

    def put_if_absent(self, path: Path, data: bytes) -> bool:
        """Create an object; return False if a different one exists.

        If an object with the same contents exists, an earlier request of this process wrote it, and the
        response was lost.
        """
        key = self._key(path)
        for left in reversed(range(_CREATE_TRIES)):
            try:
                self._claimed[key] = data, self._put(self._data, key, data, "create")
            except FileExistsError:
                found = self._object(key)
                if found is not None and found[0] != data:
                    return False
                if found is not None:
                    self._claimed[key] = data, _version(found[1])
                    return True
            except BucketError:
                if not left:
                    raise
            else:
                return True
            time.sleep(_PAUSE_S)
        return False

    def touch(self, path: Path, mark: bytes) -> None:
        """Renew a claim, unless another process owns it now. A mark is added to the claim's object."""
        key = self._key(path)
        with self._claiming:
            if (claimed := self._claimed.get(key)) is None:
                return
            data, version = claimed[0] + mark, claimed[1]
            for _ in range(2):
                try:
                    version = self._put(self._prompt, key, data, version)
                except (FileExistsError, FileNotFoundError):
                    # perhaps the answer to this renewal or to an earlier one was lost
                    found = self._object(key)
                    if found is None or not found[0].startswith(data.partition(b"\n")[0]):
                        break
                    version = _version(found[1])
                    if found[0] != data:
                        continue
                self._claimed[key] = data, version
                return
            del self._claimed[key]

    def delete(self, *paths: Path) -> None:
        """Delete files and folders in the bucket, and their local copies."""
        with self._lock:
            keys = list[str]()
            for path in paths:
                inside = self._objects(self._key(path)) if path.is_dir() else None
                found = [self._key(path)] if inside is None else [each["path"] for each in inside]
                keys += [key for key in found if is_own(key)]
            self._delete(keys)
            for key in keys:
                self._held.pop(key, None)
                self._claimed.pop(key, None)
            for path in paths:
                remove_own(self.root, path)

    def move(self, path: Path, target: Path) -> None:
        """Move an object within the bucket, and its local copy."""
        with self._lock:
            try:
                with self._file_errors(self._key(path)):
                    self._server.copy(self._data, self._key(path), self._key(target))
            except FileNotFoundError:
                path.unlink(missing_ok=True)
                raise FileNotFoundError(path) from None
            self._held.pop(self._key(target), None)
            target.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                path.replace(target)
            self.delete(path)

    def _download_folder(self, folder: Path) -> None:
        """Download the objects of a folder that have no current local copy.

        A compaction adds the merged object before it removes the objects that it merged. A listing of several
        pages may have neither. So the folder is listed again if an object has vanished, or a merged one has
        appeared.
        """
        for _ in range(_MAX_TRIES):
            listed = self._list(folder)
            new = [key for key, each in listed.items() if self._held.get(key) != _tag(each)]
            fetched = all(self._download_all(new))
            now = (each["path"] for each in self._objects(self._key(folder)) if fetched)
            merged = (key for key in now if is_compacted(PurePosixPath(key)))
            if fetched and all(key in listed for key in merged):
                return
        raise StoreError(f"{self.name}: compactions have interrupted each attempt to read: try again later")

    def _list(self, folder: Path) -> dict[str, ObjectMeta]:
        """Return the objects of a folder by key, and remove local files that have no object.

        An object whose key is that of a folder is left out: consoles make such objects. obstore raises an
        error for keys that would lead out of the folder.
        """
        found = {each["path"]: each for each in self._objects(self._key(folder))}
        folders = {str(parent) for key in found for parent in PurePosixPath(key).parents}
        for key in found.keys() & folders:
            del found[key]
            if key not in self._left_out:
                self._left_out.add(key)
                _log.warning("%s/%s is skipped: it has the name of a folder", self.name, key)
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
        if (found := self._object(key)) is None:
            path.unlink(missing_ok=True)
            self._held.pop(key, None)
            return False
        data, meta = found
        temporary.write_bytes(data)
        _set_time(temporary, meta)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.replace(path)
        self._held[key] = _tag(meta)
        return True

    def _path(self, key: str) -> Path:
        return self.root / key

    def _key(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _objects(self, folder: str, client: ObjectStore | None = None) -> Sequence[ObjectMeta]:
        """Return all objects in a folder, in no particular order. Their keys are their `path`."""
        with self._file_errors(folder):
            try:
                stream = self._server.list(client or self._data, prefix=folder)
                return [meta for chunk in stream for meta in chunk]
            except FileNotFoundError as error:
                raise BucketError(errno.EIO, _reason(error), self.name) from error

    def _object(self, key: str) -> tuple[bytes, ObjectMeta] | None:
        """Return the contents of an object and its listing entry, or None if it does not exist."""
        with self._file_errors(key):
            try:
                answer = self._server.get(self._data, key)
                return bytes(answer.bytes()), answer.meta
            except FileNotFoundError:
                return None

    def _put(
        self, client: ObjectStore, key: str, contents: bytes | Path, mode: PutMode | PutResult
    ) -> PutResult:
        """Write an object. `mode` is a condition: a version that it must have, or "create" for a new one.

        Raise `FileExistsError` or `FileNotFoundError` if the condition is not met.
        """
        whole = None if mode == "overwrite" else False  # an upload in parts would ignore conditions
        if not isinstance(mode, str):
            known: Any = {name: each for name, each in mode.items() if each is not None}
            mode = known
        with self._file_errors(key):
            return self._server.put(client, key, contents, mode=mode, use_multipart=whole)

    def _delete(self, keys: Sequence[str]) -> None:
        if not keys:
            return
        with self._file_errors(keys[0]):
            try:
                self._server.delete(self._data, keys)
            # some servers report a missing object, and may then leave other objects undeleted
            except FileNotFoundError:
                for key in keys:
                    with suppress(FileNotFoundError):
                        self._server.delete(self._data, key)

    @contextmanager
    def _file_errors(self, key: str) -> Iterator[None]:
        from obstore import exceptions  # noqa: PLC0415  as above

        try:
            yield
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError) as error:
            raise FileExistsError(errno.EEXIST, "the object exists already", f"{self.name}/{key}") from error
        except (exceptions.BaseError, ValueError) as error:
            raise BucketError(errno.EIO, _reason(error), f"{self.name}/{key}") from error


def _connect(address: str, timeout_s: float, retry_s: float, retries: int) -> ObjectStore:
    """Return a client of the objects at an address; the environment has the endpoint and the credentials."""
    from obstore.exceptions import BaseError  # noqa: PLC0415  as above
    from obstore.store import from_url  # noqa: PLC0415  as above

    client: ClientConfig = {
        "allow_http": True,  # the environment may name an endpoint without TLS
        "timeout": timedelta(seconds=timeout_s),
        "connect_timeout": timedelta(seconds=min(timeout_s, 5.0)),
    }
    again: RetryConfig = {"max_retries": retries, "retry_timeout": timedelta(seconds=retry_s)}
    options: dict[str, Any] = {"client_options": client, "retry_config": again}
    try:
        # obstore reads the address as a URL, in which % would begin an encoded character
        return from_url(address.replace("%", "%25"), **options)
    except (BaseError, ValueError) as error:
        raise BucketError(errno.EIO, _reason(error), address) from error


_SERVER: Final = re.compile(r"https?://[^/?\s]+")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_GENERIC: Final = re.compile(r"^Generic \w+ error: ")
_CREDENTIALS: Final = re.compile(r"AccessKeyId$|/latest/(api|meta-data)/|/computeMetadata/|/identity/")
"""Error texts of environments with missing or incomplete credentials, on a machine without a role."""

_STATUS: Final = "Server returned non-2xx status code: "


def _reason(error: BaseException) -> str:
    """Describe an error of obstore in a few words, with the server's address."""
    line = str(error).strip().partition("\n")[0]
    server, code = _SERVER.search(line), _CODE.search(line)
    _, _, what = line.rpartition(" - ")
    what = what.partition("<")[0].replace(_STATUS, "").rstrip(": ")
    if what.startswith("HTTP error"):
        what = "no answer"
    if code is not None:
        what = f"{code[1]} ({what})"
    what = _GENERIC.sub("", what)
    if _CREDENTIALS.search(line):
        what = f"no credentials ({what})"
    return f"{what} from {server[0]}" if server is not None else what


def _version(meta: ObjectMeta) -> PutResult:
    return {"e_tag": meta["e_tag"], "version": meta["version"]}


def _tag(meta: ObjectMeta) -> str:
    """Return the ETag of an object's version or, without one, its time and size."""
    return str(meta["e_tag"] or (meta["last_modified"].timestamp(), meta["size"]))


def _set_time(path: Path, meta: ObjectMeta) -> None:
    changed = meta["last_modified"].timestamp()
    os.utime(path, (changed, changed))


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
