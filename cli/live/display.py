"""Display of a running study: live on a terminal, one line for each finished trial elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ...diagnostics import replace_unprintable
from ...engine.core.events import ClusterNode, Ended, Event, Listener, Started, Taken
from ...engine.core.interruption import GRACE_S
from ...engine.core.progress import Progress, StudyProgress
from ...studies.resolve.trial import Trial
from ...studies.text.units import format_duration, plural
from ..output import print_stderr
from ..views import trial_lines
from ..views.headline import Headline
from ..views.trial_names import TrialNames
from .nodes import format_nodes

STOPPING_MESSAGE = f"stopping at the next step, or in {GRACE_S:g} s … (Ctrl-C again: at once)"

RAY_MESSAGE = "starting Ray … (--local trains in this process, without Ray)"

RAY_AGAIN_MESSAGE = "starting Ray again (attempt {attempt}): its processes took longer than Ray waits …"


@contextmanager
def live_display(
    name: str, progress: StudyProgress, names: TrialNames, headline: Headline
) -> Iterator[Listener]:
    """Yield a listener that shows a study on standard error while it runs; nothing stays on a terminal."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield LineDisplay(progress, names, headline)
        return
    display = Display(name, progress, console, names, headline)
    with drawing(console, display.render):
        yield display


@contextmanager
def drawing(console: Console, render: Callable[[], Group]) -> Iterator[None]:
    """Draw on a terminal what a function says, again and again, until the context ends."""
    with Live(
        get_renderable=render,
        console=console,
        transient=True,
        refresh_per_second=4,
        redirect_stdout=False,  # data is not for the display to touch
    ):
        yield


def draw(name: str, progress: Progress, columns: TrialNames, width: int, below: Sequence[str]) -> Group:
    """Return a study's display: a bar, its running trials, and lines below, within the terminal's width."""
    bar = ProgressBar(total=1, completed=progress.share, complete_style="green")
    heading = Table.grid(padding=(0, 1))
    heading.add_column(max_width=24, no_wrap=True)
    heading.add_column(min_width=8, max_width=40)
    heading.add_column(no_wrap=True, overflow="crop")
    heading.add_row(Text(replace_unprintable(name)), bar, trial_lines.format_counts(progress))
    lines = [*trial_lines.format_running(progress, columns, width), *below]
    shown = (Text(replace_unprintable(line), no_wrap=True, overflow="crop") for line in lines)
    return Group(heading, *shown)


class Display(Listener):
    """The live display; `render` is called by the thread that draws, the rest by the thread of the study."""

    def __init__(
        self, name: str, progress: StudyProgress, console: Console, names: TrialNames, headline: Headline
    ) -> None:
        self._name, self._progress, self._console = name, progress, console
        self._columns, self._headline = names, headline
        self._last = ""  # the line of the trial that ended last
        self._lock = threading.Lock()
        self._stopping = False
        self._others: tuple[Taken, ...] = ()
        self._started: set[str] = set()

    def on_planned(self, trials: Sequence[Trial]) -> None:
        """Expect these trials."""
        with self._lock:
            self._progress.on_planned(trials)
            self._columns.add(trials)
            self._others = ()

    def training_here(self, trials: int, seconds: float) -> None:
        """Print it above what changes."""
        self._console.print(_format_short_grid(trials, seconds))

    def starting_ray(self, attempt: int) -> None:
        """Print it above what changes."""
        self._console.print(_format_start(attempt))

    def stopping(self) -> None:
        """Say so from now on; called by a signal's handler, so it must not wait for the lock."""
        self._stopping = True

    def waiting(self, others: Sequence[Taken]) -> None:
        """Say who trains what is left, until there is something to do."""
        self._others = tuple(others)

    def on_nodes(self, nodes: Sequence[ClusterNode]) -> None:
        """Print them above what changes."""
        for line in format_nodes(nodes):
            self._console.print(Text(replace_unprintable(line)), soft_wrap=True)

    def on_event(self, event: Event) -> None:
        """Record an event."""
        with self._lock:
            self._progress.on_event(event, time.monotonic())
            continued = _continued_line(event, self._progress, self._columns, self._started)
            if isinstance(event, Ended):
                self._last = _ended_line(event, self._progress, self._columns, self._headline)
        if continued is not None:
            self._console.print(Text(replace_unprintable(continued)), soft_wrap=True)

    def render(self) -> Group:
        """Return the bar and the lines, within the terminal's width."""
        below = [self._last] if self._last else []
        below += [trial_lines.format_others(self._others)] if self._others else []
        below += [STOPPING_MESSAGE] if self._stopping else []
        with self._lock:
            self._progress.advance_clock(time.monotonic())
            return draw(self._name, self._progress, self._columns, self._console.width, below)


class LineDisplay(Listener):
    """One line for each trial that has ended, and when others are waited for, for logs and pipes."""

    def __init__(self, progress: StudyProgress, names: TrialNames, headline: Headline) -> None:
        self._progress, self._columns, self._headline = progress, names, headline
        self._started: set[str] = set()

    def on_planned(self, trials: Sequence[Trial]) -> None:
        """Expect these trials."""
        self._progress.on_planned(trials)
        self._columns.add(trials)

    def training_here(self, trials: int, seconds: float) -> None:
        """Print it."""
        print_stderr(_format_short_grid(trials, seconds))

    def starting_ray(self, attempt: int) -> None:
        """Print it."""
        print_stderr(_format_start(attempt))

    def stopping(self) -> None:
        """Say so at once; a signal's handler must not write to a stream that is being written to."""
        os.write(sys.stderr.fileno(), f"{STOPPING_MESSAGE}\n".encode())

    def waiting(self, others: Sequence[Taken]) -> None:
        """Print who trains what is left."""
        print_stderr(trial_lines.format_others(others))

    def on_nodes(self, nodes: Sequence[ClusterNode]) -> None:
        """Print them."""
        for line in format_nodes(nodes):
            print_stderr(line)

    def on_event(self, event: Event) -> None:
        """Print a line if a trial has ended, or continues where an earlier run has left it."""
        self._progress.on_event(event, time.monotonic())
        continued = _continued_line(event, self._progress, self._columns, self._started)
        if continued is not None:
            print_stderr(continued)
        if isinstance(event, Ended):
            print_stderr(_ended_line(event, self._progress, self._columns, self._headline))


def _ended_line(event: Ended, progress: StudyProgress, columns: TrialNames, headline: Headline) -> str:
    count = progress.counts.total(), progress.total
    return trial_lines.format_ended(event, progress.trial(event.trial), count, columns, headline)


def _continued_line(
    event: Event, progress: StudyProgress, columns: TrialNames, started: set[str]
) -> str | None:
    """Return the line of a trial that continues an earlier run; note the trial as started in this run."""
    if not isinstance(event, Started) or event.trial in started:
        return None
    started.add(event.trial)
    if not event.epoch and not event.step:
        return None
    return trial_lines.format_continued(event, progress.trial(event.trial), columns)


def _format_start(attempt: int) -> str:
    return RAY_MESSAGE if attempt == 1 else RAY_AGAIN_MESSAGE.format(attempt=attempt)


def _format_short_grid(trials: int, seconds: float) -> str:
    each = format_duration(max(1.0, seconds / trials))
    return (
        f"{plural(trials, 'trial')} of about {each}: run in this process, one after the other; --ray uses Ray"
    )
