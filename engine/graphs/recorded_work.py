"""Work on batches, for each shape of a batch recorded once and replayed from then on."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from weakref import ref

import torch
from torch import Generator, Tensor

from ...errors import ActivememError
from ..trial.memory_retries import SPARES, free_memory

MAX_RECORDINGS = 64
"""So many recordings a worker has; of more, the one goes that was not replayed for longest."""

WORTH = 20
"""So often recordings were replayed for each of them before they give way: to record takes some steps."""

Work = Callable[[], None]
"""Reads and writes tensors in place."""

Record = Callable[[Work, Sequence[Generator]], Work]
"""Records work that draws from these generators and the process's own, which are left as they were.

What does it again, with what the generators draw next. RuntimeError for work that cannot be recorded.
"""

Key = tuple[tuple[torch.Size, torch.dtype], ...]
"""The shapes of a batch."""

_log = logging.getLogger(__name__)


def require_same_weights(recorded: Collection[object], given: Collection[object]) -> None:
    """RuntimeError where a step gives gradients to other weights than the steps that were recorded before.

    All recordings write the same gradients: a weight without one would move, or one with one stand still.
    """
    if set(recorded) != set(given):
        raise RuntimeError("which weights have gradients depends on the length of a batch")


class BrokenRecordingError(ActivememError, RuntimeError):
    """Recording failed in a way that leaves nothing else to be recorded in this process, or replayed."""


class Recordings:
    """How a worker records, and which recordings of all its trainings and packs were replayed last."""

    def __init__(self, record: Record, most: int = MAX_RECORDINGS) -> None:
        self._record, self._most = record, most
        self._replayed = self._largest = 0  # since all were dropped
        self.closed = False  # nothing is recorded any more
        self._used = OrderedDict[tuple[ref[RecordedWork], Key], None]()
        self._told = set[str]()
        SPARES.add(self)

    def __len__(self) -> int:
        return sum(owner() is not None for owner, _ in self._used)

    def record(self, make: Callable[[], Work], generators: Sequence[Generator], batch_bytes: int) -> Work:
        """What does the work again that is made; where memory is short, others give theirs back.

        Only those that have been worth it do. A larger batch than all before takes their place: what they
        leave would not fit it, and would be held beside. So all hold together about what that of the largest
        batch does. RuntimeError as of what records.
        """
        if batch_bytes > self._largest or not len(self):  # those of a training that has ended are gone
            self.give_back()
            self._largest = batch_bytes
        if self._replayed > WORTH * len(self) > 0:
            with suppress(torch.OutOfMemoryError):
                return self._record(make(), generators)
            free_memory()  # of these, and of all else that only makes steps faster
            self._largest = batch_bytes
        return self._record(make(), generators)

    def take_note(self, owner: RecordedWork, shape: Key) -> None:
        """A recording is made or replayed now; those that are too many by it are dropped."""
        entry, self._replayed = (ref(owner), shape), self._replayed + 1
        if entry not in self._used:
            for gone in [each for each in self._used if each[0]() is None]:
                del self._used[gone]
        self._used[entry] = None
        self._used.move_to_end(entry)
        while len(self._used) > self._most:
            (longest, old), _ = self._used.popitem(last=False)
            if (found := longest()) is not None:
                found.drop(old)

    def forget(self, owner: RecordedWork) -> None:
        """Who has had recordings has none any more."""
        for entry in [each for each in self._used if each[0]() is owner]:
            del self._used[entry]

    def close(self) -> None:
        """Drop all, and have no others."""
        self.closed = True
        self.give_back()

    def give_back(self) -> None:
        """Drop all until they come again."""
        for owner in {owner for owner, _ in self._used}:
            if (found := owner()) is not None:
                found.clear()
        self._used.clear()
        self._replayed = self._largest = 0

    def tell(self, reason: str) -> None:
        """Say once why something is not recorded."""
        if reason not in self._told:
            self._told.add(reason)
            _log.warning("steps are not recorded as graphs: %s", reason)


@dataclass(frozen=True, slots=True)
class _Recording:
    """What is replayed, and the batch that it reads."""

    replay: Work
    batch: tuple[Tensor, ...]


class RecordedWork:
    """The recordings of what is done with batches of one training or pack.

    Where one cannot be made, none is kept and none made from then on; the reason is told.
    """

    def __init__(self, recordings: Recordings) -> None:
        self._recordings, self._kept = recordings, dict[Key, _Recording]()
        self.reason: str | None = None  # why nothing is recorded any more

    def __len__(self) -> int:
        return len(self._kept)

    def do(
        self,
        batch: Sequence[Tensor],
        make: Callable[[tuple[Tensor, ...]], Work],
        generators: Sequence[Generator] = (),
        changed: Sequence[Tensor] = (),
    ) -> bool:
        """Do what was made for batches of this shape with this one; False if that cannot be recorded.

        `make` gives the work on tensors that take the place of the batch; it draws from the generators. What
        it changes in place beside, `changed`, is left as it was by recording, which does the work some times.
        """
        if self.reason is not None or self._recordings.closed:
            return False
        shape = tuple((rows.shape, rows.dtype) for rows in batch)
        if shape not in self._kept:
            own, before = tuple(rows.clone() for rows in batch), [each.clone() for each in changed]
            try:
                self._kept[shape] = _Recording(self._record(own, make, generators), own)
            except RuntimeError as error:
                self._give_up(error)
                return False
            finally:
                for each, old in zip(changed, before, strict=True):
                    each.copy_(old)
        found = self._kept[shape]
        self._recordings.take_note(self, shape)
        for own, rows in zip(found.batch, batch, strict=True):
            own.copy_(rows, non_blocking=True)
        found.replay()
        return True

    def _record(
        self,
        batch: tuple[Tensor, ...],
        make: Callable[[tuple[Tensor, ...]], Work],
        generators: Sequence[Generator],
    ) -> Work:
        batch_bytes = sum(rows.nbytes for rows in batch)
        return self._recordings.record(partial(make, batch), generators, batch_bytes)

    def _give_up(self, error: RuntimeError) -> None:
        self.reason = str(error).partition("\n")[0]
        self._recordings.tell(self.reason)
        if isinstance(error, BrokenRecordingError):
            self._recordings.close()
        else:
            self._recordings.forget(self)
        self.clear()

    def drop(self, shape: Key) -> None:
        """Have no recording for this shape until it comes again."""
        self._kept.pop(shape, None)

    def clear(self) -> None:
        """Have no recordings for any shape until they come again."""
        self._kept.clear()
