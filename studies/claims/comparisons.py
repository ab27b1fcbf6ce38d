"""Data classes of claims: statements (AllOf, AnyOf, NotOf), comparisons and the numbers in them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, field_validator

from ..catalog.metrics import pick_bias
from ..schema.factors import filled_levels, level_name, one_line
from ..schema.settings import Level, Names
from ..text.strict_model import StrictModel

Cell = tuple[tuple[str, Level], ...]
"""Every factor except the seed with its level, in the order of the study."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant number in a claim, such as the 0.01 in `a > b + 0.01`."""

    value: float


@dataclass(frozen=True, slots=True)
class Quantity:
    """A metric of one of the study's cells; it has one value for each seed.

    `metric` is its name, with an index if it has several values, such as `bleu[10-20]` for those lengths.
    """

    metric: str
    cell: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedSetting:
    """A setting, such as `train.optimizer.lr`, that was chosen by results of some of the study's cells."""

    name: str
    cells: tuple[Quantity, ...]


@dataclass(frozen=True, slots=True)
class Picked:
    """A metric of one of several cells, which differ only in the factors in `over` of `[[claim]]`.

    It is the cell with the best mean of the metric `pick_by` over the seeds of the study.
    """

    metric: str
    pick_by: str
    cells: tuple[Cell, ...]

    @property
    def cell(self) -> Cell:
        """Return the first of these cells."""
        return self.cells[0]

    @property
    def shared_levels(self) -> Cell:
        """Return the levels that all these cells share."""
        shared = set.intersection(*map(set, self.cells))
        return tuple(pair for pair in self.cells[0] if pair in shared)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Return both metrics of each cell."""
        return tuple(Quantity(name, cell) for cell in self.cells for name in (self.metric, self.pick_by))


@dataclass(frozen=True, slots=True)
class SignedSum:
    """A sum of numbers, each added (1) or subtracted (−1), computed for each seed."""

    terms: tuple[tuple[int, Number], ...]


@dataclass(frozen=True, slots=True)
class Quotient:
    """The quotient of two numbers, computed for each seed."""

    numerator: Number
    denominator: Number


@dataclass(frozen=True, slots=True)
class Reduction:
    """The minimum, maximum or mean of several numbers, computed for each seed."""

    function: Literal["min", "max", "mean"]
    parts: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class Extrapolation:
    """A large model's metric as extrapolated from smaller models, such as `law(loss[width=64])`.

    There is one value for each seed. `of` is the number to predict, and `cell` is one of its cells. `parts`
    are the same number at the smaller sizes, the smallest first, each with a cell of that size. A power law
    of the models' parameter counts is fitted to `parts` and evaluated at the parameter count of `cell`.
    """

    of: Number
    cell: Cell
    parts: tuple[tuple[Cell, Number], ...]


@dataclass(frozen=True, slots=True)
class Speedup:
    """The logarithm of a speedup for each seed: the cost `slow` divided by the cost `fast`."""

    fast: Quantity
    slow: Quantity


@dataclass(frozen=True, slots=True)
class Ratio:
    """A constant ratio to which a claim compares a speedup. The two are compared as logarithms."""

    value: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two numbers, such as `left > right`, or `left` within `margin` of `right`.

    With a speedup on the left both sides are logarithms.
    """

    left: Number
    sign: str
    right: Number
    margin: float = 0.0

    @property
    def is_ratio(self) -> bool:
        """True if the left side is a speedup. Both sides are then logarithms."""
        return isinstance(self.left, Speedup)

    @property
    def terms(self) -> tuple[tuple[int, Number], ...]:
        """Return the numbers whose sum is left minus right, each added (1) or subtracted (−1)."""
        return (*iter_terms(self.left, 1), *iter_terms(self.right, -1))

    @property
    def added(self) -> float:
        """Return the number that is added to a difference of metrics, such as 0.01 in `a > b + 0.01`.

        It is 0 if metrics are not compared with each other, as in `a > 0.01`, or if a number is compared with
        0, as in `a - b - 0.01 > 0`.
        """
        if self.right == Constant(0.0):
            return 0.0
        terms = list(self.terms)
        signs = {sign for sign, term in terms if not isinstance(term, Constant)}
        numbers = [-sign * term.value for sign, term in terms if isinstance(term, Constant)]
        return math.fsum(numbers) if len(signs) > 1 else 0.0

    @property
    def subtracts_constant(self) -> bool:
        """True if the effect of a comparison of metrics has a number in it, as in `a - b - 0.01 > 0`."""
        numbers = [sign * term.value for sign, term in self.terms if isinstance(term, Constant)]
        return not self.is_ratio and math.fsum(numbers) + self.added != 0

    def accepted_range(self, step: float) -> tuple[float, float]:
        """Return the lower and upper limit between which `left - right` satisfies the comparison.

        `step` is the smallest difference that the metric can show. `>=` holds for differences above −step,
        and `==` for differences of less than one step.
        """
        ranges = {
            ">": (0.0, math.inf),
            "<": (-math.inf, 0.0),
            ">=": (-step, math.inf),
            "<=": (-math.inf, step),
            "==": (-step, step),
            "within": (-self.margin, self.margin),
        }
        return ranges[self.sign]


