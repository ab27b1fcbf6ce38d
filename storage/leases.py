"""Leases: who trains an attempt at a trial, so that drivers which share a store train nothing twice.

Attempt N at a trial belongs to the one process that creates the file `leases/TRIAL-N`: exclusive creation
is atomic on a local disk and on NFS. So N is the fencing number, too. The file's first line is its owner;
behind it the owner's process adds a byte every few seconds as long as it lives, and a last one when the
outcome is stored. Who finds a lease whose owner is gone takes the trial over by creating N + 1, which again
only one can; the owner before, should it wake up, sees that file and stores nothing more.

An owner is gone if its process has ended, as seen on the same machine since the same start of it; else if
nothing has been added for the lease's length on the clock of whoever watches. Clocks of two machines are
never compared. Nothing is flushed: a power cut that loses a lease has ended its owner, too, and a trial
that somebody else then trains once more is stored once more at worst, beside the first and never over it.
"""

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar, Final
from weakref import WeakSet

from pydantic import Field

from .integrity.checksum import DamagedError
from .integrity.record import Record, decode_record, encode_record
from .integrity.regular_file import UnreadableError, read_regular
from .paths import Layout, entries
from .processes import is_running, process_start, this_machine

LEASE_S: Final = 60.0
"""A lease runs out when its owner has been silent for so long."""

MAX_LEASE_S: Final = 24 * 3600.0
"""No lease is longer: a trial must not wait for ever for an owner that is gone."""

BEATS_PER_LEASE: Final = 6

KEPT_S: Final = 2 * 3600.0
"""Leases are kept for so long after their last byte: who planned earlier learns from them what has ended."""

SWEEPS: Final = "sweeps"
"""The file in the folder of leases with a byte for each time that leases of ended trials were removed."""

