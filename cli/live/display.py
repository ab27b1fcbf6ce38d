"""Display of a running study: live on a terminal, otherwise one line for each ended trial."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as DownloadBars
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ...engine.core.events import ClusterNode, Event, Listener, RunningTrial, StudyProgress
from ...engine.core.process import GRACE_S
from ...engine.core.run import Run
from ...engine.corpora import download
from ...errors import replace_unprintable
from ...studies.resolve.trial import Trial
from ...studies.schema.factors import first_line
from ...studies.text.units import format_duration, plural
from ..views.trial_lines import (
    Headline,
    TrialNameColumns,
    format_trials,
    progress_words,
)

if TYPE_CHECKING:
    from ...reporting.serve.study_now import BegunTrial

_MAX_TRIAL_NAME_WIDTH = 42
"""The maximum width of the column with an ended trial's names."""

TRIAL_BAR_WIDTH = 8
"""The width of the bar of one running trial."""

MAX_SILENCE_S = 30.0
"""The seconds without output after which a run that has no terminal says what it trains."""

STOPPING_MESSAGE = f"stopping at the next step, or in {GRACE_S:g} s … (Ctrl-C again: at once)"

RAY_MESSAGE = (
    "starting Ray … its processes load torch, often for 10 to 40 s; it trains several models at once "
    "(--local: one after the other)"
)

RAY_AGAIN_MESSAGE = "starting Ray again (attempt {attempt}): its processes exceeded Ray's start timeout …"


def format_counts(ended: Counter[str], total: int, running: int, left_s: float | None) -> str:
    """Format the counts of trials and the remaining time: `61/144   1 running   ETA 39 s`."""
    words = [f"{running} running"]
    words += [f"{ended[status]} {status}" for status in ("failed", "pruned") if ended[status]]
    eta = "–" if left_s is None else format_duration(left_s)
    return f"{ended.total()}/{total}   {' · '.join(words)}   ETA {eta}"


def format_running(
    running: Iterable[RunningTrial | BegunTrial], columns: TrialNameColumns, width: int, *, bars: bool = False
) -> list[str]:
    """Return lines for the first few running trials, with `bars` if wanted; the last counts others."""
    trials = [
        (
            each.trial,
            [
                *([_bar(each.epoch / each.trial.settings.train.epochs)] if bars else []),
                *progress_words(each.trial, each.epoch, each.metrics),
            ],
        )
        for each in running
    ]
    return format_trials(trials, columns, width)


def _bar(share: float) -> str:
    done = int(share * TRIAL_BAR_WIDTH)
    return "━" * done + "─" * (TRIAL_BAR_WIDTH - done)


def format_ended(
    trial: Trial,
    status: str,
    reason: str | None,
    metrics: Mapping[str, float],
    *,
    count: tuple[int, int],
    columns: TrialNameColumns,
    headline: Headline,
    epochs: Sequence[Mapping[str, float]] = (),
) -> str:
    """Return a line for an ended trial.

    It has the number of ended trials, and the trial's status, names and result. The result is the headline,
    or the first line of the reason. In a search it comes before the names, which may be long. `epochs` are
    the metrics after each epoch, if they are known.
    """
    ended, total = count
    outcome = headline.words(metrics, trial, epochs) if reason is None else [first_line(reason)]
    counted = f"{ended:>{len(str(total))}}/{total}"
    if point := columns.point_words(trial):
        words = [*outcome, *point]
    else:
        words = [*columns.cells(trial, _MAX_TRIAL_NAME_WIDTH), *outcome]
    return "  ".join([f"{counted}   {status:<6}", *words]).rstrip()


def format_others(others: Sequence[Run]) -> str:
    """Describe the other processes whose trials this run waits for.

    For example `another driver trains 3 of them; waiting for process 71 on node2 (3)`.
    """
    counts = Counter(f"process {each.pid} on {each.host}" for each in others)
    who = "another driver trains" if len(counts) == 1 else "other drivers train"
    owners = ", ".join(f"{owner} ({count})" for owner, count in sorted(counts.items()))
    return f"{who} {len(others)} of them; waiting for {owners}"


