"""The objects below an address: what is asked of the server, and what its answers mean when some are lost.

A request that has failed may have been carried out, and obstore repeats some by itself. So whoever is told
that an object is there already looks whether it is the one that was to be written.
"""

from __future__ import annotations

import errno
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...errors import ActivememError
from ..paths import StoreError
from .address import address_fault, split_address

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

_SERVER: Final = re.compile(r"https?://[^/?\s]+")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_GENERIC: Final = re.compile(r"^Generic \w+ error: ")
_CREDENTIALS: Final = re.compile(r"AccessKeyId$|/latest/(api|meta-data)/|/computeMetadata/|/identity/")
"""What is said where the environment has no credentials, or half of them, and a machine's role has none."""

_STATUS: Final = "Server returned non-2xx status code: "

_TRIES: Final = 4
_PAUSE_S: Final = 0.2
_INSTALL: Final = 'pip install "activemem[objects]"'

_PATIENT: Final[tuple[float, float, int]] = (60.0, 120.0, 10)
"""For data: the seconds that a request may take, those after which none is repeated, and how often one is."""

_PROMPT: Final[tuple[float, float, int]] = (5.0, 10.0, 2)
"""The same for renewals, which come again, and for the first request, which a wrong address fails."""


class BucketError(OSError, ActivememError):
    """The server cannot be reached, or refuses; a failure of the machine and of no trial."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


@dataclass(frozen=True, slots=True)
class Version:
    """What an object is known by as it is now: its contents' tag, and its number where the server counts."""

    e_tag: str | None
    number: str | None


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object as it is listed, without its contents."""

    key: str
    size: int
    changed: float
    version: Version


@dataclass(frozen=True, slots=True)
class Found:
    """An object with its contents."""

    data: bytes
    info: ObjectInfo


class Bucket:
    """The objects below an address; keys are relative to it.

    Raises `StoreError` where the address, the credentials or the server will not do, and `BucketError` where
    the server fails later.
    """

    def __init__(self, address: str) -> None:
        if fault := address_fault(address):
            raise StoreError(fault)
        self.address = address.rstrip("/")
        bucket, self._prefix = split_address(address)
        self._has_conditions = False
        try:
            self._data, self._prompt = _connect(bucket, *_PATIENT), _connect(bucket, *_PROMPT)
            self.list("studies", prompt=True)
        except ModuleNotFoundError as error:
            raise StoreError(f"{self.address}: expected the package obstore, got none; {_INSTALL}") from error
        except BucketError as error:
            raise StoreError(f"{self.address}: expected a bucket, got: {error.strerror}") from error

    def list(self, folder: str, *, prompt: bool = False) -> list[ObjectInfo]:
        """All objects below a folder, in no order."""
        import obstore  # noqa: PLC0415  only whoever has such an address needs it

        with self._asking(folder):
            try:
                stream = obstore.list(self._prompt if prompt else self._data, prefix=self._name(folder))
                return [self._info(meta) for chunk in stream for meta in chunk]
            except FileNotFoundError as error:
                raise BucketError(errno.EIO, _reason(error), self.address) from error

    def head(self, key: str) -> ObjectInfo | None:
        """An object without its contents, if it is there."""
        import obstore  # noqa: PLC0415  as above

        with self._asking(key):
            try:
                return self._info(obstore.head(self._data, self._name(key)))
            except FileNotFoundError:
                return None

    def get(self, key: str) -> Found | None:
        """An object, if it is there."""
        import obstore  # noqa: PLC0415  as above

        with self._asking(key):
            try:
                answer = obstore.get(self._data, self._name(key))
                return Found(bytes(answer.bytes()), self._info(answer.meta))
            except FileNotFoundError:
                return None

    def download(self, key: str, path: Path) -> ObjectInfo | None:
        """Write an object to a file, if it is there."""
        import obstore  # noqa: PLC0415  as above

        with self._asking(key):
            try:
                answer = obstore.get(self._data, self._name(key))
                with path.open("wb") as file:
                    for chunk in answer:
                        file.write(chunk)
                return self._info(answer.meta)
            except FileNotFoundError:
                return None

    def put(self, key: str, contents: bytes | Path) -> Version:
        """Write or replace an object; when this returns, it is as durable as the server promises."""
        with self._asking(key):
            return self._put(self._data, key, contents, "overwrite")

    def copy(self, source: str, target: str) -> None:
        """Copy an object within the bucket, if it is there."""
        import obstore  # noqa: PLC0415  as above

        with self._asking(source):
            try:
                obstore.copy(self._data, self._name(source), self._name(target))
            except FileNotFoundError:
                return

    def create(self, key: str, data: bytes) -> Version:
        """Write an object that is not there yet; raises `FileExistsError` if another is.

        One with the same contents is ours: the answer to an earlier request was lost.
        """
        for left in reversed(range(_TRIES)):
            try:
                with self._asking(key):
                    return self._put(self._data, key, data, "create")
            except FileExistsError:
                found = self.get(key)
                if found is not None and found.data == data:
                    return found.info.version
                if found is not None or not left:
                    raise
            except BucketError:
                if not left:
                    raise
            time.sleep(_PAUSE_S)
        raise AssertionError("the last try returns or raises")

    def update(self, key: str, data: bytes, version: Version) -> Version | None:
        """Replace an object that still is of this version; None if it is not.

        One that has these contents already is ours, as with `create`.
        """
        try:
            with self._asking(key):
                mode: PutMode = {}
                if version.e_tag is not None:
                    mode["e_tag"] = version.e_tag
                if version.number is not None:
                    mode["version"] = version.number
                return self._put(self._prompt, key, data, mode)
        except (FileExistsError, FileNotFoundError):
            found = self.get(key)
            return found.info.version if found is not None and found.data == data else None

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects, as far as they are there."""
        import obstore  # noqa: PLC0415  as above

        names = [self._name(key) for key in keys]
        if not names:
            return
        with self._asking(keys[0]):
            try:
                obstore.delete(self._data, names)
            except FileNotFoundError:  # where servers say so, and some may be left
                for name in names:
                    try:
                        obstore.delete(self._data, name)
                    except FileNotFoundError:
                        continue

    def require_conditions(self) -> None:
        """Raise `StoreError` unless the server creates an object once, and replaces the one that is meant."""
        if self._has_conditions:
            return
        key, seen = f"unfinished/.probe.{secrets.token_hex(8)}", list[str]()
        try:
            version = self.create(key, b"first")
            try:
                with self._asking(key):
                    self._put(self._prompt, key, b"second", "create")
                seen.append("If-None-Match")
            except FileExistsError:
                replaced = self.update(key, b"third", version) is not None
                if not replaced or self.update(key, b"fourth", version) is not None:
                    seen.append("If-Match")
        except BucketError as error:
            raise StoreError(f"{self.address}: expected to write objects, got: {error.strerror}") from error
        finally:
            self.delete([key])
        if seen:
            raise StoreError(
                f"{self.address}: expected a server with conditional writes, without which two drivers "
                f"may train the same trial, got one that does not heed {seen[0]}"
            )
        self._has_conditions = True

    def _put(self, store: ObjectStore, key: str, contents: bytes | Path, mode: PutMode) -> Version:
        import obstore  # noqa: PLC0415  as above

        whole = None if mode == "overwrite" else False  # no condition holds for an upload in parts
        answer = obstore.put(store, self._name(key), contents, mode=mode, use_multipart=whole)
        return Version(answer["e_tag"], answer["version"])

    def _name(self, key: str) -> str:
        """The object's name in the bucket."""
        return f"{self._prefix}/{key}" if self._prefix else key

    def _info(self, meta: ObjectMeta) -> ObjectInfo:
        key = meta["path"].removeprefix(f"{self._prefix}/" if self._prefix else "")
        version = Version(meta["e_tag"], meta["version"])
        return ObjectInfo(key, meta["size"], meta["last_modified"].timestamp(), version)

    @contextmanager
    def _asking(self, key: str) -> Iterator[None]:
        """Turn what obstore raises into errors of the system, as files raise them."""
        from obstore import exceptions  # noqa: PLC0415  as above

        try:
            yield
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError) as error:
            raise FileExistsError(errno.EEXIST, "it is there already", f"{self.address}/{key}") from error
        except (exceptions.BaseError, ValueError) as error:
            raise BucketError(errno.EIO, _reason(error), f"{self.address}/{key}") from error


def _connect(bucket: str, timeout_s: float, retry_s: float, retries: int) -> ObjectStore:
    """A client of a bucket, whose endpoint and credentials are those of the environment.

    Raises ModuleNotFoundError where obstore is not installed.
    """
    from obstore.exceptions import BaseError  # noqa: PLC0415  as above
    from obstore.store import from_url  # noqa: PLC0415  as above

    client: ClientConfig = {
        "allow_http": True,  # of an endpoint that the environment names so; others are asked over TLS
        "timeout": timedelta(seconds=timeout_s),
        "connect_timeout": timedelta(seconds=min(timeout_s, 5.0)),
    }
    again: RetryConfig = {"max_retries": retries, "retry_timeout": timedelta(seconds=retry_s)}
    options: dict[str, Any] = {"client_options": client, "retry_config": again}
    try:
        return from_url(bucket, **options)
    except (BaseError, ValueError) as error:
        raise BucketError(errno.EIO, _reason(error), bucket) from error


def _reason(error: BaseException) -> str:
    """What went wrong and where, of what obstore says with its notes for debugging."""
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