@dataclass(frozen=True, slots=True)
class AllOf:
    """A statement that holds if all of its parts hold."""

    parts: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A statement that holds if at least one of its parts holds."""

    parts: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class NotOf:
    """A statement that holds if its part does not hold."""

    part: Statement


Number = Constant | Quantity | Picked | SignedSum | Quotient | Reduction | Extrapolation | Speedup | Ratio
Statement = Comparison | AllOf | AnyOf | NotOf


def iter_terms(number: Number, sign: int) -> Iterator[tuple[int, Number]]:
    """Yield the numbers whose sum is `number` times `sign`, each added (1) or subtracted (−1)."""
    if isinstance(number, SignedSum):
        for inner, term in number.terms:
            yield from iter_terms(term, sign * inner)
    else:
        yield sign, number


def iter_comparisons(statement: Statement) -> Iterator[Comparison]:
    """Yield every comparison in a statement, in the order of the claim's text."""
    match statement:
        case Comparison():
            yield statement
        case NotOf():
            yield from iter_comparisons(statement.part)
        case AllOf() | AnyOf():
            for part in statement.parts:
                yield from iter_comparisons(part)


def number_parts(number: Number | Comparison) -> tuple[Number, ...]:  # noqa: PLR0911 -- one return for each kind
    """Return the direct operands of a number or a comparison, in text order."""
    match number:
        case Comparison():
            return (number.left, number.right)
        case SignedSum():
            return tuple(term for _, term in number.terms)
        case Quotient():
            return (number.numerator, number.denominator)
        case Reduction():
            return number.parts
        case Extrapolation():
            return tuple(part for _, part in number.parts)
        case Speedup():
            return (number.fast, number.slow)
        case _:
            return ()


def iter_numbers(number: Number | Comparison) -> Iterator[Number]:
    """Yield all numbers inside a number or a comparison, in text order. A number itself comes first."""
    if not isinstance(number, Comparison):
        yield number
    for part in number_parts(number):
        yield from iter_numbers(part)


def weighted_cells(comparison: Comparison) -> tuple[dict[Quantity, float], float] | None:
    """Return the weight of each cell's mean in left minus right, and the number that is added to their sum.

    Return None if left minus right is no weighted sum, as with a quotient, which is computed for each seed.
    """
    weights, constant = dict[Quantity, float](), 0.0
    todo: list[tuple[float, Number]] = [*comparison.terms]
    while todo:
        factor, number = todo.pop(0)
        match number:
            case Constant():
                constant += factor * number.value
            case Quantity():
                weights[number] = weights.get(number, 0.0) + factor
            case SignedSum():
                todo += [(factor * sign, term) for sign, term in number.terms]
            case Reduction() if number.function == "mean" or len(number.parts) == 1:
                todo += [(factor / len(number.parts), part) for part in number.parts]
            case _:
                return None
    return {quantity: weight for quantity, weight in weights.items() if weight}, constant


def iter_quantities(number: Number | Comparison) -> Iterator[Quantity]:
    """Yield the quantities in a number, or on both sides of a comparison, from left to right.

    They include those that a picked cell depends on.
    """
    for each in iter_numbers(number):
        if isinstance(each, Quantity):
            yield each
        elif isinstance(each, Picked):
            yield from each.quantities


def replace_metrics(number: Number, change: Callable[[Quantity | Picked], Number]) -> Number:
    """Return a number with each metric, except in speedups, replaced by what `change` returns for it."""
    match number:
        case Quantity() | Picked():
            return change(number)
        case SignedSum():
            return SignedSum(tuple((sign, replace_metrics(term, change)) for sign, term in number.terms))
        case Quotient():
            above, below = (replace_metrics(part, change) for part in number_parts(number))
            return Quotient(above, below)
        case Reduction():
            return replace(number, parts=tuple(replace_metrics(part, change) for part in number.parts))
        case Extrapolation():
            parts = tuple((cell, replace_metrics(part, change)) for cell, part in number.parts)
            return replace(number, of=replace_metrics(number.of, change), parts=parts)
        case _:
            return number


def replace_comparisons(statement: Statement, change: Callable[[Comparison], Statement]) -> Statement:
    """Return a statement with each comparison in it replaced by what `change` returns for it."""
    match statement:
        case Comparison():
            return change(statement)
        case NotOf():
            return NotOf(replace_comparisons(statement.part, change))
        case AllOf() | AnyOf():
            return replace(
                statement, parts=tuple(replace_comparisons(part, change) for part in statement.parts)
            )


