"""A running study as lines of text: the bar, one for each trial that runs, one for a trial that has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from ..engine.events import Ended
from ..studies.labels import level_name
from ..studies.settings import Level
from ..studies.trial import Trial
from .figures import WIDTH, crop, duration, squeeze
from .progress import Progress, Running

MOST_RUNNING = 6
"""So many running trials have a line of their own."""

_LONGEST_NAME, _SHORTEST_BAR, _LONGEST_BAR = 24, 8, 40

_LEVELS_ROOM = WIDTH - len("1000/1000   failed") - len("  seed 1  max 100  acc 1.000")
"""What the levels of a trial may take of the line that tells its end."""

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


def running(progress: Progress, width: int) -> list[str]:
    """A line for each of the first running trials, and how many more there are."""
    shown = list(progress.running.values())[:MOST_RUNNING]
    columns = _columns([_levels(each.trial) for each in shown], [_state(each) for each in shown], width)
    more = len(progress.running) - len(shown)
    return [*columns, *([f"  and {more} more"] if more else [])]


def ended(event: Ended, trial: Trial, progress: Progress, widths: Sequence[int]) -> str:
    """One line for a trial that has ended: how many have, its status, what it is and what came of it.

    Levels are as wide as `widths` says, so that lines that are written one by one stand below each other.
    """
    count = f"{progress.counts.total():>{len(str(progress.total))}}/{progress.total}"
    found = _shown(event.metrics, ("max_length", "accuracy"))
    outcome = found if event.reason is None else [first_line(event.reason)]
    return "  ".join([f"{count}   {event.status:<6}", *named(trial, widths), *outcome])


def named(trial: Trial, widths: Sequence[int]) -> list[str]:
    """What a trial is, in columns of these widths: its levels, then its seed."""
    levels = [f"{squeeze(text, width):<{width}}" for text, width in zip(_levels(trial), widths, strict=False)]
    return [*levels, f"seed {trial.settings.seed}"]


def widths(trials: Sequence[Trial], least: Sequence[int] = (), room: int = _LEVELS_ROOM) -> list[int]:
    """How wide the levels of these trials are, not below the given widths, within the room that they have."""
    columns = zip_longest(*map(_levels, trials), fillvalue="")
    wide = [max(map(len, column)) for column in columns]
    return _fit([max(pair) for pair in zip_longest(wide, least, fillvalue=0)], room)


def first_line(reason: str) -> str:
    """What a reason says before its traceback."""
    return reason.partition("\n")[0]


def _levels(trial: Trial) -> list[str]:
    """What sets the trial apart: words and recipes as they are, numbers with their factor's name."""
    return [
        level_name(level) if isinstance(level, str) else f"{factor.rpartition('.')[2]}={short(level)}"
        for factor, level in trial.levels.items()
        if factor != "seed"
    ]


def short(level: Level) -> str:
    """A level as it is shown where all of its digits say nothing."""
    return f"{level:.4g}" if isinstance(level, float) else level_name(level)


def _state(each: Running) -> list[str]:
    epochs = each.trial.settings.train.epochs
    metrics = _shown(each.metrics, ("length", "accuracy")) or _shown(each.metrics, ("loss",))
    return [f"seed {each.trial.settings.seed}", f"epoch {each.epoch}/{epochs}", *metrics]


def _shown(metrics: Mapping[str, float], names: Sequence[str]) -> list[str]:
    return [
        f"{called} {metrics[name]:{form}}"
        for name, called, form in _METRICS
        if name in names and name in metrics
    ]


def _columns(levels: Sequence[list[str]], states: Sequence[list[str]], width: int) -> list[str]:
    """Lines whose texts stand below each other; levels are squeezed until the lines fit."""
    most = max(map(len, levels), default=0)
    rows = [[*left, *[""] * (most - len(left)), *right] for left, right in zip(levels, states, strict=True)]
    wide = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    wide[:most] = _fit(wide[:most], width - sum(wide[most:]) - 2 * (len(wide) - most))
    return [
        "".join(f"  {squeeze(text, limit):<{limit}}" for text, limit in zip(row, wide, strict=False)).rstrip()
        for row in rows
    ]


def _fit(wide: Sequence[int], room: int) -> list[int]:
    """These widths, the widest made smaller until all of them fit, with two columns before each."""
    fitting = list(wide)
    while sum(fitting) + 2 * len(fitting) > room and max(fitting) > 1:
        fitting[fitting.index(max(fitting))] -= 1
    return fitting
