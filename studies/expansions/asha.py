"""`scheduler = "asha"`: all points train at a small size, and only the best continue to larger sizes.

The sizes are the rungs of a search. A size is one setting, the fidelity; unless it is the number of epochs,
it becomes a factor with one level for each rung. Only a training on the last rung gives a point's result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from ...errors import nearest_hint
from ...grammar import RecipeError
from ...grammar.nodes import IntegerDimension
from ..schema.design import Expansion
from ..schema.factors import SEED
from ..schema.search import read_dimension
from ..schema.search_settings import DATA, EPOCHS, LENGTH, REDUCTION, Rungs
from ..text.document import Diagnostics
from ..text.strict_model import (
    InvalidTableError,
    PartSettings,
    ValidationProblem,
    as_table,
    format_value,
    part_table,
)
from ..text.toml_positions import KeyPath
from ..text.units import plural

if TYPE_CHECKING:
    from ..study import Study


class RungSettings(PartSettings):
    """The keys of `[search] scheduler` for `asha`.

    It trains points in stages called rungs. Only the best points of a rung continue on the next one.
    """

    fidelity: str = EPOCHS
    """what grows from rung to rung: `epochs`; `length`, the longest training length; `data`, the steps of an
    epoch; or a dimension of whole numbers that fills a hole, such as `{width}`"""
    min_fidelity: int | None = Field(default=None, ge=1)
    """the value on the first rung (default: 1 epoch; for `length` and `data` the last rung divided twice by
    the reduction; for a dimension its lowest value)"""
    reduction: int = Field(default=REDUCTION, ge=2)
    """one in `reduction` points is promoted to the next rung, which is `reduction` times as large"""


@dataclass(frozen=True, kw_only=True)
class Fidelity(Rungs, Expansion):
    """Expansion that makes a factor of the setting that grows from rung to rung, such as the width.

    There are no rungs here if it is the number of epochs, which the scheduler compares as they end. `patch`
    lets each rung set its own value of a key, or removes a dimension that becomes a factor.
    """

    scheduler_keys = RungSettings
    patch: Mapping[KeyPath, Any] = field(default_factory=dict[KeyPath, Any], repr=False, compare=False)

    @classmethod
    def read(cls, diagnostics: Diagnostics) -> Self | None:
        """Return the setting that grows from rung to rung; None if it has a fault.

        Faults are reported, except faults of other [search] keys, which `read_search` reports.
        """
        data = diagnostics.data
        search, factors = data.get("search"), data.get("factors", {})
        if not isinstance(search, Mapping) or not isinstance(factors, Mapping):
            return None
        table = part_table(search.get("scheduler"))
        name = table.get("fidelity", EPOCHS)
        if name == EPOCHS or not isinstance(name, str):
            return cls()
        reduction = _whole(table.get("reduction"), at_least=2) or REDUCTION
        try:
            rungs, patch = _rungs(data, name, reduction)
            if len(rungs) < 2:
                message = f"asha needs at least two rungs, but reduction = {reduction} gives only one"
                remedy = f"lower reduction, or raise the largest {name}"
                raise _fault(_PATH, f"{message}, at {name} = {rungs[0]}: {remedy}")
        except RecipeError as error:
            diagnostics.report_faults(("search", "space", name), error.faults)
            return None
        except InvalidTableError as error:
            for problem in error.problems:
                diagnostics.report(problem.path, problem.message, key=problem.key)
            return None
        if _SPACE in patch:
            diagnostics.origins["factors", name] = (*_SPACE, name)
        found = cls(name=name, rungs=tuple(rungs), reduction=reduction, patch=patch)
        points = _whole(search.get("trials"), at_least=1)
        has_baseline = bool(as_table(data.get("study")).get("baseline"))
        if points is not None and not found.planned(points - has_baseline)[-1]:
            beside = " besides the baseline" if has_baseline else ""
            expected = f"expected at least {found.least_points:,} points{beside}"
            last = f"so that one reaches the last of {len(rungs)} rungs"
            message = f"{expected}, {last}, got {max(points - has_baseline, 0):,}"
            diagnostics.report(("search", "trials"), message)
        return found

    def add_factors(self, factors: Mapping[str, Any]) -> Mapping[str, Any]:
        # the largest value comes first, because a point's result comes from a training with this value
        return {**factors, self.name: [*self.rungs[::-1]]} if self.rungs else factors

    def complete(self, diagnostics: Diagnostics, study: Study) -> Study:
        """Return the study. Report a first rung of epochs after which no trial has any left."""
        assert study.search is not None, "a scheduler belongs to a search"
        first = getattr(study.search.settings.scheduler, "min_fidelity", None)
        epochs = max(each.settings.train.epochs for each in study.examples)
        if not self.rungs and first is not None and first > (most := max(1, epochs - 1)):
            text = f"expected at most {most:,}, since the last rung trains all of {plural(epochs, 'epoch')}"
            diagnostics.report(_FIRST_PATH, f"{text}, got {first:,}")
        return study

    @property
    def least_points(self) -> int:
        """The smallest number of points with which a search can reach the last rung."""
        return self.reduction**self.top


EXPANSION = Fidelity


_PATH: KeyPath = ("search", "scheduler", "fidelity")
_SPACE: KeyPath = ("search", "space")
_FIRST_PATH: KeyPath = ("search", "scheduler", "min_fidelity")

_BELOW = 2
"""The default number of rungs below the last one, for lengths and data."""


def _fault(path: KeyPath, message: str, *, key: bool = False) -> InvalidTableError:
    return InvalidTableError((ValidationProblem(path, message, key),))


def _rungs(data: Mapping[str, Any], name: str, reduction: int) -> tuple[list[int], dict[KeyPath, Any]]:
    """Return the fidelity's value on each rung, and the values in the study that must change, by path.

    The change lets each rung set its own value. A key of [task] or [train] gets a hole; a dimension of
    the search space is removed.
    """
    search, factors = data["search"], data.get("factors", {})
    space = as_table(search.get("space"))
    first = _whole(part_table(search.get("scheduler")).get("min_fidelity"), at_least=1)
    if name in (LENGTH, DATA):
        if name in factors or name in space:
            message = f"'{name}' is a built-in fidelity: give the factor or dimension another name"
            raise _fault(_PATH, message)
        low, top, patch = _replace_length(data) if name == LENGTH else _replace_steps(data)
        return _between(first or max(low, top // reduction**_BELOW), top, reduction), patch
    if name in factors and name != SEED:
        rungs, patch = factors[name], dict[KeyPath, Any]()
        # `type`, because a bool is an int
        whole = isinstance(rungs, list) and bool(rungs) and all(type(each) is int for each in rungs)
        if not whole or any(lower >= higher for lower, higher in pairwise(rungs)):
            expected = "expected whole numbers in increasing order, one per rung"
            raise _fault(("factors", name), f"{expected}, got {format_value(rungs)}")
    elif name in space:
        dimension = read_dimension(space[name]) if isinstance(space[name], str) else None
        if not isinstance(dimension, IntegerDimension):
            message = f'fidelity = "{name}" needs integer(lo, hi), got {format_value(space[name])}'
            remedy = f"write integer(lo, hi), or list the rungs of {name} in [factors]"
            raise _fault(("search", "space", name), f"{message}: {remedy}")
        rungs = _between(dimension.low, dimension.high, reduction)
        patch = {_SPACE: {key: each for key, each in space.items() if key != name}}
    else:
        known = [EPOCHS, LENGTH, DATA, *space, *(each for each in factors if each != SEED)]
        expected = "expected epochs, length, data, a factor or a dimension"
        raise _fault(_PATH, f"{expected}, got '{name}'{nearest_hint(name, known)}")
    if first is not None:
        message = f"min_fidelity has no effect, since {name} has its own rungs: remove min_fidelity"
        raise _fault(_FIRST_PATH, message, key=True)
    return rungs, patch


def _between(first: int, top: int, reduction: int) -> list[int]:
    """Return the rungs' values from `first` to `top`; each is `reduction` times the previous one.

    The last value is always `top`, so the factor before it may be larger than `reduction`.
    """
    if first >= top:
        message = f"expected less than {top:,}, the last rung, got {first:,}"
        raise _fault(_FIRST_PATH, message)
    rungs = [first]
    while rungs[-1] * reduction**2 <= top:
        rungs.append(rungs[-1] * reduction)
    return [*rungs, top] if rungs[-1] * reduction <= top else [top]


def _replace_steps(data: Mapping[str, Any]) -> tuple[int, int, dict[KeyPath, Any]]:
    """Return the range of `fidelity = "data"`, and the key that gets its hole."""
    steps = as_table(data.get("train")).get("steps_per_epoch")
    if (top := _whole(steps, at_least=1)) is None:
        message = f'fidelity = "{DATA}" raises the steps of an epoch: expected [train] steps_per_epoch'
        raise _fault(_PATH, f"{message}, got {format_value(steps)}")
    return 1, top, {("train", "steps_per_epoch"): f"{{{DATA}}}"}


def _replace_length(data: Mapping[str, Any]) -> tuple[int, int, dict[KeyPath, Any]]:
    """Return the range of `fidelity = "length"`, and the key that gets its hole."""
    hole = f"{{{LENGTH}}}"
    for table in ("train", "task"):
        lengths = as_table(data.get(table)).get("lengths")
        if isinstance(lengths, list) and len(lengths) == 2:
            low, top = (_whole(each, at_least=1) for each in lengths)
            if low is not None and top is not None and low <= top:
                grown = [hole, hole] if low == top else [low, hole]
                return (1 if low == top else low), top, {(table, "lengths"): grown}
    curriculum = as_table(as_table(data.get("train")).get("curriculum"))
    low, top = (_whole(curriculum.get(key), at_least=1) for key in ("start", "end"))
    if low is not None and top is not None:
        return low, top, {("train", "curriculum", "end"): hole}
    needed = "lengths = [shortest, longest] in [train] or [task], or the end of a curriculum"
    raise _fault(
        _PATH, f'fidelity = "{LENGTH}" raises the longest training length: expected {needed}, got none'
    )


def _whole(value: object, *, at_least: int) -> int | None:
    return value if type(value) is int and value >= at_least else None  # a bool is an int, but not this type