def split_extremes(comparison: Comparison) -> Statement:
    """Replace the minima and maxima of an inequality by comparisons of their parts.

    `max(a, b) > c` holds if any part is larger, and `c > max(a, b)` if c is larger than all. The mean of a
    maximum that is computed for each seed would be larger than the maximum of the means. Extremes within a
    mean or a quotient stay, and so do those of an equality or of `within`.
    """
    if comparison.sign not in ("<", "<=", ">", ">="):
        return comparison
    for side, number in (("left", comparison.left), ("right", comparison.right)):
        if (found := _first_extreme(number, 1)) is None:
            continue
        function, sign, numbers = found
        split = [split_extremes(replace(comparison, **{side: each})) for each in numbers]
        parts = tuple(each for each in split if not _cancels(each)) or tuple(split)
        raises_left = (sign == 1) == (side == "left")
        helps = raises_left == (comparison.sign in (">", ">="))
        return AnyOf(parts) if (function == "max") == helps else AllOf(parts)
    return comparison


def _cancels(part: Statement) -> bool:
    """Return whether a part compares a number with itself, as `max(a, b) - min(a, b) > 1` would."""
    if not isinstance(part, Comparison):
        return False
    signs: Counter[Number] = Counter()
    for sign, term in part.terms:
        signs[term] += 0 if isinstance(term, Constant) else sign
    return not any(signs.values())


def _first_extreme(number: Number, sign: int) -> tuple[str, int, list[Number]] | None:
    """Find the first minimum or maximum that is a number, or a term of it.

    Return its function, its sign in the number, and the number with each of its parts in its place.
    """
    match number:
        case Reduction(function="min" | "max"):
            return number.function, sign, list(number.parts)
        case SignedSum():
            for place, (own, term) in enumerate(number.terms):
                if (found := _first_extreme(term, sign * own)) is not None:
                    function, at, parts = found
                    before, after = number.terms[:place], number.terms[place + 1 :]
                    return function, at, [SignedSum((*before, (own, part), *after)) for part in parts]
    return None


def cell_label(cell: Cell) -> str:
    """Return the label of a cell in messages: `task=sort, mixer=sa`."""
    levels = filled_levels(dict(cell))
    return ", ".join(f"{factor}={level_name(level)}" for factor, level in levels.items())


Test = Literal["pooled", "t", "permutation", "wilcoxon"]


class ClaimSpec(StrictModel):
    """Keys of `[[claim]]`: the claim in words, the statement to test, and its source in a paper."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    """the claim in one sentence"""
    holds: Annotated[str, Field(max_length=4000)]
    """the statement to test"""
    source: str | None = None
    """the place in a paper, or a quotation"""
    each: str | None = None
    """a factor; the claim is tested separately at each of its levels"""
    over: Names = ()
    """factors, such as the learning rate, whose best level each cell has; `holds` does not name them"""
    pick_by: str | None = None
    """the metric, preferably of the dev split, whose mean over the seeds picks the level of `over`"""
    level: float = Field(default=0.95, ge=0.5, lt=1)
    """the joint confidence level of the claim's verdicts"""
    test: Test = "pooled"
    """how the claim is decided: by the t interval with a variance of all comparable cells, the t interval of
    the comparison alone, or a test that assumes less"""

    @field_validator("name")
    @classmethod
    def _check_printable(cls, name: str) -> str:
        if name != one_line(name):
            raise ValueError(f"expected one line of printable signs, got {name!r}")
        return name


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim: its text, and the statement about a study's cells that the text makes.

    `varied_factors` are the factors with several levels. In every cell, another factor's level determines the
    levels of the `dependent_factors`. `uses_last_look` means that all looks' seeds count, as for a number of
    a paper that compares nothing: then no look decides it early.
    """

    spec: ClaimSpec
    statement: Statement
    varied_factors: Mapping[str, tuple[Level, ...]]
    dependent_factors: frozenset[str]
    uses_last_look: bool = False

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """The different comparisons of the claim, in text order."""
        return list(dict.fromkeys(iter_comparisons(self.statement)))

    @property
    def bias(self) -> str:
        """A sentence on the choice of levels, if it makes the compared values too good; else ""."""
        numbers = (each for comparison in self.comparisons for each in iter_numbers(comparison))
        shown = {each.metric for each in numbers if isinstance(each, Quantity | Picked)}
        return pick_bias(self.spec.pick_by, self.spec.over, shown)

    @cached_property
    def quantities(self) -> list[Quantity]:
        """The different quantities that the claim compares, in text order."""
        found = (each for comparison in self.comparisons for each in iter_quantities(comparison))
        return list(dict.fromkeys(found))
