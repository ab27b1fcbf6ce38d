"""Leases: claims on attempts at trials.

They prevent two drivers with the same store from training the same trial. A driver is a process that runs a
study. Attempt N at a trial belongs to the process that creates the file `leases/TRIAL-N`; only one process
can create it. So N is also the fencing number. The first line of the file names the owner. While it lives,
the owner's process appends a byte every few seconds, and a last byte when the outcome is stored. A process
that finds the lease of a dead owner takes the trial over by creating the file of attempt N + 1. If the
previous owner wakes up, it sees that file and stores nothing more.

On the same machine, during the same boot, an owner is gone if its process has ended. In all other cases, an
owner counts as gone if the file has not changed for the length of the lease, by the clock of the process that
watches. Clocks of two machines are never compared. Leases are not flushed: a power cut that loses a lease has
ended its owner, too. At worst a trial is trained and stored once more, without replacing the first outcome.
"""

from __future__ import annotations

import errno
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final
from weakref import WeakSet

from pydantic import Field

from .checksums import Record, decode_record, encode_record
from .errors import DamagedError, UnreadableError
from .files import closed_folder
from .own_files import is_own_file
from .place import Layout, Place, entries, store_time
from .processes import is_running, process_start, this_machine

LEASE_S: Final = 60.0
"""The silence of its owner, in seconds, after which a lease expires."""

MAX_LEASE_S: Final = 24 * 3600.0
"""The maximum length of a lease, so that a trial never waits forever."""

BEATS_PER_LEASE: Final = 6

KEPT_S: Final = 2 * 3600.0
"""The age after which leases of trials without an outcome are removed."""

SWEEPS: Final = "sweeps"
"""The file in the lease folder that changes whenever leases are removed."""

