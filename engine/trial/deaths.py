"""How often the processes of a trial may die in one of its epochs before it has failed by it."""

from __future__ import annotations

from .checkpoints import Deaths
from .last_words import LastWords

MAX_WORKER_DEATHS = 3
"""How often workers may die in the same epoch of a trial, in one run, before the trial has failed."""

MAX_DEATHS = 6
"""How often processes may die in the same epoch of a trial, in all runs together."""


def failure_by_death(
    deaths: Deaths, words: LastWords | None, limit_s: float | None, where: str
) -> str | None:
    """Why a trial has failed as its processes died; None if it is tried again, under this time limit."""
    if words is not None and (reason := words.reason(limit_s, where)) is not None:
        return reason
    if deaths.in_run < MAX_WORKER_DEATHS and deaths.in_all < MAX_DEATHS:
        return None
    most = MAX_WORKER_DEATHS if deaths.in_run >= MAX_WORKER_DEATHS else deaths.in_all
    how = "" if words is None else f", the last time by: {words.summary}\n{words.text}"
    return f"the worker died {most} times {where}{how}"
