"""Time, operations and tokens of a training."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ...studies.catalog.tasks import ModelInterface
from ...studies.schema.settings import ModelSettings
from ..core.interruption import Interruption
from ..core.models import sequence_flops
from ..objectives import StepShape


class Work:
    """Counters of the work of a training: over all epochs, and the seconds of the epoch under way."""

    def __init__(self) -> None:
        self.seconds = self.flops = self.tokens = self.epoch_seconds = 0.0
        self._began: float | None = None

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the time of a context, unless the trial fails in it."""
        self._began = time.perf_counter()
        try:
            yield
        except Interruption:
            self.add_seconds(self.pending_seconds)
            raise
        else:
            self.add_seconds(self.pending_seconds)
        finally:
            self._began = None

    @property
    def pending_seconds(self) -> float:
        """Return the seconds since the timed context began, which are not counted yet; 0 outside of it."""
        return 0.0 if self._began is None else time.perf_counter() - self._began

    def add_seconds(self, seconds: float) -> None:
        """Count time that steps of the epoch under way took."""
        self.seconds, self.epoch_seconds = self.seconds + seconds, self.epoch_seconds + seconds

    def add_steps(
        self, model: ModelSettings, interface: ModelInterface, shapes: Mapping[StepShape, int]
    ) -> float:
        """Count the operations and tokens of so many steps of each shape; return the tokens."""
        tokens = 0.0
        for shape, steps in shapes.items():
            sequences = steps * shape.sequences
            self.flops += sequences * sequence_flops(model, interface, tokens=shape.tokens, past=shape.past)
            tokens += sequences * shape.tokens
        self.tokens += tokens
        return tokens
