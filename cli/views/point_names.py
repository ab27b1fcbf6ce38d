"""Points of a search named one by one: each has its own values, with the names of their dimensions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...studies.resolve.trial import Trial
from ...studies.schema.settings import Level
from ...studies.study import Study
from ...studies.text.units import abbreviate_all
from .trial_names import brief_name, format_level

_RANGE = re.compile(r"(integer|real)\([^()]*\)")
"""A range of numbers in the text of an option, whose value is told beside it."""


class PointNames:
    """What sets the points of a search apart, in one text: `filter=16  conv(k=…)  conv.k=8`.

    The first points of a search say nothing of those that come, so that columns would change with each line.
    """

    def __init__(self, study: Study) -> None:
        self._dimensions, self._has_seeds = tuple(study.dimensions), len(study.seeds) > 1
        self._width = 0

    def add(self, trials: Iterable[Trial]) -> None:
        """Nothing: a point is named without the others."""

    def cells(self, trial: Trial, max_width: int) -> list[str]:
        """The text that names a trial, as wide as the widest so far."""
        values = {name: trial.levels[name] for name in self._dimensions if name in trial.levels}
        seed = [f"seed {trial.settings.seed}"] if self._has_seeds else []
        forms = (
            [f"{name}={value_text(value)}" for name, value in values.items()],
            [
                value_text(value) if isinstance(value, str) else f"{brief_name(name)}={value_text(value)}"
                for name, value in values.items()
            ],
            [value_text(value) for value in values.values()],
        )
        texts = ["  ".join([*form, *seed]) for form in forms]
        text = next((each for each in texts if len(each) <= max_width), texts[-1])
        [text] = abbreviate_all([text], max_width)
        self._width = min(max_width, max(self._width, len(text)))
        return [f"{text:<{self._width}}"]


def value_text(value: Level) -> str:
    """A value without the ranges of an option that is taken, whose values stand beside it."""
    return _RANGE.sub("…", format_level(value))


def _short(name: str, value: Level) -> str:
    """A value that says by itself what it is as it is, another with the last part of its name."""
    return value_text(value) if isinstance(value, str) else f"{brief_name(name)}={value_text(value)}"
