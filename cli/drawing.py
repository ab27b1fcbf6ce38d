"""A running study as lines of text: the bar, one for each trial that runs, one for a trial that has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from ..engine.events import Ended
from ..studies.labels import level_text
from ..studies.trial import Trial
from .figures import crop, duration
from .progress import Progress, Running

MOST_RUNNING = 6
"""So many running trials have a line of their own."""

_LONGEST_NAME, _SHORTEST_BAR, _LONGEST_BAR = 24, 8, 40

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
    return (f"{short} ", *bar(ended / total if total else 1.0, room), f"  {tail}")


def running(progress: Progress, width: int) -> list[str]:
    """A line for each of the first running trials, and how many more there are."""
    shown = list(progress.running.values())[:MOST_RUNNING]
    columns = _columns([_levels(each.trial) for each in shown], [_state(each) for each in shown], width)
    more = len(progress.running) - len(shown)
    return [*columns, *([f"  and {more} more"] if more else [])]


def ended(event: Ended, trial: Trial, progress: Progress, width: int) -> str:
    """One line for a trial that has ended: how many have, its status, what it is and what came of it."""
    count = f"{progress.counts.total()}/{progress.total}"
    state = [f"seed {trial.settings.seed}", *_shown(event.metrics, ("max_length", "accuracy"))]
    if event.reason is not None:
        state = [state[0], first_line(event.reason)]
    head = f"{count}   {event.status:<6} "
    room = width if event.reason is None else 10 * width  # a reason is told in full
    (line,) = _columns([_levels(trial)], [state], room - len(head))
    return f"{head}{line}"


def first_line(reason: str) -> str:
    """What a reason says before its traceback."""
    return reason.partition("\n")[0]


def _levels(trial: Trial) -> list[str]:
    """What sets the trial apart: words and recipes as they are, numbers with their factor's name."""
    return [
        level_text(level) if isinstance(level, str) else f"{factor.rpartition('.')[2]}={level_text(level)}"
        for factor, level in trial.levels.items()
        if factor != "seed"
    ]


def _state(each: Running) -> list[str]:
    epochs = each.trial.settings.train.epochs
    metrics = _shown(each.metrics, ("length", "accuracy")) or _shown(each.metrics, ("loss",))
    return [f"seed {each.trial.settings.seed}", f"epoch {each.epoch}/{epochs}", *metrics]


def _shown(metrics: Mapping[str, float], names: Sequence[str]) -> list[str]:
    return [
        f"{short} {metrics[name]:{form}}"
        for name, short, form in _METRICS
        if name in names and name in metrics
    ]


def _columns(levels: Sequence[list[str]], states: Sequence[list[str]], width: int) -> list[str]:
    """Lines whose texts stand below each other; levels are cropped, the widest first, until the lines fit."""
    most = max(map(len, levels), default=0)
    rows = [[*left, *[""] * (most - len(left)), *right] for left, right in zip(levels, states, strict=True)]
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    cropped = range(most)
    while sum(widths) + 2 * len(widths) > width and any(widths[place] > 1 for place in cropped):
        widths[max(cropped, key=widths.__getitem__)] -= 1
    return [
        "".join(f"  {crop(text, limit):<{limit}}" for text, limit in zip(row, widths, strict=False)).rstrip()
        for row in rows
    ]