def open_console() -> Console:
    """Return a console on standard error. A terminal that cannot move its cursor counts as a pipe."""
    console = Console(stderr=True, highlight=False)
    return (
        Console(stderr=True, highlight=False, force_terminal=False) if console.is_dumb_terminal else console
    )


@contextmanager
def live_display(
    name: str, progress: StudyProgress, names: TrialNameColumns, headline: Headline
) -> Iterator[Listener]:
    """Yield a listener that shows a running study on standard error, redrawn if it is a terminal."""
    console = open_console()
    display, has_ended = Display(name, progress, console, names, headline), threading.Event()

    def speak() -> None:
        while not has_ended.wait(1.0):
            display.break_silence()

    if not console.is_terminal:
        threading.Thread(target=speak, name="progress", daemon=True).start()
    try:
        with drawing(console, display.render):
            yield display
    finally:
        has_ended.set()


def drawing(console: Console, render: Callable[[], Group]) -> AbstractContextManager[object]:
    """Return a context that keeps redrawing the output of `render`, if the console is a terminal."""
    if not console.is_terminal:
        return nullcontext()
    # data on standard output must not be erased
    options = {"transient": True, "refresh_per_second": 4, "redirect_stdout": False}
    return Live(get_renderable=render, console=console, **options)


def draw(name: str, share: float, counts: str, lines: Iterable[str]) -> Group:
    """Return the display of a running study: a progress bar, then `lines`.

    The line of the bar also has the study's name and counts. `share` is the completed share of the bar,
    between 0 and 1.
    """
    bar = ProgressBar(total=1, completed=share, complete_style="green")
    heading = Table.grid(padding=(0, 1))
    heading.add_column(max_width=24, no_wrap=True)
    heading.add_column(min_width=8, max_width=40)
    heading.add_column(no_wrap=True, overflow="crop")
    heading.add_row(Text(replace_unprintable(name)), bar, counts)
    shown = (Text(replace_unprintable(line), no_wrap=True, overflow="crop") for line in lines)
    return Group(heading, *shown)


