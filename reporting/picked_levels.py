"""Levels that a metric picks for figures and laws, such as the best learning rate of each cell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, TypeVar

from ..studies.catalog.metrics import NEEDS_PICK_BY, find_metric, pick_bias, pick_faults
from ..studies.presentation.kinds import KeyFault, ResultKeys, factor_faults
from ..studies.schema.factors import SEED, level_key, level_name, level_text, named_levels, short_level_names
from ..studies.schema.settings import Level, Names
from ..studies.text.units import number_range, plural
from .statistics.estimates import mean

if TYPE_CHECKING:
    from .subject import ResultSubject

Place = tuple[str, ...]
"""The levels of a cell as texts (`level_key`), without its seed."""

Picks = Mapping[Place, tuple[Mapping[str, Level], int]]
"""The levels of each picked cell, and the number of cells that tie as the best of those it is picked from."""

KeyT = TypeVar("KeyT")

MAX_LISTED = 12
"""The maximum number of picked levels that a note lists."""


class PickKeys(ResultKeys):
    """The study-file keys that let a metric pick levels, and their checks."""

    over: Names = ()
    """factors such as a learning rate, of which each cell shows one level: the one that `pick_by` picks"""
    pick_by: str | None = None
    """the metric, best one of the dev split, whose mean over seeds picks the level of `over`"""

    def named_metrics(self) -> Iterator[KeyFault]:
        """Yield the metrics that the keys name, with the paths of their keys."""
        yield from super().named_metrics()
        if self.pick_by is not None:
            yield ("pick_by",), self.pick_by

    def over_faults(self, factors: Mapping[str, tuple[Level, ...]]) -> Iterator[KeyFault]:
        """Yield the faults of `over` and `pick_by`."""
        yield from factor_faults(((("over", number), name) for number, name in enumerate(self.over)), factors)
        if SEED in self.over:
            yield ("over", self.over.index(SEED)), "a seed is not picked: remove seed from over"
        if self.over and self.pick_by is None:
            yield ("over",), NEEDS_PICK_BY
        for message in pick_faults(self.pick_by, self.over):
            yield ("pick_by",), message


def place_of(levels: Mapping[str, Level], over: Sequence[str] = ()) -> Place:
    """Return the levels of a cell as texts, without those of its seed and of the factors in `over`."""
    return tuple(level_key(level) for name, level in levels.items() if name not in (SEED, *over))


def best_of(metric: str, values: Mapping[KeyT, Sequence[float]]) -> list[KeyT]:
    """Return the keys whose values of a metric have the best mean: several if they tie, in their order.

    Only keys with the most values are compared, so that no level gains by a seed that failed. Without any
    value, all keys tie.
    """
    sign = 1 if find_metric(metric).higher_is_better else -1
    most = max(map(len, values.values()), default=0)
    means = {key: sign * mean(each or [0.0]) for key, each in values.items() if len(each) == most}
    best = max(means.values(), default=0.0)
    return [key for key, each in means.items() if math.isclose(each, best)]


def pick_cells(spec: PickKeys, subject: ResultSubject) -> Picks:
    """Return the picked cells: of those that differ only in `over`, the first of the best by `pick_by`.

    The result is empty without the key `pick_by`.
    """
    if spec.pick_by is None:
        return {}
    cells = {place_of(trial.levels): trial.levels for trial in subject.trials}
    rivals: dict[Place, dict[Place, list[float]]] = {}
    for each in subject.observe(spec.pick_by).values:
        others = rivals.setdefault(place_of(each.levels, spec.over), {})
        others.setdefault(place_of(each.levels), []).append(each.value)
    best = (best_of(spec.pick_by, each) for each in rivals.values())
    return {places[0]: (cells[places[0]], len(places)) for places in best}


def pick_note(spec: PickKeys, subject: ResultSubject, picked: Picks, shown: Sequence[str]) -> Iterator[str]:
    """Yield sentences on the picked levels, by the levels of the `shown` factors, or with their counts."""
    if not picked or spec.pick_by is None:
        return
    names = dict[str, dict[str, str]]()
    for factor, levels in subject.levels.items():
        texts = short_level_names(levels) if factor in spec.over else named_levels(factor, levels)
        names[factor] = dict(zip(map(level_text, levels), texts, strict=True))
    factors = spec.over if len(picked) > MAX_LISTED else (*shown, *spec.over)
    listed = [
        " ".join(names[factor].get(level_text(levels[factor]), "") for factor in factors)
        for levels, _ in picked.values()
    ]
    if len(picked) > MAX_LISTED:
        counts = Counter(listed).most_common()
        listed = [f"{level} for {count} of {len(picked)} cells" for level, count in counts]
    yield f"At the best {' and '.join(spec.over)} by {spec.pick_by}: {'; '.join(listed)}."
    if tied := sorted(count for _, count in picked.values() if count > 1):
        of = f"{len(tied)} of {plural(len(picked), 'cell')}"
        yield f"{number_range(tied)} levels tie in {of}: the first of the file was taken."
    cells = [(place_of(trial.levels, spec.over), trial.levels) for trial in subject.trials]
    best = [(place_of(levels, spec.over), levels, "") for levels, _ in picked.values()]
    values = [name for (key, *_), name in spec.named_metrics() if key == "value"]
    bias = pick_bias(spec.pick_by, spec.over, values)
    yield from filter(None, (bias, end_sentence(spec.over, cells, best)))


def end_sentence(
    over: Sequence[str],
    cells: Iterable[tuple[Place, Mapping[str, Level]]],
    picked: Collection[tuple[Place, Mapping[str, Level], str]],
) -> str:
    """Return a sentence on picked levels that are the lowest or the highest number of their factor, or "".

    `cells` has all levels of the factors in `over` at each place, and `picked` those that are picked, with
    the name of the place. Places without names are counted. A lowest level 0, as of a dropout, is no end.
    """
    tried: dict[tuple[Place, str], set[float]] = {}
    for (place, levels), factor in product(cells, over):
        if isinstance(level := levels[factor], int | float) and not isinstance(level, bool):
            tried.setdefault((place, factor), set()).add(level)
    found: dict[str, list[str]] = {}
    for (place, levels, name), factor in product(picked, over):
        ends = sorted(tried.get((place, factor), ()))
        for end, level in (("lowest", ends[0]), ("highest", ends[-1])) if len(ends) > 1 else ():
            if level == levels[factor] and (level or end == "highest"):
                found.setdefault(f"{factor} = {level_name(level)}, the {end},", []).append(name)
    parts = (
        f"{level} for {', '.join(names) if names[0] else f'{len(names)} of {len(picked)} cells'}"
        for level, names in found.items()
    )
    return f"Picked at an end of its levels: {'; '.join(parts)}. Better ones may lie beyond." if found else ""
