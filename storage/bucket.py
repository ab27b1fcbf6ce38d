"""Client of an object store such as S3: the objects below an address.

A server may have carried out a request whose answer was lost, and obstore repeats some requests
automatically. So a method that finds an existing object checks whether this is the object that it should
write.
"""

from __future__ import annotations

import errno
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..errors import ActivememError
from .errors import StoreError

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode, PutResult
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

SCHEMES: Final = ("s3", "gs", "az")

_ADDRESS: Final = re.compile(r"([a-z0-9]+)://([^/?#\s]+)((?:/[^/?#\s]+)*)/?")
_EXPECTED: Final = "expected a folder, or s3://, gs:// or az:// with a bucket"

_SERVER: Final = re.compile(r"https?://[^/?\s]+")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_GENERIC: Final = re.compile(r"^Generic \w+ error: ")
_CREDENTIALS: Final = re.compile(r"AccessKeyId$|/latest/(api|meta-data)/|/computeMetadata/|/identity/")
"""Error texts of environments with missing or incomplete credentials, on a machine without a role."""

_STATUS: Final = "Server returned non-2xx status code: "

_TRIES: Final = 4
_PAUSE_S: Final = 0.2
_INSTALL: Final = 'pip install "activemem[objects]"'

_PATIENT: Final[tuple[float, float, int]] = (60.0, 120.0, 10)
"""Limits for data requests: timeout, total time of retries in seconds, and number of retries."""

_PROMPT: Final[tuple[float, float, int]] = (5.0, 10.0, 2)
"""The limits for lease renewals, and for the first request, which should fail quickly."""


def address_fault(text: str) -> str | None:
    """Return an error message if an address is invalid, else None."""
    found = _ADDRESS.fullmatch(text)
    if found is None or found[1] not in SCHEMES:
        return f"{_EXPECTED}, got {text!r}"
    if any(part in (".", "..") for part in found[3].split("/")):
        return f"{_EXPECTED}, without . or .. in its path, got {text!r}"
    return None


class BucketError(OSError, ActivememError):
    """Error for a server that cannot be reached or refuses a request: the machine fails, not the trial."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


class Found(NamedTuple):
    """The contents of an object, with its listing entry, and its version as a write has returned it."""

    data: bytes
    meta: ObjectMeta
    version: PutResult


class Bucket:
    """Client of the objects whose names begin with an address.

    Keys are names without this address. Raise `StoreError` for a wrong address, missing credentials or an
    unsuitable server, and `BucketError` if the server fails later.
    """

    def __init__(self, address: str) -> None:
        if fault := address_fault(address):
            raise StoreError(fault)
        self.address = address.rstrip("/")
        self._has_conditions = False
        try:
            self._server: Any = import_module("obstore")  # only stores in a bucket need it
            self._data, self._prompt = (_connect(self.address, *each) for each in (_PATIENT, _PROMPT))
            # a first request, so that a wrong address or missing credentials are found here
            self.list("studies", prompt=True)
        except ModuleNotFoundError as error:
            raise StoreError(f"{self.address}: expected the package obstore, got none; {_INSTALL}") from error
        except BucketError as error:
            raise StoreError(f"{self.address}: expected a bucket, got: {error.strerror}") from error

    def list(self, folder: str, *, prompt: bool = False) -> list[ObjectMeta]:
        """Return all objects in a folder, in no particular order. Their keys are their `path`.

        With `prompt`, time limits are short: a server that does not answer soon raises an error.
        """
        with self._file_errors(folder):
            try:
                stream = self._server.list(self._prompt if prompt else self._data, prefix=folder)
                return [meta for chunk in stream for meta in chunk]
            except FileNotFoundError as error:
                raise BucketError(errno.EIO, _reason(error), self.address) from error

    def get(self, key: str) -> Found | None:
        """Return an object, or None if it does not exist."""
        with self._file_errors(key):
            try:
                answer = self._server.get(self._data, key)
                meta: ObjectMeta = answer.meta
                version: PutResult = {"e_tag": meta["e_tag"], "version": meta["version"]}
                return Found(bytes(answer.bytes()), meta, version)
            except FileNotFoundError:
                return None

    def put(self, key: str, contents: bytes | Path) -> PutResult:
        """Write or replace an object. It is as durable as the server promises."""
        with self._file_errors(key):
            return self._put(self._data, key, contents, "overwrite")

    def copy(self, source: str, target: str) -> bool:
        """Copy an object within the bucket; return whether the source exists."""
        with self._file_errors(source):
            try:
                self._server.copy(self._data, source, target)
            except FileNotFoundError:
                return False
            return True

    def create(self, key: str, data: bytes) -> PutResult:
        """Create an object; raise `FileExistsError` if a different object with this key exists.

        If an object with the same contents exists, an earlier request of this process wrote it, and the
        response was lost.
        """
        for left in reversed(range(_TRIES)):
            try:
                with self._file_errors(key):
                    return self._put(self._data, key, data, "create")
            except FileExistsError:
                found = self.get(key)
                if found is not None and found.data == data:
                    return found.version
                if found is not None or not left:
                    raise
            except BucketError:
                if not left:
                    raise
            time.sleep(_PAUSE_S)
        raise AssertionError("the last try returns or raises")

    def update(self, key: str, data: bytes, version: PutResult) -> PutResult | None:
        """Replace an object if it still has this version.

        Return its new version, or None if it has changed. An object with the same contents counts as written
        by this process, as with `create`.
        """
        try:
            with self._file_errors(key):
                known: Any = {name: each for name, each in version.items() if each is not None}
                return self._put(self._prompt, key, data, known)
        except (FileExistsError, FileNotFoundError):
            found = self.get(key)
            return found.version if found is not None and found.data == data else None

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; missing objects are ignored."""
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

    def require_conditions(self) -> None:
        """Raise `StoreError` if the server ignores the condition of a conditional write.

        Such a condition is "only if the object is missing".
        """
        if self._has_conditions:
            return
        key, ignored = f"unfinished/.probe.{secrets.token_hex(8)}", list[str]()
        try:
            version = self.create(key, b"first")
            try:
                with self._file_errors(key):
                    self._put(self._prompt, key, b"second", "create")
                ignored.append("If-None-Match")
            except FileExistsError:
                replaced = self.update(key, b"third", version) is not None
                if not replaced or self.update(key, b"fourth", version) is not None:
                    ignored.append("If-Match")
        except BucketError as error:
            raise StoreError(f"{self.address}: cannot write objects: {error.strerror}") from error
        finally:
            self.delete([key])
        if ignored:
            raise StoreError(
                f"{self.address}: expected a server with conditional writes (else two drivers may "
                f"train the same trial), got one that ignores {ignored[0]}"
            )
        self._has_conditions = True

    def _put(self, store: ObjectStore, key: str, contents: bytes | Path, mode: PutMode) -> PutResult:
        whole = None if mode == "overwrite" else False  # an upload in parts would ignore conditions
        return self._server.put(store, key, contents, mode=mode, use_multipart=whole)

    @contextmanager
    def _file_errors(self, key: str) -> Iterator[None]:
        from obstore import exceptions  # noqa: PLC0415  as above

        try:
            yield
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError) as error:
            raise FileExistsError(
                errno.EEXIST, "the object exists already", f"{self.address}/{key}"
            ) from error
        except (exceptions.BaseError, ValueError) as error:
            raise BucketError(errno.EIO, _reason(error), f"{self.address}/{key}") from error


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
