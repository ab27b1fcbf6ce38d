"""Trials named by columns of levels, which are shortened if a line is too narrow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, takewhile
from typing import Protocol

from ...studies.resolve.trial import Trial
from ...studies.schema.factors import level_name, short_level_names, value_name
from ...studies.schema.settings import Level
from ...studies.study import Study
from ...studies.text.units import abbreviate_all

_SEED, _GAP = "seed", 2

_MIN_READABLE_WIDTH = 12
"""The minimum width of texts while something else can be left out."""

_LevelsByFactor = Mapping[str, Sequence[Level | None]]
"""The levels of each factor, the seed's last."""

_LevelTexts = Mapping[Level | None, str]
"""The text of each level of a factor; None stands for trials without the factor."""


class TrialNames(Protocol):
    """Names that distinguish trials in lines."""

    def add(self, trials: Iterable[Trial]) -> None:
        """Include these trials in the layout."""
        ...

    def cells(self, trial: Trial, max_width: int) -> list[str]:
        """Return the texts that name an included trial, padded to their columns."""
        ...


class TrialNameColumns:
    """Columns that distinguish trials.

    There is one for each factor and one for the seed, over all trials added so far. Columns that do not fit
    into a line are shortened step by step. First, factors with one level and those implied by another's words
    are left out. Then arguments and words that all levels of a factor share are dropped, then the middles of
    wide texts, which still differ if possible, and at last the names before numbers.
    """

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self._points: dict[tuple[tuple[str, Level], ...], Mapping[str, Level]] = {}  # each once
        self._levels: _LevelsByFactor = {}
        self._informative: _LevelsByFactor = {}
        self._fits: dict[int, Mapping[str, _LevelTexts]] = {}  # by the room, until more trials come
        self.add(trials)

    def add(self, trials: Iterable[Trial]) -> None:
        """Include these trials in the layout."""
        self._points |= {tuple(levels.items()): levels for levels in map(_levels, trials)}
        points = tuple(self._points.values())
        factors = sorted(dict.fromkeys(chain.from_iterable(points)), key=_SEED.__eq__)
        self._levels = {
            factor: tuple(dict.fromkeys(point.get(factor) for point in points)) for factor in factors
        }
        self._informative = _informative_factors(points, self._levels)
        self._fits.clear()

    def cells(self, trial: Trial, max_width: int) -> list[str]:
        """Return the texts that name an included trial, padded to their columns."""
        if max_width not in self._fits:
            self._fits[max_width] = self._fit(max_width)
        levels, columns = _levels(trial), self._fits[max_width]
        return [f"{shown[levels.get(factor)]:<{_width(shown)}}" for factor, shown in columns.items()]

    def _fit(self, max_width: int) -> dict[str, _LevelTexts]:
        several = {factor: each for factor, each in self._levels.items() if len(each) > 1}
        columns: dict[str, _LevelTexts] = {}
        for shown_levels, form, min_width in (
            (self._levels, _full_texts, max_width),
            (several or self._levels, _full_texts, max_width),
            (self._informative, _full_texts, max_width),
            (self._informative, _short_texts, _MIN_READABLE_WIDTH),
            (self._informative, _unnamed_texts, 1),
        ):
            shown = {factor: form(factor, each) for factor, each in shown_levels.items()}
            columns = _shrink_columns(shown, max_width, min_width)
            if _total_width(columns) <= max_width:
                break
        return columns


class PointNames:
    """Names that distinguish the points of a search in one text: `filter=16 conv(k=…) conv.k=8`.

    Later points may have other values, so columns would change with each line.
    """

    def __init__(self, study: Study) -> None:
        self._dimensions, self._has_seeds = tuple(study.dimensions), len(study.seeds) > 1
        self._across = study.search.across if study.search else ()
        self._rungs = study.fidelity.name if study.fidelity else ""
        self._width = 0

    def add(self, trials: Iterable[Trial]) -> None:
        """Do nothing: a point's name does not depend on others."""

    def cells(self, trial: Trial, max_width: int) -> list[str]:
        """Return the text that names a trial, padded to the widest so far."""
        values = {name: trial.levels[name] for name in self._dimensions if name in trial.levels}
        apart = [level_name(trial.levels[name]) for name in self._across]
        apart += [f"{self._rungs}={level}" for name, level in trial.levels.items() if name == self._rungs]
        apart += [f"seed {trial.settings.seed}"] if self._has_seeds else []
        forms = (
            [f"{name}={value_name(value)}" for name, value in values.items()],
            [_short(name, value) for name, value in values.items()],
            [value_name(value) for value in values.values()],
        )
        texts = ["  ".join([*form, *apart]) for form in forms]
        text = next((each for each in texts if len(each) <= max_width), texts[-1])
        [text] = abbreviate_all([text], max_width)
        self._width = min(max_width, max(self._width, len(text)))
        return [f"{text:<{self._width}}"]