_BEAT: Final = b"."
ENDED: Final = b"e"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A process that owns leases.

    `machine` and `started` distinguish processes with the same pid. Both are None if the system does not
    report them. The end of the process then goes unnoticed until its leases expire.
    """

    host: str
    pid: int
    run: str
    machine: str | None
    started: str | None

    def has_died(self) -> bool:
        """Return whether this process has certainly ended. Return False if this machine cannot know it."""
        is_here = self.machine is not None and self.machine == this_machine()
        return is_here and not is_running(self.pid, self.started)


class _Header(Record):
    """Schema of the first line of a lease file."""

    owner: Owner
    lease_s: float = Field(gt=0, le=MAX_LEASE_S)
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseState:
    """The state of a claimed attempt when it was last read.

    - `ended`: the outcome is stored.
    - `gone`: the owner no longer exists, so another run may take over the trial.
    - `listed`: a listing of the store shows everything that was stored before, on every machine.
    """

    trial: str
    attempt: int
    owner: Owner
    ended: bool
    gone: bool
    listed: bool = False

    @property
    def lists_are_current(self) -> bool:
        """Return whether a listing of the store shows everything that the lease's owner has stored.

        This is true on the owner's machine. On other machines, NFS may show an outdated folder for a short
        time.
        """
        return (
            self.gone
            or self.listed
            or (self.owner.machine is not None and self.owner.machine == this_machine())
        )


class Lease:
    """An attempt that this process has claimed. The process must call `end` or `release`."""

    def __init__(self, leases: Leases, trial: str, attempt: int, header: bytes) -> None:
        self.trial, self.attempt = trial, attempt
        self._leases, self._place, self._header = leases, leases.layout.place, header
        self._path, self._next = (leases.layout.lease(trial, attempt + later) for later in (0, 1))

    def is_lost(self) -> bool:
        """Return whether another process has taken over the trial of this lease.

        If so, this process must store nothing more for the trial. On NFS, this may be noticed late, after the
        cache time of folder attributes. Raise OSError if a bucket cannot be reached.
        """
        try:
            mine = self._place.get(self._path).startswith(self._header)
        except (FileNotFoundError, UnreadableError):
            return True
        return not mine or _exists(self._place, self._next)

    def beat(self) -> None:
        """Renew the lease. If that fails, the lease expires unless a later renewal succeeds."""
        with suppress(OSError):
            self._place.touch(self._path, _BEAT)

    def end(self) -> None:
        """Record that the outcome is stored; if that fails, the lease expires."""
        self._leases.let_go(self)
        with suppress(OSError):
            self._place.touch(self._path, ENDED)

    def release(self) -> None:
        """Delete the lease of an attempt without an outcome. Its number may then be claimed again."""
        self._leases.let_go(self)
        if not self.is_lost():
            self._place.delete(self._path)


@dataclass(weakref_slot=True, slots=True)
class Leases:
    """The leases of a store, for one process of a run.

    The process claims trials, and renews its leases. `lease_s` is the length of the leases that this process
    claims. `clock` measures for how many seconds other owners are silent. A lease is no longer renewed once
    no object refers to it.
    """

    layout: Layout
    owner: Owner
    lease_s: float = field(default_factory=lambda: LEASE_S)
    clock: Callable[[], float] = time.monotonic
    _held: WeakSet[Lease] = field(default_factory=WeakSet[Lease])
    _watched: dict[tuple[str, int], tuple[bytes, float]] = field(
        default_factory=dict[tuple[str, int], tuple[bytes, float]]
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _renewal: tuple[threading.Thread, threading.Event] | None = None
    """The thread that renews the held leases, and the event that ends it."""

    @property
    def poll_s(self) -> float:
        """Return how many seconds a process waits between two reads of a lease."""
        return self.layout.place.poll_s

    def claim(self, trial: str, attempt: int, *, gone: int = -1) -> Lease | LeaseState:
        """Claim a trial, and return the new lease.

        If another process holds the trial, return the state of its claim. `attempt` is the first number to
        claim. If the owner of this attempt is gone, claim the next one. Attempts up to number `gone` count as
        abandoned. Attempts of the same run count as abandoned as well, because a run gives a trial to one
        worker at a time. Raise OSError if the claim cannot be written.
        """
        while True:
            if (found := self.find(trial, attempt)) is not None:
                own = found.owner.run == self.owner.run
                if found.ended or not (found.gone or own or found.attempt <= gone):
                    return found
                attempt = found.attempt + 1
            # the token makes the first line unique, so that `is_lost` recognises this claim
            page = {"owner": asdict(self.owner), "lease_s": self.lease_s, "token": secrets.token_hex(8)}
            header = encode_record(page)
            if self.layout.place.put_if_absent(self.layout.lease(trial, attempt), header):
                lease = Lease(self, trial, attempt, header)
                self._keep(lease)
                return lease

    def find(self, trial: str, attempt: int) -> LeaseState | None:
        """Return the state of a trial's latest claim; None if there is none.

        Only claims from attempt number `attempt` on count. Repeated calls detect whether an owner on another
        machine still lives.
        """
        place = self.layout.place
        while True:
            last = attempt
            while _exists(place, self.layout.lease(trial, last + 1)):
                last += 1
            try:
                return self._as_seen(trial, last, place.get(self.layout.lease(trial, last)))
            except UnreadableError:  # a pipe or a broken link expires like any other lease
                return self._as_seen(trial, last, b"")
            except FileNotFoundError:
                if last == attempt:
                    return None  # otherwise the lease was released meanwhile, so look again

    def held(self, attempts: Mapping[str, int]) -> frozenset[str]:
        """Return the trials that a process trains, for views. Attempts from these numbers on count.

        An owner on another machine counts as gone at the first call if the file is older than `KEPT_S` by the
        clock of this machine.
        """
        found = (self.find(trial, attempt) for trial, attempt in attempts.items())
        alive = [lease for lease in found if lease is not None and not (lease.ended or lease.gone)]
        old = set[str]()
        for lease in alive:
            with suppress(FileNotFoundError):  # in a bucket, or ended meanwhile
                written = self.layout.lease(lease.trial, lease.attempt).stat().st_mtime
                old |= {lease.trial} if time.time() - written > KEPT_S else set()
        return frozenset(lease.trial for lease in alive) - old

    def last_sweep(self) -> bytes:
        """Return a token that changes when leases are removed, so that the store must be read again."""
        try:
            return self.layout.place.get(self.layout.leases / SWEEPS)
        except (OSError, UnreadableError):
            return b""

    def beat(self) -> None:
        """Renew every lease that this process holds."""
        for lease in tuple(self._held):
            lease.beat()

    def _as_seen(self, trial: str, attempt: int, data: bytes) -> LeaseState:
        """Return the state of a lease from its file's bytes; without a readable owner it expires, too."""
        header, ended, beats = data.partition(b"\n")
        try:
            record = decode_record(header + ended, _Header)
            owner, lease_s = record.owner, record.lease_s
        except DamagedError:
            owner = Owner(host="an unknown host", pid=0, run="", machine=None, started=None)
            lease_s = LEASE_S
        now = self.clock()
        before, since = self._watched.get((trial, attempt), (None, now))
        # the file has changed since the last call, so the owner lived until now
        if before != data:
            since = now
            self._watched[trial, attempt] = data, now
        return LeaseState(
            trial=trial,
            attempt=attempt,
            owner=owner,
            ended=ENDED in beats,
            gone=owner.has_died() or now - since >= lease_s,
            listed=self.layout.place.lists_are_current,
        )

    def _keep(self, lease: Lease) -> None:
        """Let a background thread renew this lease; it ends when this process holds no lease."""
        with self._lock:
            self._held.add(lease)
            if self._renewal is None:
                ended = threading.Event()
                thread = threading.Thread(target=self._renew, args=(ended,), name="leases", daemon=True)
                self._renewal = thread, ended
                thread.start()

    def let_go(self, lease: Lease) -> None:
        """Renew this lease no longer. After the last one, wait until the thread has ended."""
        with self._lock:
            self._held.discard(lease)
            if self._held or self._renewal is None:
                return
            (thread, ended), self._renewal = self._renewal, None
        ended.set()
        thread.join()

    def _renew(self, ended: threading.Event) -> None:
        while not ended.wait(self.lease_s / BEATS_PER_LEASE):
            self.beat()
            with self._lock:
                if not self._held and not ended.is_set():  # no object refers to the leases any more
                    self._renewal = None
                    return


