"""Leases in a bucket: an object that only one process can create, which its owner alone renews.

Each renewal replaces the object if it still is what the owner wrote last, and so changes its tag: whoever
watches measures, on the own clock, how long the tag has stayed the same. As in a folder, a trial is taken
over by creating the next object, and no renewal of the one before brings it back.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from ..leases import ENDED, Lease, Leases, Owner
from .bucket import Bucket, Version
from .object_layout import ObjectLayout


class ObjectLease(Lease):
    """An attempt that this process has claimed by an object."""

    def __init__(
        self,
        bucket: Bucket,
        keys: tuple[str, str],
        header: bytes,
        version: Version,
        *,
        trial: str,
        attempt: int,
    ) -> None:
        self.trial, self.attempt, self.over = trial, attempt, False
        self._bucket, (self._key, self._next_key), self._header = bucket, keys, header
        self._version, self._beats, self._is_gone = version, 0, False
        self._writing = threading.Lock()

    def is_lost(self) -> bool:
        """Whether another process has taken the trial over; raises `BucketError` where nobody can say."""
        found = None if self._is_gone else self._bucket.get(self._key)
        mine = found is not None and found.data.startswith(self._header)
        return not mine or self._bucket.head(self._next_key) is not None

    def beat(self) -> None:
        """Show that the owner lives, if the server can be reached."""
        with suppress(OSError):
            self._write(b"")

    def end(self) -> None:
        """Note that the outcome is stored; where that is not possible, the lease runs out."""
        self.over = True
        with suppress(OSError):
            self._write(ENDED)

    def release(self) -> None:
        """Give the attempt back without an outcome."""
        self.over = True
        if not self.is_lost():
            self._bucket.delete([self._key])

    def _write(self, mark: bytes) -> None:
        """Replace the object, unless somebody else has written it or it is gone."""
        with self._writing:
            if self._is_gone or (self.over and mark != ENDED):
                return
            self._beats += 1
            data = self._header + str(self._beats).encode() + mark
            version = self._bucket.update(self._key, data, self._version)
            if version is None:  # perhaps since the answer to an earlier renewal was lost
                found = self._bucket.get(self._key)
                if found is not None and found.data.startswith(self._header):
                    version = self._bucket.update(self._key, data, found.info.version)
            if version is None:
                self._is_gone = True
            else:
                self._version = version


class ObjectLeases(Leases):
    """The leases of a store in a bucket, as one process of a run sees them."""

    poll_s = 2.0
    lists_are_consistent = True

    def __init__(self, layout: ObjectLayout, owner: Owner) -> None:
        Leases.__init__(self, layout, owner)
        self._bucket = layout.bucket

    def count_sweeps(self) -> int:
        """Return 0: in a bucket, leases run out and are removed by their age alone."""
        return 0

    def _look(self, trial: str, attempt: int) -> tuple[int, bytes, object] | None:
        while True:
            last = attempt
            while self._bucket.head(self._key(trial, last + 1)) is not None:
                last += 1
            if (found := self._bucket.get(self._key(trial, last))) is not None:
                return last, found.data, found.info.version
            if last == attempt:
                return None

    def _create(self, trial: str, attempt: int) -> Lease | None:
        header = self._header()
        keys = self._key(trial, attempt), self._key(trial, attempt + 1)
        try:
            version = self._bucket.create(keys[0], header)
        except FileExistsError:
            return None
        return ObjectLease(self._bucket, keys, header, version, trial=trial, attempt=attempt)

    def _key(self, trial: str, attempt: int) -> str:
        return self._path(trial, attempt).relative_to(self.layout.root).as_posix()
