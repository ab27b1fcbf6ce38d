"""Trials named in columns of a line: their levels, in shorter forms where the line has no room for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, takewhile

from ..studies.labels import level_name, short_levels
from ..studies.settings import Level
from ..studies.trial import Trial
from .figures import squeezed

_SEED, _GAP = "seed", 2

_READABLE = 12
"""Texts are made no narrower than this while something else can go."""

_Seen = Mapping[str, Sequence[Level | None]]
"""The levels of each factor, the seed's last."""

_Shown = Mapping[Level | None, str]
"""How each level of a factor is shown; None stands for trials that lack the factor."""


class Columns:
    """What sets trials apart: a column for each factor and one for the seed, over all trials added so far.

    Columns that do not fit into a line lose, until they do, what says least: first factors of one level and
    those that follow from another's words; then arguments and words that all levels of a factor share; then
    the insides of wide texts, which still differ where they can; at last the names before numbers.
    """

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self._points: dict[tuple[tuple[str, Level], ...], Mapping[str, Level]] = {}  # each once
        self._seen: _Seen = {}
        self._telling: _Seen = {}
        self._fits: dict[int, Mapping[str, _Shown]] = {}  # by the room, until more trials come
        self.add(trials)

    def add(self, trials: Iterable[Trial]) -> None:
        """Make room for these trials too."""
        self._points |= {tuple(levels.items()): levels for levels in map(_levels, trials)}
        points = tuple(self._points.values())
        factors = sorted(dict.fromkeys(chain.from_iterable(points)), key=_SEED.__eq__)
        self._seen = {
            factor: tuple(dict.fromkeys(point.get(factor) for point in points)) for factor in factors
        }
        self._telling = _telling(points, self._seen)
        self._fits.clear()

    def cells(self, trial: Trial, room: int) -> list[str]:
        """The texts that name an added trial, padded to their columns; `_GAP` spaces go before each."""
        if room not in self._fits:
            self._fits[room] = self._fitted(room)
        levels, columns = _levels(trial), self._fits[room]
        return [f"{shown[levels.get(factor)]:<{_width(shown)}}" for factor, shown in columns.items()]

    def _fitted(self, room: int) -> dict[str, _Shown]:
        """The columns in the first form that fits, or the last."""
        seen, telling = self._seen, self._telling
        columns: dict[str, _Shown] = {}
        for levels, form, least in (
            (seen, _whole, room),
            (telling, _whole, room),
            (telling, _short, _READABLE),
            (telling, _bare, 1),
        ):
            shown = {factor: form(factor, each) for factor, each in levels.items()}
            columns = _squeezed(shown, room, least)
            if _room(columns) <= room:
                break
        return columns


def short(level: Level) -> str:
    """A level as it is shown where all of its digits say nothing."""
    return f"{level:.4g}" if isinstance(level, float) else level_name(level)


def _levels(trial: Trial) -> dict[str, Level]:
    return {**trial.levels, _SEED: trial.settings.seed}


def _telling(points: Sequence[Mapping[str, Level]], seen: _Seen) -> _Seen:
    """The factors without those of one level and those that follow from the words of another."""
    kept = {factor: levels for factor, levels in seen.items() if len(levels) > 1}
    for factor in reversed(tuple(kept)):
        if any(_follows(factor, word, points) for word in kept if word != factor):
            del kept[factor]
    return kept or seen


def _follows(factor: str, word: str, points: Sequence[Mapping[str, Level]]) -> bool:
    """Whether the words of one factor, each of several trials, always come with one level of the other."""
    words = Counter(point.get(word) for point in points)
    pairs = {(point.get(word), point.get(factor)) for point in points}
    several = min(words.values()) > 1 and all(isinstance(each, str) for each in words)
    return several and len(pairs) == len(words)


def _whole(factor: str, levels: Sequence[Level | None]) -> _Shown:
    """Words and recipes as they are, numbers with their factor's name: `sa + conv(k=20)`, `lr=0.001`."""
    name = "seed " if factor == _SEED else f"{factor.rpartition('.')[2]}="
    return {
        level: "" if level is None else level_name(level) if isinstance(level, str) else name + short(level)
        for level in levels
    }


def _short(factor: str, levels: Sequence[Level | None]) -> _Shown:
    """As `_whole`, without arguments and first and last words that all of the factor's words share."""
    words = [level for level in levels if isinstance(level, str)]
    return {**_whole(factor, levels), **dict(zip(words, _unshared(short_levels(words)), strict=True))}


def _bare(factor: str, levels: Sequence[Level | None]) -> _Shown:
    """As `_short`, numbers alone; those of seeds keep their name, as truth values do."""
    numbers = [level for level in levels if isinstance(level, int | float) and not isinstance(level, bool)]
    bare = {level: short(level) for level in numbers if factor != _SEED}
    return {**_short(factor, levels), **bare}


def _unshared(names: Sequence[str]) -> Sequence[str]:
    """Names without the first and last words that all of them share: `recall_` of `recall_addition`.

    Recipes are left as they are.
    """
    if len(names) < 2 or not all(name.isidentifier() for name in names):
        return names
    words = [name.split("_") for name in names]
    spare = min(map(len, words)) - 1
    first = min(spare, _shared(words))
    last = min(spare - first, _shared([each[::-1] for each in words]))
    return ["_".join(each[first : len(each) - last]) for each in words]


def _shared(words: Sequence[Sequence[str]]) -> int:
    """How many words at the beginning are the same in all."""
    return sum(1 for _ in takewhile(lambda each: len(set(each)) == 1, zip(*words, strict=False)))


def _squeezed(columns: Mapping[str, _Shown], room: int, least: int) -> dict[str, _Shown]:
    """The columns, the widest made narrower until all fit or none but the seed's is wider than the least."""
    wide = {factor: _width(shown) for factor, shown in columns.items()}
    while sum(wide.values()) + _GAP * len(wide) > room:
        widest = max((factor for factor in wide if factor != _SEED), key=wide.__getitem__, default=_SEED)
        if wide[widest] <= least or widest == _SEED:
            break
        wide[widest] -= 1
    return {
        factor: dict(zip(shown, squeezed(tuple(shown.values()), wide[factor]), strict=True))
        for factor, shown in columns.items()
    }


def _width(shown: _Shown) -> int:
    return max(map(len, shown.values()))


def _room(columns: Mapping[str, _Shown]) -> int:
    return sum(_width(shown) + _GAP for shown in columns.values())
