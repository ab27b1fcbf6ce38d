"""Rungs of a search: what points are trained less on first becomes a factor, whose levels are rungs.

Only a training on the last rung gives the point's result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

from ..diagnostics import nearest_hint
from ..grammar import RecipeError
from ..grammar.nodes import IntegerDimension
from .schema.factors import SEED
from .schema.search import read_dimension
from .schema.search_settings import DATA, EPOCHS, LENGTH, REDUCTIONS, part_table
from .schema.settings import Level
from .text.document import Diagnostics
from .text.strict_model import format_value
from .text.toml_positions import KeyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """The factor that grows from rung to rung: its name and its values, the smallest first.

    One of `reduction` points on a rung is promoted to the next. With `brackets`, as in Hyperband, some
    points begin on higher rungs and compete only with those that began there, too.
    """

    name: str
    rungs: tuple[int, ...]
    reduction: int
    brackets: bool

    @property
    def top(self) -> int:
        """The number of the last rung, from 0 on."""
        return len(self.rungs) - 1

    def level(self, rung: int) -> dict[str, Level]:
        """Return the level of a rung's trials."""
        return {self.name: self.rungs[rung]}

    def rung_of(self, levels: Mapping[str, Level]) -> int | None:
        """Return the rung of a trial with these levels, by default the last; None if there is none."""
        value = levels.get(self.name, self.rungs[-1])
        return self.rungs.index(value) if isinstance(value, int) and value in self.rungs else None

    def next_first(self, begun: Mapping[int, int]) -> int:
        """Return the rung on which the next point begins, given how many have begun on each.

        Each bracket gets its share of points, that of Hyperband (Li et al. 2018, Algorithm 1).
        """
        if not self.brackets:
            return 0
        return min(range(self.top + 1), key=lambda first: (begun.get(first, 0) / self._share(first), first))

    def _share(self, first: int) -> int:
        """Return how many points of a round of brackets begin on a rung: ⌈(s_max + 1) / (s + 1) · η^s⌉."""
        halvings = self.top - first
        return -(-(self.top + 1) * self.reduction**halvings // (halvings + 1))

    @property
    def least_points(self) -> int:
        """The fewest points of which one comes to the last rung; each bracket gets its first in turn."""
        return len(self.rungs) if self.brackets else self.reduction**self.top

    def planned(self, points: int, *, has_baseline: bool = False) -> list[int]:
        """Return how many points reach each rung, the smallest first, if no early promotion is overtaken.

        A baseline is one of them and is trained on the last rung only.
        """
        begun = self._first_rungs(points - has_baseline)
        counts = [0] * self.top + [int(has_baseline)]
        for first, count in begun.items():
            for rung in range(first, self.top + 1):
                counts[rung] += count
                count = promoted_count(count, self.reduction)  # noqa: PLW2901 -- those that go on
        return counts

    def _first_rungs(self, points: int) -> dict[int, int]:
        """Return how many points begin on each rung: whole rounds of brackets, then one by one."""
        if not self.brackets:
            return {0: points}
        shares = {first: self._share(first) for first in range(self.top + 1)}
        rounds, others = divmod(points, sum(shares.values()))
        begun = {first: rounds * share for first, share in shares.items()}
        for _ in range(others):
            begun[self.next_first(begun)] += 1
        return begun


def promoted_count(ended: int, reduction: int) -> int:
    """Return how many of the points that ended on a rung are promoted; below `reduction` none is."""
    return ended // reduction


_PATH: KeyPath = ("search", "scheduler", "fidelity")
_FIRST_PATH: KeyPath = ("search", "scheduler", "min_fidelity")

_BELOW = 2
"""So many times less by the reduction the first rung of lengths and data is by default."""


def expand_fidelity(diagnostics: Diagnostics) -> Fidelity | None:
    """Return the fidelity of a document's search and make it a factor; None for epochs, or if it is faulty.

    Faults are reported. Faults of other keys of [search] are left to their reader.
    """
    data = cast("dict[str, Any]", diagnostics.document.data)
    search, factors = data.get("search"), data.get("factors", {})
    if not isinstance(search, Mapping) or not isinstance(factors, Mapping):
        return None
    table = part_table(search.get("scheduler"))
    name, scheduler = table.get("fidelity", EPOCHS), table.get("name")
    if (
        name == EPOCHS
        or not (isinstance(name, str) and isinstance(scheduler, str))
        or scheduler not in REDUCTIONS
    ):
        return None
    reduction = _whole(table.get("reduction"), at_least=2) or REDUCTIONS[scheduler]
    as_written = dict(data)
    found = _rungs(diagnostics, data, name, reduction)
    if found is not None and len(found) < 2:
        message = f"expected room for two rungs at least, got {name} = {found[0]} alone"
        diagnostics.report_error(_PATH, f"{message} with a reduction of {reduction}")
        found = None
    if found is None:  # all else is checked as it stands, without a hole that nothing fills
        data.update(as_written)
        return None
    data["factors"] = {**factors, name: found[::-1]}  # the first level is what is trained in the end
    fidelity = Fidelity(name=name, rungs=tuple(found), reduction=reduction, brackets=scheduler == "hyperband")
    points, study = _whole(search.get("trials"), at_least=1), data.get("study")
    if points is not None:
        has_baseline = isinstance(study, Mapping) and bool(study.get("baseline"))
        _check_points(diagnostics, fidelity, points - has_baseline, has_baseline=has_baseline)
    return fidelity


def _check_points(diagnostics: Diagnostics, fidelity: Fidelity, points: int, *, has_baseline: bool) -> None:
    if fidelity.planned(points)[-1]:
        return
    beside = " beside the baseline" if has_baseline else ""
    last = f"of which one comes to the last of {len(fidelity.rungs)} rungs"
    message = f"expected at least {fidelity.least_points:,} points{beside}, {last}, got {max(points, 0):,}"
    diagnostics.report_error(("search", "trials"), message)


def _rungs(diagnostics: Diagnostics, data: dict[str, Any], name: str, reduction: int) -> list[int] | None:
    """Return the values of each rung and put a hole at their key; report why if there are none."""
    search = data["search"]
    space, factors = search.get("space", {}), data.get("factors", {})
    space = space if isinstance(space, Mapping) else {}
    first = _whole(part_table(search.get("scheduler")).get("min_fidelity"), at_least=1)
    if name in (LENGTH, DATA):
        return _settings_rungs(diagnostics, data, name, first, reduction)
    if name in factors and name != SEED:
        return _levels(diagnostics, name, factors[name], first)
    if name in space:
        found = _dimension_ends(diagnostics, name, space[name], first)
        if found is None:
            return None
        data["search"] = {**search, "space": {key: each for key, each in space.items() if key != name}}
        return _between(diagnostics, *found, reduction)
    known = [EPOCHS, LENGTH, DATA, *space, *(each for each in factors if each != SEED)]
    diagnostics.report_error(
        _PATH, f"expected what grows from rung to rung, got '{name}'{nearest_hint(name, known)}"
    )
    return None


def _settings_rungs(
    diagnostics: Diagnostics, data: dict[str, Any], name: str, first: int | None, reduction: int
) -> list[int] | None:
    """Return the rungs of a setting of the file, and put the hole of its factor there."""
    factors, space = data.get("factors", {}), data["search"].get("space", {})
    if name in factors or (isinstance(space, Mapping) and name in space):
        message = f"'{name}' is a fidelity by itself: give the factor or dimension another name"
        diagnostics.report_error(_PATH, message)
        return None
    ends = (_replace_length if name == LENGTH else _replace_steps)(diagnostics, data)
    if ends is None:
        return None
    low, top = ends
    return _between(diagnostics, first or max(low, top // reduction**_BELOW), top, reduction)


def _between(diagnostics: Diagnostics, first: int, top: int, reduction: int) -> list[int] | None:
    """Return the rungs from the first to the top, each `reduction` times the last."""
    if first >= top:
        diagnostics.report_error(
            _FIRST_PATH, f"expected less than {top:,}, which is trained in the end, got {first:,}"
        )
        return None
    rungs = [first]
    while rungs[-1] * reduction**2 <= top:
        rungs.append(rungs[-1] * reduction)
    return [*rungs, top] if rungs[-1] * reduction <= top else [top]


def _levels(diagnostics: Diagnostics, name: str, levels: object, first: int | None) -> list[int] | None:
    path = ("factors", name)
    numbers = [each for each in levels if type(each) is int] if isinstance(levels, list) else []
    if not isinstance(levels, list) or len(numbers) < len(levels) or not numbers:
        diagnostics.report_error(path, f"expected whole numbers, a rung each, got {format_value(levels)}")
        return None
    if any(lower >= higher for lower, higher in pairwise(numbers)):
        diagnostics.report_error(path, f"expected rungs from the smallest on, got {format_value(levels)}")
        return None
    if first is not None:
        message = f"the levels of {name} are the rungs: leave this key out"
        diagnostics.report_error(_FIRST_PATH, message, key=True)
    return numbers


def _dimension_ends(
    diagnostics: Diagnostics, name: str, text: object, first: int | None
) -> tuple[int, int] | None:
    path = ("search", "space", name)
    try:
        dimension = read_dimension(text) if isinstance(text, str) else None
    except RecipeError as error:
        diagnostics.report_faults(path, error.faults)
        return None
    if not isinstance(dimension, IntegerDimension):
        message = "expected integer(lo, hi) as the fidelity, or its rungs as levels in [factors]"
        diagnostics.report_error(path, f"{message}, got {format_value(text)}")
        return None
    if first is not None:
        message = f"{name} begins with {dimension.low}: leave this key out"
        diagnostics.report_error(_FIRST_PATH, message, key=True)
    return dimension.low, dimension.high


def _replace_steps(diagnostics: Diagnostics, data: dict[str, Any]) -> tuple[int, int] | None:
    """Replace the steps of an epoch by those of the rung; return the fewest and the most."""
    train = data.get("train")
    steps = train.get("steps_per_epoch") if isinstance(train, Mapping) else None
    if (top := _whole(steps, at_least=1)) is None:
        message = f"{DATA} are the steps of an epoch: expected a number of them in [train]"
        diagnostics.report_error(_PATH, f"{message}, got {format_value(steps)}")
        return None
    data["train"] = {**cast("dict[str, Any]", train), "steps_per_epoch": f"{{{DATA}}}"}
    return 1, top


def _replace_length(diagnostics: Diagnostics, data: dict[str, Any]) -> tuple[int, int] | None:
    """Replace the longest training length by that of the rung; return the least and the most."""
    for table in ("train", "task"):
        keys = data.get(table)
        lengths = keys.get("lengths") if isinstance(keys, Mapping) else None
        if isinstance(lengths, list) and len(lengths) == 2:
            low, top = (_whole(each, at_least=1) for each in lengths)
            if low is not None and top is not None and low <= top:
                hole = f"{{{LENGTH}}}"
                grown = [hole, hole] if low == top else [low, hole]
                data[table] = {**cast("dict[str, Any]", keys), "lengths": grown}
                return (1 if low == top else low), top
    curriculum = data["train"].get("curriculum") if isinstance(data.get("train"), Mapping) else None
    if isinstance(curriculum, Mapping):
        low, top = (_whole(curriculum.get(key), at_least=1) for key in ("start", "end"))
        if low is not None and top is not None:
            data["train"] = {**data["train"], "curriculum": {**curriculum, "end": f"{{{LENGTH}}}"}}
            return low, top
    diagnostics.report_error(
        _PATH,
        f"{LENGTH} is the longest of a training: expected lengths = [shortest, longest] in [train] or [task]"
        ", or the end of a curriculum, got none",
    )
    return None


def _whole(value: object, *, at_least: int) -> int | None:
    """Return a whole number if it is one; faults are reported where the key is read."""
    return value if type(value) is int and value >= at_least else None
