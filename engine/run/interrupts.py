"""Stopping in good order: the first Ctrl-C asks for an end after the epochs under way, the second insists."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass(slots=True)
class Stop:
    """Whether somebody asked to stop."""

    requested: bool = False


@contextmanager
def on_interrupt(on_request: Callable[[], None]) -> Iterator[Stop]:
    """A Stop that Ctrl-C or a SIGTERM requests, with `on_request`; the second raises KeyboardInterrupt."""
    stop = Stop()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        if stop.requested:
            raise KeyboardInterrupt
        stop.requested = True
        on_request()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