class Display:
    """The display of a running study: live on a terminal, else a line for each ended trial.

    The drawing thread of a live display calls `render`; the study's thread calls all other methods.
    """

    def __init__(
        self,
        name: str,
        progress: StudyProgress,
        console: Console,
        names: TrialNameColumns,
        headline: Headline,
    ) -> None:
        self._name, self._progress, self._console = name, progress, console
        self._columns, self._headline = names, headline
        self._lock = threading.Lock()
        self._started: set[str] = set()
        self._epochs: dict[str, list[Mapping[str, float]]] = {}  # the metrics of running trials
        self._last = ""  # the line of the trial that ended last
        self._stopping = False
        self._has_terminal = sys.stderr.isatty()
        self._others: tuple[Run, ...] = ()
        self._printed_at = time.monotonic()

    def break_silence(self) -> None:
        """Print what trains if nothing has been printed for `MAX_SILENCE_S`. Another thread calls this."""
        now = time.monotonic()
        if now - self._printed_at < MAX_SILENCE_S or self._stopping:
            return
        with self._lock:
            progress = self._progress
            progress.advance_clock(now)
            lines = format_running(progress.running.values(), self._columns, self._console.width)
            counts = format_counts(
                progress.counts, progress.total, len(progress.running), progress.remaining_s()
            )
        for line in (counts, *lines) if lines else ():
            self.print_line(line)

    def print_line(self, line: str) -> None:
        """Print a line that is never overwritten: above the live part, if there is one."""
        self._printed_at = time.monotonic()
        self._console.print(Text(replace_unprintable(line)), soft_wrap=True)

    def __call__(self, event: Event) -> None:
        """Show an event: as a line, or in the live part."""
        match event.kind:
            case "stopping":
                self._stop()
            case "here":
                each = format_duration(max(1.0, event.seconds / len(event.trials)))
                many = f"{plural(len(event.trials), 'trial')} of about {each}"
                self.print_line(f"{many} on this machine, one after the other; --ray trains several at once")
            case "starting_ray":
                again = RAY_AGAIN_MESSAGE.format(attempt=event.attempt)
                self.print_line(RAY_MESSAGE if event.attempt == 1 else again)
            case "nodes":
                self._print_nodes(event.nodes)
            case "waiting":
                self._others = event.runs
                if not self._console.is_terminal:
                    self.print_line(format_others(event.runs))
            case _:
                self._show_trial(event)

    def _print_nodes(self, nodes: Sequence[ClusterNode]) -> None:
        width = max([4, *(len(node.host) for node in nodes)])
        self.print_line(f"{'node':<{width}}   CPUs   GPUs")
        for node in nodes:
            unfit = f"   unfit: {node.problem}" if node.problem else ""
            self.print_line(f"{node.host:<{width}}   {node.cpus:>4g}   {node.gpus:>4g}{unfit}")

    def _show_trial(self, event: Event) -> None:
        """Print a line about a trial that has ended, or that continues from an earlier run.

        A live display shows the trial that ended last below its bar.
        """
        printed, run = "", event.run
        with self._lock:
            self._progress.on_event(event, time.monotonic())
            match event.kind:
                case "planned":  # this process has work again
                    self._columns.add(event.trials)
                    self._others = ()
                case "started" if run.trial not in self._started:
                    self._started.add(run.trial)
                    if run.epoch or run.step or run.deaths:
                        printed = self._continues(run)
                case "epoch":
                    self._epochs.setdefault(run.trial, []).append(run.metrics)
                case "ended":
                    self._last = format_ended(
                        self._progress.trial(run.trial),
                        run.status,
                        run.reason,
                        run.metrics,
                        count=(self._progress.counts.total(), self._progress.total),
                        columns=self._columns,
                        headline=self._headline,
                        epochs=self._epochs.pop(run.trial, ()),
                    )
                    printed = "" if self._console.is_terminal else self._last
                case _:
                    pass
        # without the lock: printing on a live display calls `render`, which takes the lock
        if printed:
            self.print_line(printed)

    def _continues(self, run: Run) -> str:
        trial = self._progress.trial(run.trial)
        names = self._columns.cells(trial, _MAX_TRIAL_NAME_WIDTH)
        place = f"epoch {run.epoch}" if run.epoch else f"step {run.step}"
        if run.step == (run.epoch + 1) * trial.common.train.steps_per_epoch:
            place = f"the end of epoch {run.epoch + 1}"
        words = ["continues", "  ".join(name.strip() for name in names), "from", place]
        died = f", where {plural(run.deaths, 'process')} died" if run.deaths else ""
        return " ".join(filter(None, words)) + died

    def _stop(self) -> None:
        """Show that the run stops. A signal handler may call this, so it must not wait for the lock."""
        self._stopping = True
        if self._has_terminal and not sys.stderr.isatty():  # it was closed: every write would raise an error
            with Path(os.devnull).open("wb") as nowhere:
                os.dup2(nowhere.fileno(), sys.stderr.fileno())
        elif not self._console.is_terminal:
            # a stream may be in the middle of a write, and then raises an error for a second one
            os.write(sys.stderr.fileno(), f"{STOPPING_MESSAGE}\n".encode())

    def render(self) -> Group:
        """Return the progress bar and the lines below it, within the terminal's width."""
        below = [self._last] if self._last else []
        below += [format_others(self._others)] if self._others else []
        below += [STOPPING_MESSAGE] if self._stopping else []
        with self._lock:
            now = self._progress
            now.advance_clock(time.monotonic())
            counts = format_counts(now.counts, now.total, len(now.running), now.remaining_s())
            running = now.running.values()
            lines = format_running(running, self._columns, self._console.width, bars=True)
            return draw(self._name, now.share, counts, [*lines, *below])


@contextmanager
def download_progress() -> Iterator[download.Progress]:
    """Yield a function that shows the progress of downloads on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = open_console()
    if not console.is_terminal:
        yield lambda _name, _size, _total: None
        return
    with DownloadBars(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(name: str, size: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name)
            bars.update(tasks[name], completed=size, total=total)

        yield show
