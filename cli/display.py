"""What a person sees of a running study: a live display on a terminal, a line a finished trial elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ..engine.events import Ended, Event, Listener
from ..studies.trial import Trial
from . import drawing
from .columns import Columns
from .progress import Progress
from .streams import say

STOPPING = "stopping after this epoch … (Ctrl-C again: at once)"


@contextmanager
def shown(name: str, progress: Progress) -> Iterator[Listener]:
    """A listener that shows a study on standard error while it runs; nothing stays on a terminal."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield Lines(progress)
        return
    display = Display(name, progress, console)
    with Live(
        get_renderable=display.picture,
        console=console,
        transient=True,
        refresh_per_second=4,
        redirect_stdout=False,  # data is not for the display to touch
    ):
        yield display


class Display:
    """The live display; `picture` is called by the thread that draws, the rest by that of the study."""

    def __init__(self, name: str, progress: Progress, console: Console) -> None:
        self._name, self._progress, self._console = name, progress, console
        self._columns = Columns()
        self._lock = threading.Lock()
        self._stopping = False

    def announce(self, trials: Sequence[Trial]) -> None:
        """Expect these trials."""
        with self._lock:
            self._progress.announce(trials)
            self._columns.add(trials)

    def stopping(self) -> None:
        """Say so from now on; called by a signal's handler, so it must not wait for the lock."""
        self._stopping = True

    def hear(self, event: Event) -> None:
        """Take note of an event."""
        with self._lock:
            self._progress.hear(event, time.monotonic())

    def picture(self) -> Text:
        """The lines as they are now, as wide as the terminal allows."""
        width = self._console.width
        with self._lock:
            self._progress.pass_time(time.monotonic())
            name, full, empty, tail = drawing.heading(self._name, self._progress, width)
            lines = drawing.running(self._progress, self._columns, width)
        head = Text.assemble(name, (full, "green"), (empty, "dim"), tail, no_wrap=True, overflow="crop")
        below = [*lines, *([STOPPING] if self._stopping else [])]
        return Text("\n", no_wrap=True, overflow="crop").join([head, *map(Text, below)])


class Lines:
    """One line for each trial that has ended, and nothing else, for logs and pipes."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._columns = progress, Columns()

    def announce(self, trials: Sequence[Trial]) -> None:
        """Expect these trials."""
        self._progress.announce(trials)
        self._columns.add(trials)

    def stopping(self) -> None:
        """Say so at once; a signal's handler must not write to a stream that is being written to."""
        os.write(sys.stderr.fileno(), f"{STOPPING}\n".encode())

    def hear(self, event: Event) -> None:
        """Print a line if a trial has ended."""
        self._progress.hear(event, time.monotonic())
        if isinstance(event, Ended):
            trial = self._progress.trial(event.trial)
            say(drawing.ended(event, trial, self._progress, self._columns))