def _short(name: str, value: Level) -> str:
    """Return a self-explanatory value unchanged, others with the last part of their name."""
    return value_name(value) if isinstance(value, str) else f"{brief_name(name)}={value_name(value)}"


def format_level(level: Level) -> str:
    """Return a level with four digits at most."""
    return f"{level:.4g}" if isinstance(level, float) else level_name(level)


def brief_name(factor: str) -> str:
    """Return the last part of a factor's name, with its number, if any: `k.2` for `conv.k.2`."""
    parts = factor.split(".")
    return ".".join(parts[-2:]) if parts[-1].isdigit() else parts[-1]


def _levels(trial: Trial) -> dict[str, Level]:
    return {**trial.levels, _SEED: trial.settings.seed}


def _informative_factors(points: Sequence[Mapping[str, Level]], seen: _LevelsByFactor) -> _LevelsByFactor:
    """Return the factors with several levels that no other factor's words imply."""
    kept = {factor: levels for factor, levels in seen.items() if len(levels) > 1}
    for factor in reversed(tuple(kept)):
        if any(_is_implied_by(factor, word, points) for word in kept if word != factor):
            del kept[factor]
    return kept or seen


def _is_implied_by(factor: str, other: str, points: Sequence[Mapping[str, Level]]) -> bool:
    """Return whether the words of a factor always occur with one level of the other."""
    words = Counter(point.get(other) for point in points)
    pairs = {(point.get(other), point.get(factor)) for point in points}
    several = min(words.values()) > 1 and all(isinstance(each, str) for each in words)
    return several and len(pairs) == len(words)


def _full_texts(factor: str, levels: Sequence[Level | None]) -> _LevelTexts:
    """Return words and recipes unchanged, numbers with their factor's name: `sa + conv(k=20)`, `lr=0.001`."""
    name = "seed " if factor == _SEED else f"{brief_name(factor)}="
    return {
        level: ""
        if level is None
        else level_name(level)
        if isinstance(level, str)
        else name + format_level(level)
        for level in levels
    }


def _short_texts(factor: str, levels: Sequence[Level | None]) -> _LevelTexts:
    """Return `_full_texts` without arguments and outer words shared by all of the factor's words."""
    words = [level for level in levels if isinstance(level, str)]
    return {
        **_full_texts(factor, levels),
        **dict(zip(words, _strip_shared_words(short_level_names(words)), strict=True)),
    }


def _numbers(factor: str, levels: Sequence[Level | None]) -> Sequence[Level]:
    """Return the numeric levels without seeds and booleans, which keep their factors' names."""
    numbers = [level for level in levels if isinstance(level, int | float) and not isinstance(level, bool)]
    return [] if factor == _SEED else numbers


def _unnamed_texts(factor: str, levels: Sequence[Level | None]) -> _LevelTexts:
    """Return `_short_texts` with numbers without names; seeds and booleans keep theirs."""
    bare = {level: format_level(level) for level in _numbers(factor, levels)}
    return {**_short_texts(factor, levels), **bare}


def _strip_shared_words(names: Sequence[str]) -> Sequence[str]:
    """Return names without their shared first and last words: `recall_` of `recall_addition`."""
    if len(names) < 2 or not all(name.isidentifier() for name in names):
        return names
    words = [name.split("_") for name in names]
    spare = min(map(len, words)) - 1
    first = min(spare, _shared_prefix_length(words))
    last = min(spare - first, _shared_prefix_length([each[::-1] for each in words]))
    return ["_".join(each[first : len(each) - last]) for each in words]


def _shared_prefix_length(words: Sequence[Sequence[str]]) -> int:
    return sum(1 for _ in takewhile(lambda each: len(set(each)) == 1, zip(*words, strict=False)))


def _shrink_columns(
    columns: Mapping[str, _LevelTexts], max_width: int, min_width: int
) -> dict[str, _LevelTexts]:
    """Return the columns, the widest narrowed until all fit or only the seed's exceeds `min_width`."""
    widths = {factor: _width(shown) for factor, shown in columns.items()}
    while sum(widths.values()) + _GAP * len(widths) > max_width:
        widest = max((factor for factor in widths if factor != _SEED), key=widths.__getitem__, default=_SEED)
        if widths[widest] <= min_width or widest == _SEED:
            break
        widths[widest] -= 1
    return {
        factor: dict(zip(shown, abbreviate_all(tuple(shown.values()), widths[factor]), strict=True))
        for factor, shown in columns.items()
    }


def _width(shown: _LevelTexts) -> int:
    return max(map(len, shown.values()))


def _total_width(columns: Mapping[str, _LevelTexts]) -> int:
    return sum(_width(shown) + _GAP for shown in columns.values())