def _exists(place: Place, path: Path) -> bool:
    try:
        place.get(path)
    except FileNotFoundError:
        return False
    except UnreadableError:  # such as a folder, in whose place no lease can be created
        if (closed := closed_folder(path)) is not None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(closed)) from None
    return True


def this_process(run: str) -> Owner:
    """Return the calling process as an owner of leases in a run."""
    pid = os.getpid()
    return Owner(
        host=socket.gethostname(), pid=pid, run=run, machine=this_machine(), started=process_start(pid)
    )


def remove_leases(layout: Layout, last_numbers: Mapping[str, int]) -> None:
    """Remove the leases of attempts whose outcomes are stored, and of trials that nobody trains any more.

    `last_numbers` has the number of each trial's last stored attempt. All leases of a trial are removed if
    none has changed for `KEPT_S` seconds by the store's clock. A driver that planned a trial earlier may then
    claim it again. So the file `SWEEPS` changes first: a driver that has created a lease compares this file
    next. If it has changed, the driver reads the store again before it trains. If a folder is in the place of
    the file, all leases stay.
    """
    layout.place.list(layout.leases)
    changed: dict[str, list[tuple[Path, float]]] = {}
    for path in entries(layout.leases):
        trial, _, attempt = path.name.rpartition("-")
        with suppress(FileNotFoundError):
            if attempt.isdecimal() and is_own_file(layout.root, path):
                changed.setdefault(trial, []).append((path, path.stat().st_mtime))
    if not changed or layout.unfinished.is_symlink():  # no file can tell the store's time
        return
    oldest = store_time(layout.place) - KEPT_S
    removed = list[Path]()
    for trial, leases in changed.items():
        ended = last_numbers.get(trial, -1)
        is_old = all(written < oldest for _, written in leases)
        removed += [path for path, _ in leases if is_old or int(path.name.rpartition("-")[2]) <= ended]
    if removed:
        with suppress(IsADirectoryError):
            layout.place.put(layout.leases / SWEEPS, secrets.token_hex(8).encode())
            layout.place.delete(*removed)
