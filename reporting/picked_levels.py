"""Levels that a metric picks for figures and laws, such as the best learning rate of each cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from ..studies.catalog.metrics import pick_bias
from ..studies.presentation.kinds import PickKeys, Place, place_of
from ..studies.schema.factors import level_name, level_text, named_levels, short_level_names
from ..studies.schema.settings import Level
from ..studies.text.units import number_range, plural
from .observe import best_levels, observe

if TYPE_CHECKING:
    from .subject import ResultSubject


MAX_LISTED = 12
"""The maximum number of picked levels that a note lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """The levels of one picked cell.

    `tried` has the levels of all cells that differ only in the factors in `over`. `best` has those that tie
    as the best; the first is shown. `name` is the name of the cell, or "".
    """

    tried: Sequence[Mapping[str, Level]]
    best: Sequence[Mapping[str, Level]]
    name: str = ""


Picks = Mapping[Place, Pick]
"""The picked cells by the place of the level that is shown."""


def pick_cells(spec: PickKeys, subject: ResultSubject) -> Picks:
    """Return the picked cells: of those that differ only in `over`, the first of the best by `pick_by`.

    The result is empty without the key `pick_by`, and has no cell of which a level has not run yet.
    """
    if spec.pick_by is None:
        return {}
    rivals: dict[Place, dict[Place, Mapping[str, Level]]] = {}
    ends: dict[Place, list[tuple[str, float | None]]] = {}
    found = observe(subject.study, subject.trials, subject.outcomes, spec.pick_by)
    later = set(subject.study.later_seeds)
    for trial, *end in zip(subject.trials, found["status"], found["value"], strict=True):
        levels = trial.levels
        own = place_of(levels)
        rivals.setdefault(place_of(levels, spec.over), {})[own] = levels
        if trial.seed not in later:
            ends.setdefault(own, []).append((end[0], end[1]))
    picks: dict[Place, Pick] = {}
    is_judged = subject.study.runs is not None
    for tried in rivals.values():
        known = {place: ends.get(place, []) for place in tried}
        if best := best_levels(spec.pick_by, known, is_judged=is_judged):
            picks[best[0]] = Pick(tried=[*tried.values()], best=[tried[place] for place in best])
    return picks


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
        " ".join(names[factor].get(level_text(pick.best[0][factor]), "") for factor in factors)
        for pick in picked.values()
    ]
    if len(picked) > MAX_LISTED:
        counts = Counter(listed).most_common()
        listed = [f"{level} for {count} of {len(picked)} cells" for level, count in counts]
    levels = f"{number_range(sorted(len(pick.tried) for pick in picked.values()))} levels"
    yield f"At the best of {levels} of {' and '.join(spec.over)} by {spec.pick_by}: {'; '.join(listed)}."
    if tied := sorted(len(pick.best) for pick in picked.values() if len(pick.best) > 1):
        of = f"{len(tied)} of {plural(len(picked), 'cell')}"
        yield f"{number_range(tied)} levels tie in {of}: the first of the file was taken."
    shown_metrics = [name for (key, *_), name in spec.named_metrics() if key in ("value", "x")]
    if bias := pick_bias(spec.pick_by, spec.over, shown_metrics):
        yield bias
    yield from pick_sentences(spec.over, list(picked.values()))


def pick_sentences(over: Sequence[str], picked: Sequence[Pick]) -> Iterator[str]:
    """Yield sentences on numbers of levels that differ, and on picked levels that are an end of their factor.

    Cells without names are counted. A level is no end if one between the ends ties with it, or if it is a
    lowest level 0, as of a dropout.
    """
    budgets: dict[str, list[str]] = {}
    ends_of: dict[str, list[str]] = {}
    for pick in picked:
        budgets.setdefault(plural(len(pick.tried), "level"), []).append(pick.name)
    for pick, factor in product(picked, over):
        numbers = {level for each in pick.tried if not isinstance(level := each[factor], bool | str)}
        ends: dict[Level, str] = {min(numbers): "lowest", max(numbers): "highest"} if len(numbers) > 1 else {}
        if ends.get(0) == "lowest":
            del ends[0]
        level = pick.best[0][factor]
        if all(each[factor] in ends for each in pick.best):
            ends_of.setdefault(f"{factor} = {level_name(level)}, the {ends[level]},", []).append(pick.name)

    def by_cells(found: Mapping[str, Sequence[str]]) -> str:
        return "; ".join(
            f"{what} for {', '.join(names) if names[0] else f'{len(names)} of {len(picked)} cells'}"
            for what, names in found.items()
        )

    if len(budgets) > 1:
        yield f"Cells had different tuning budgets: {by_cells(budgets)}."
    if ends_of:
        yield f"Picked at an end of its levels: {by_cells(ends_of)}. Better ones may lie beyond."
