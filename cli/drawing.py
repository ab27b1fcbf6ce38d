"""A running study as lines of text: the bar, one for each trial that runs, one for a trial that has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from ..engine.events import Ended
from ..studies.trial import Trial
from .columns import Columns
from .figures import WIDTH, crop, duration
from .progress import Progress, Running

MOST_RUNNING = 6
"""So many running trials have a line of their own."""

_LONGEST_NAME, _SHORTEST_BAR, _LONGEST_BAR = 24, 8, 40

_NAMES_ROOM = WIDTH - len("1000/1000   failed") - len("  max 100  acc 1.000")
"""What the names of a trial may take of the line that tells its end."""

_METRICS = (
    ("max_length", "max", ".0f"),
    ("length", "length", ".0f"),
    ("accuracy", "acc", ".3f"),
    ("loss", "loss", ".4f"),
)
"""The metrics that are shown: their names, short names and forms."""


def bar(done: float, width: int) -> tuple[str, str]:
    """The full and the empty part of a bar, to half a column; they differ in shape, not only in colour."""
    halves = min(2 * width, max(0, int(2 * width * done)))
    full = "━" * (halves // 2) + ("╸" if halves % 2 else "")
    return full, "─" * (width - len(full))


def heading(name: str, progress: Progress, width: int) -> tuple[str, str, str, str]:
    """The study's line in four parts: its name, the bar's two, and the counts with the time that is left."""
    counts, total = progress.counts, progress.total
    ended = counts.total()
    words = [f"{len(progress.running)} running"]
    words += [f"{counts[status]} {status}" for status in ("failed", "pruned") if counts[status]]
    left_s = progress.left_s()
    eta = "–" if left_s is None else duration(left_s)
    tail = f"{ended}/{total}   {' · '.join(words)}   ETA {eta}"
    short = crop(name, _LONGEST_NAME)
    room = min(_LONGEST_BAR, max(_SHORTEST_BAR, width - len(short) - len(tail) - 3))
    return (f"{short} ", *bar(progress.share, room), f"  {tail}")


def running(progress: Progress, columns: Columns, width: int) -> list[str]:
    """A line for each of the first running trials, and how many more there are."""
    shown = list(progress.running.values())[:MOST_RUNNING]
    states = _aligned([_state(each) for each in shown])
    room = width - max(map(len, states), default=0)
    lines = ["".join(f"  {text}" for text in columns.cells(each.trial, room)) for each in shown]
    more = len(progress.running) - len(shown)
    return [
        *((line + state).rstrip() for line, state in zip(lines, states, strict=True)),
        *([f"  and {more} more"] if more else []),
    ]


def ended(event: Ended, trial: Trial, progress: Progress, columns: Columns) -> str:
    """One line for a trial that has ended: how many have, its status, what it is and what came of it."""
    count = f"{progress.counts.total():>{len(str(progress.total))}}/{progress.total}"
    found = _shown(event.metrics, ("max_length", "accuracy"))
    outcome = found if event.reason is None else [first_line(event.reason)]
    return "  ".join([f"{count}   {event.status:<6}", *columns.cells(trial, _NAMES_ROOM), *outcome])


def first_line(reason: str) -> str:
    """What a reason says before its traceback."""
    return reason.partition("\n")[0]


def _state(each: Running) -> list[str]:
    epochs = each.trial.settings.train.epochs
    metrics = _shown(each.metrics, ("length", "accuracy")) or _shown(each.metrics, ("loss",))
    return [f"epoch {each.epoch}/{epochs}", *metrics]


def _shown(metrics: Mapping[str, float], names: Sequence[str]) -> list[str]:
    return [
        f"{called} {metrics[name]:{form}}"
        for name, called, form in _METRICS
        if name in names and name in metrics
    ]


def _aligned(rows: Sequence[list[str]]) -> list[str]:
    """Each row as one text, its parts below those of the others, two spaces before each."""
    wide = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    return ["".join(f"  {text:<{limit}}" for text, limit in zip(row, wide, strict=False)) for row in rows]