_BEAT: Final = b"."
ENDED: Final = b"e"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A process of a run; `machine` and `started` tell it from others that have had its number.

    They are None where the system does not say; its death is then not seen, and its leases run out.
    """

    host: str
    pid: int
    run: str
    machine: str | None
    started: str | None

    def has_died(self) -> bool:
        """Return whether this process is known to have ended; False if that cannot be seen from here."""
        is_here = self.machine is not None and self.machine == this_machine()
        return is_here and not is_running(self.pid, self.started)


class _Header(Record):
    """The first line of a lease."""

    owner: Owner
    lease_s: float = Field(gt=0, le=MAX_LEASE_S)
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseState:
    """An attempt that somebody has claimed, as seen now.

    `ended` says that its outcome is stored, `gone` that the owner is no more and the trial may be taken over,
    `listed` that whoever lists the store sees all that was stored before, wherever that is.
    """

    trial: str
    attempt: int
    owner: Owner
    ended: bool
    gone: bool
    listed: bool = False

    @property
    def lists_are_current(self) -> bool:
        """Whether what the owner has stored is seen by whoever lists the store now.

        On the owner's machine it is; on others NFS may show a folder as it was before, though not for long.
        """
        return (
            self.gone
            or self.listed
            or (self.owner.machine is not None and self.owner.machine == this_machine())
        )


class Lease:
    """An attempt that this process has claimed; it must be ended or released."""

    def __init__(self, path: Path, next_path: Path, header: bytes, trial: str, attempt: int) -> None:
        self.trial, self.attempt, self.over = trial, attempt, False
        self._path, self._next, self._header = path, next_path, header

    def is_lost(self) -> bool:
        """Whether another process has taken the trial over, so that nothing may be stored any more.

        NFS may tell it late, by as much as the attributes of a folder are cached.
        """
        try:
            return not read_regular(self._path).startswith(self._header) or os.path.lexists(self._next)
        except (FileNotFoundError, UnreadableError):
            return True

    def beat(self) -> None:
        """Show that the owner lives, if the file system lets it; a lease that cannot be renewed runs out."""
        self._append(_BEAT)

    def end(self) -> None:
        """Note that the outcome is stored."""
        self.over = True
        self._append(ENDED)

    def release(self) -> None:
        """Give the attempt back without an outcome; the next claim may have its number."""
        self.over = True
        if not self.is_lost():
            self._path.unlink(missing_ok=True)

    def _append(self, mark: bytes) -> None:
        with suppress(OSError):
            descriptor = os.open(
                self._path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK
            )  # no pipe is waited for
            try:
                os.write(descriptor, mark)
            finally:
                os.close(descriptor)


@dataclass(slots=True)
class _Watched:
    """What a lease was known by when it was looked at, and since when it has been so."""

    mark: object
    since: float


@dataclass(weakref_slot=True, slots=True)
class Leases:
    """The leases of a store as one process of a run sees them; it keeps alive what it has claimed.

    `lease_s` is the length of the leases that it claims, and `clock` tells the seconds for which others are
    silent. A lease that nobody holds a reference to is no longer renewed.
    """

    poll_s: ClassVar[float] = 0.5
    """So often leases are looked at by whoever waits for them."""

    lists_are_consistent: ClassVar[bool] = False
    """Whether a list of the store has all that was stored before, seen from anywhere."""

    layout: Layout
    owner: Owner
    lease_s: float = field(default_factory=lambda: LEASE_S)
    clock: Callable[[], float] = time.monotonic
    _held: WeakSet[Lease] = field(default_factory=WeakSet[Lease])
    _watched: dict[tuple[str, int], _Watched] = field(default_factory=dict[tuple[str, int], _Watched])
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    def claim(self, trial: str, attempt: int, *, gone: int = -1) -> Lease | LeaseState:
        """Claim a trial's attempt of this number, or a later one if owners before are gone.

        Attempts up to number `gone` are taken for given up; so are those of the own run, which hands a trial
        to one worker at a time. Returns the claim that stands in the way if there is one. Raises OSError.
        """
        while True:
            if (found := self.find(trial, attempt)) is not None:
                own = found.owner.run == self.owner.run
                if found.ended or not (found.gone or own or found.attempt <= gone):
                    return found
                attempt = found.attempt + 1
            if (lease := self._create(trial, attempt)) is not None:
                self._keep(lease)
                return lease

    def find(self, trial: str, attempt: int) -> LeaseState | None:
        """The latest claim of a trial from this attempt on; asked again, it knows whether the owner lives."""
        found = self._look(trial, attempt)
        return None if found is None else self._as_seen(trial, *found)

    def count_sweeps(self) -> int:
        """Return how often leases of ended trials were removed; one more says that the store knows more."""
        try:
            with (self.layout.leases / SWEEPS).open("rb") as file:  # opened: NFS then asks the server
                return os.fstat(file.fileno()).st_size
        except OSError:
            return 0

    def beat(self) -> None:
        """Renew every lease that is held."""
        for lease in tuple(self._held):
            if lease.over:
                self._held.discard(lease)
            else:
                lease.beat()

    def _look(self, trial: str, attempt: int) -> tuple[int, bytes, object] | None:
        """The latest claim from this attempt on: its number, its text, what its renewal changes."""
        while True:
            last = attempt
            while os.path.lexists(self._path(trial, last + 1)):
                last += 1
            try:
                data = read_regular(self._path(trial, last))
            except UnreadableError:  # a pipe or a link to nothing under its name runs out as any other
                data = b""
            except FileNotFoundError:
                if last == attempt:
                    return None
                continue  # released meanwhile
            return last, data, len(data)

    def _as_seen(self, trial: str, attempt: int, data: bytes, mark: object) -> LeaseState:
        """What a lease's file says; one whose owner cannot be read yet is watched as any other."""
        header, ended, beats = data.partition(b"\n")
        try:
            record = decode_record(header + ended, _Header)
            owner, lease_s = record.owner, record.lease_s
        except DamagedError:
            owner = Owner(host="an unknown host", pid=0, run="", machine=None, started=None)
            lease_s = LEASE_S
        now, watched = self.clock(), self._watched.get((trial, attempt))
        if watched is None or watched.mark != mark:
            watched = self._watched[trial, attempt] = _Watched(mark, now)
        silent_s = now - watched.since
        return LeaseState(
            trial=trial,
            attempt=attempt,
            owner=owner,
            ended=ENDED in beats,
            gone=owner.has_died() or silent_s >= lease_s,
            listed=self.lists_are_consistent,
        )

    def _create(self, trial: str, attempt: int) -> Lease | None:
        """Create a lease; None if another process was faster."""
        path = self._path(trial, attempt)
        header = self._header()
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            return None
        try:
            os.write(descriptor, header)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        return Lease(path, self._path(trial, attempt + 1), header, trial, attempt)

    def _header(self) -> bytes:
        """Return the first line of a new lease, which no other lease has."""
        page = {"owner": asdict(self.owner), "lease_s": self.lease_s, "token": secrets.token_hex(8)}
        return encode_record(page)

    def _path(self, trial: str, attempt: int) -> Path:
        return self.layout.lease(trial, attempt)

    def _keep(self, lease: Lease) -> None:
        """Renew a lease from now on, by a thread that ends with this process or when none is held."""
        with self._lock:
            self._held.add(lease)
            if self._thread is None:
                self._thread = threading.Thread(target=self._renew, name="leases", daemon=True)
                self._thread.start()

    def _renew(self) -> None:
        pause = threading.Event()
        while True:
            pause.wait(self.lease_s / BEATS_PER_LEASE)
            self.beat()
            with self._lock:
                if not self._held:
                    self._thread = None
                    return


def this_process(run: str) -> Owner:
    """The calling process, as a worker of a run."""
    pid = os.getpid()
    return Owner(
        host=socket.gethostname(), pid=pid, run=run, machine=this_machine(), started=process_start(pid)
    )


def remove_old_leases(layout: Layout) -> None:
    """Remove the leases of trials of which all have been silent for `KEPT_S`, by the file system's clock."""
    by_trial: dict[str, list[tuple[Path, float]]] = {}
    layout.pull_names(layout.leases)
    for path in entries(layout.leases):
        if path.name == SWEEPS:
            continue
        with suppress(FileNotFoundError):
            by_trial.setdefault(path.name.rpartition("-")[0], []).append((path, path.stat().st_mtime))
    if not by_trial:
        return
    oldest = layout.file_time() - KEPT_S
    for leases in by_trial.values():
        if all(written < oldest for _, written in leases):
            layout.remove(*(path for path, _ in leases))


def remove_ended_leases(layout: Layout, last_numbers: Mapping[str, int]) -> None:
    """Remove the leases whose outcomes are stored, given the number of each trial's last stored attempt.

    A driver that planned such a trial before it ended finds its lease free. So `SWEEPS` grows first: whoever
    creates a lease looks there next, and reads the store again before it trains.
    """
    ended = list[Path]()
    for path in entries(layout.leases):
        trial, _, attempt = path.name.rpartition("-")
        if attempt.isdecimal() and int(attempt) <= last_numbers.get(trial, -1):
            ended.append(path)
    if ended:
        with (layout.leases / SWEEPS).open("ab") as file:
            file.write(b".")
        layout.remove(*ended)
