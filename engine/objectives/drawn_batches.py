"""The batches of a corpus in the order in which a training draws them, and how many it has drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from .base import StepShape

BatchOf = TypeVar("BatchOf")


class DrawnBatches(Generic[BatchOf]):
    """Draws one batch for each step; what has been drawn is all that the next batch depends on.

    `start` iterates from a number of batches on, and `size_of` has the sequences of a batch and the symbols
    of all of them, padding included.
    """

    def __init__(
        self, start: Callable[[int], Iterator[BatchOf]], size_of: Callable[[BatchOf], tuple[int, int]]
    ) -> None:
        self._start, self._size_of = start, size_of
        self._batches: Iterator[BatchOf] | None = None
        self._current: BatchOf | None = None
        self._count = self._sequences = self._symbols = 0

    @property
    def count(self) -> int:
        """How many have been drawn."""
        return self._count

    @property
    def current(self) -> BatchOf:
        """The last that was drawn."""
        assert self._current is not None, "a batch is begun first"
        return self._current

    def draw(self) -> BatchOf:
        """The next batch, which is the current one from now on."""
        if self._batches is None:
            self._batches = self._start(self._count)
        self._count += 1
        self._current = next(self._batches)
        sequences, symbols = self._size_of(self._current)
        self._sequences += sequences
        self._symbols += symbols
        return self._current

    def mean_shape(self, batch_size: int | None) -> StepShape:
        """Sequences of the mean length of those drawn so far; without a size as many as a step had."""
        tokens = self._symbols // max(self._sequences, 1)
        sequences = round(self._sequences / max(self._count, 1)) if batch_size is None else batch_size
        return StepShape(sequences=sequences, tokens=tokens)

    def state(self) -> dict[str, Any]:
        """How many batches have been drawn, and what their mean shape follows from."""
        return {"position": self._count, "padded": self._symbols, "drawn": self._sequences}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._count, self._batches = state["position"], None
        self._symbols, self._sequences = state["padded"], state["drawn"]
