"""`match`: a size of the model, computed so that it costs as much as the baseline."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, Field, field_validator

from ...grammar import Recipe, RecipeError, lookup
from ...grammar.checker import MAX_BLOCKS
from ...grammar.model_config import MAX_D_MODEL
from ...grammar.nodes import BlockNode, HoleNode, RepeatNode, walk
from ...grammar.vocabulary.spec import uncounted_kernels
from ..resolve.costs import (
    CostMatch,
    SizeMatch,
    cost_text,
    flops_per_token,
    parameter_count,
    state_bytes,
)
from ..resolve.draft import report_problem
from ..resolve.grid import SIZE_PATHS, factors_of_sizes, training_difference
from ..resolve.template import resolve_settings
from ..schema.design import BASELINE_PATH, DesignReader, Expansion, MatchedSize
from ..schema.factors import SEED, has_level, level_key, level_name
from ..schema.settings import (
    D_MODEL_PATH,
    RECIPE_PATH,
    Level,
    MatchedCost,
    TrialSettings,
    check_each_once,
    read_recipe,
    wrap_in_list,
)
from ..text.document import Diagnostics
from ..text.strict_model import InvalidTableError, StrictModel, ValidationProblem, format_value
from ..text.toml_positions import KeyPath

if TYPE_CHECKING:
    from ..plan import Plan
    from ..study import Study

_MAX_SIZE = 2**31  # the bound of sizes for a parameter without a bound of its own

_COSTS: Mapping[MatchedCost, Callable[[TrialSettings], float]] = {
    "parameters": parameter_count,
    "flops": flops_per_token,
    "state": state_bytes,
}


def nearest_sizes(
    count: Callable[[int], float], target: float, low: int, high: int, first: int | None = None
) -> list[int]:
    """Return the sizes with a `count(size)` just below and just above a target, the nearer first.

    There is only one size if the target is out of range. The result of `count` must not fall as the size
    grows. `first` is a guess of the size just above; a good one saves time.
    """
    above = _smallest_reaching(count, target, low, high, low + 1 if first is None else first)
    sizes = [size for size in (above - 1, above) if low <= size <= high and math.isfinite(count(size))]
    return sorted(sizes, key=lambda size: abs(count(size) - target))


def _smallest_reaching(count: Callable[[int], float], target: float, low: int, high: int, first: int) -> int:
    """Return the smallest size at which `count` reaches the target; `high + 1` if there is no such size.

    The size `first` is tried first. Most counts are affine, so that this one and the least give the answer;
    otherwise the range is bisected.
    """

    def is_right(size: int) -> bool:
        return low < size <= high and target <= count(size) and count(size - 1) < target

    if is_right(first):
        return first
    rise = count(first) - count(low) if low < first <= high else 0
    if rise > 0 and math.isfinite(rise):
        guess = low + math.ceil((target - count(low)) * (first - low) / rise)
        if is_right(guess):
            return guess
    return low + bisect_left(range(low, high + 1), target, key=count)


def _ranges(recipe: Recipe, name: str) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for node in walk(recipe.root):
        if isinstance(node, RepeatNode) and node.count == HoleNode(name):
            ranges.append((1, MAX_BLOCKS))
        if isinstance(node, BlockNode) and (spec := lookup(node.name)):
            for key, value in node.arguments:
                parameter = spec.parameter(key)
                if value == HoleNode(name):
                    low, high = (parameter.low, parameter.high) if parameter else (1, None)
                    low, high = -_MAX_SIZE if low is None else low, _MAX_SIZE if high is None else high
                    ranges.append((math.ceil(low), math.floor(high)))
    return ranges


_NOUNS: Mapping[MatchedCost, str] = {
    "parameters": "parameters",
    "flops": "",
    "state": "of state",
}


class MatchSettings(StrictModel):
    """Keys of `[study]` that make the costs of all cells equal."""

    match: Annotated[tuple[MatchedCost, ...], Field(strict=False), BeforeValidator(wrap_in_list)] = ()
    """solve the size of each cell so that its model costs as much as the baseline's: `"parameters"`,
    `"flops"` (forward and backward, a token), `"state"` (the bytes that generation keeps), or a list of
    these"""
    tolerance: float = Field(default=0.005, ge=0, lt=1)
    """the maximum difference between a matched cost and the baseline's, as a fraction of the baseline's"""

    @field_validator("match")
    @classmethod
    def _check_costs(cls, costs: tuple[MatchedCost, ...]) -> tuple[MatchedCost, ...]:
        if not costs:
            raise ValueError('expected a cost, such as "parameters", got an empty list')
        check_each_once(costs)
        return costs


class Match(Expansion):
    """Expansion that computes a size for each cell, to match the baseline's costs."""

    header_keys = MatchSettings
    solves_size = True

    def __init__(self, settings: MatchSettings) -> None:
        self.settings = settings
        self._targets: dict[tuple[Hashable, ...], dict[MatchedCost, float]] = {}  # by the baseline's levels
        self._solved: dict[str, int] = {}  # the last size by recipe: that of the next task is often the same

    @classmethod
    def read(cls, diagnostics: Diagnostics) -> Self:
        """Return the expansion. If its keys are invalid, it still knows the size, and matches no cost."""
        found = diagnostics.validate_keys(MatchSettings, ("study",))
        return cls(found or MatchSettings())

    def read_cells(self, reader: DesignReader) -> Mapping[str, Any]:
        """Return the size to compute, as the field `matched_size` of `Design`.

        It is the only name in `[study] baseline` that is not a factor. A fault is reported unless there is
        exactly one such name, with an integer.
        """
        report = reader.diagnostics.report
        match list(reader.sizes().items()):
            case [(name, int(value))]:
                costs, tolerance = self.settings.match, self.settings.tolerance
                found = MatchedSize(name=name, size=value, costs=costs, tolerance=tolerance)
                return {"matched_size": found}
            case [(name, value)]:
                message = f"expected a whole number, got {format_value(value)}"
                report((*BASELINE_PATH, name), message)
            case []:
                hole = 'a hole, such as ff({filter}), and baseline = { mixer = "sa", filter = 512 }'
                message = f"match solves a size for each cell: write {hole}"
                rule = "the size is a whole number there, and has no levels in [factors] or [ladder]"
                report(("study", "match"), f"{message}; {rule}")
            case several:
                names = ", ".join(name for name, _ in several)
                report(
                    BASELINE_PATH,
                    f"`match` computes one size, got {names}: list the levels of the others in [factors]",
                )
        return {}

    def fill(
        self, diagnostics: Diagnostics, study: Study, levels: Mapping[str, Level]
    ) -> tuple[Mapping[str, Level], SizeMatch | None] | None:
        """Return the computed size of a cell, or report that none is near enough."""
        if (matched := study.design.matched_size) is None:
            return {}, None
        recipe = read_recipe(study.template.recipe(levels))  # with a hole for the size
        if "flops" in matched.costs and (fault := uncounted_kernels(recipe.root)):
            diagnostics.report(("study", "match"), fault)
            return None
        try:
            nearest, *others = self._solve_size(study, matched, levels)
        except InvalidTableError as error:
            baseline = study.design.baseline_of(levels)
            for problem in error.problems:
                report_problem(diagnostics, study.template, problem, levels=baseline, paths={})
            return None
        if abs(nearest.largest.relative_residual) <= matched.tolerance:
            size = matched.size if nearest.size is None else nearest.size
            return {matched.name: size}, nearest
        costs = " and ".join(
            f"{cost_text(each.name, each.target)} {_NOUNS[each.name]}".rstrip() for each in nearest.costs
        )
        target = f"as much as the baseline ({costs}) within {100 * matched.tolerance:g} %"
        if nearest.size is None:
            remedy = f"write {{{matched.name}}} into its recipe"
            message = f"expected a cell that costs {target}, got {nearest}: {remedy}"
        else:
            sizes = " and ".join(f"{matched.name}={each.size} has {each}" for each in (nearest, *others))
            message = f"no value of `{matched.name}` makes this cell cost {target}; {sizes}"
            remedy = _remedy(study, matched, study.design.baseline_of(levels), [nearest, *others])
            varied = [name for name in levels if name != SEED and len(study.factors.get(name, ())) > 1]
            if varied[1:]:
                message += f", at {', '.join(f'{name}={level_name(levels[name])}' for name in varied)}"
            message += f": {remedy}"
        paths: dict[str, KeyPath] = {
            name: ("factors", name, list(map(level_key, known)).index(level_key(levels[name])))
            for name, known in study.design.combined_factors.items()
            if has_level(known, levels[name])
        }
        problem = ValidationProblem(RECIPE_PATH, message)
        report_problem(diagnostics, study.template, problem, levels=levels, paths=paths)
        return None

    def _solve_size(self, study: Study, matched: MatchedSize, levels: Mapping[str, Level]) -> list[SizeMatch]:
        """Return the sizes of a cell with costs nearest to the baseline's, the best first.

        A cell without a size to solve has one entry. The baseline of a cell has the levels named in
        `baseline`, and the cell's levels of all other factors. Of several costs, the one with the largest
        relative residual counts. The baseline's size is kept if no other is nearer. Raise InvalidTableError
        if the baseline or every size is invalid.
        """
        template, baseline = study.template, study.design.baseline_of(levels)

        def settings(cell: Mapping[str, Level], size: int) -> TrialSettings:
            return resolve_settings(template, {**cell, matched.name: size})

        def costs(settings: TrialSettings) -> dict[MatchedCost, float]:
            return {name: _COSTS[name](settings) for name in matched.costs}

        key = tuple((factor, level_key(level)) for factor, level in baseline.items())
        if key not in self._targets:
            self._targets[key] = costs(settings(baseline, matched.size))
        target = self._targets[key]

        def match(size: int | None, amounts: Mapping[MatchedCost, float]) -> SizeMatch:
            found = (
                CostMatch(name=name, amount=amounts[name], target=target[name]) for name in matched.costs
            )
            return SizeMatch(size=size, costs=tuple(found))

        texts = {factor: [level] for factor, level in levels.items()}
        if not any(matched.name in template.names_at(path, texts) for path in SIZE_PATHS):
            return [match(None, costs(settings(levels, matched.size)))]
        if all(level_key(baseline[factor]) == level_key(level) for factor, level in levels.items()):
            return [match(matched.size, target)]
        recipe = template.recipe(levels)
        ranges = _ranges(read_recipe(recipe), matched.name)
        if matched.name in template.holes.get(D_MODEL_PATH, ()):
            ranges.append((1, MAX_D_MODEL))
        low, high = max(low for low, _ in ranges), min(high for _, high in ranges)
        places = [path for path in template.holes if matched.name in template.names_at(path, texts)]
        resolved: list[TrialSettings] = []

        @cache  # the bisection and the comparisons below ask for the same sizes again
        def at(size: int) -> SizeMatch | None:
            try:
                if resolved and places == [RECIPE_PATH]:  # no other setting differs
                    found = resolved[0].with_recipe(template.recipe({**levels, matched.name: size}))
                else:
                    found = settings(levels, size)
                    resolved.append(found)
                return match(size, costs(found))
            except (InvalidTableError, RecipeError):  # this size makes too many blocks
                return None

        def balance(size: int) -> float:
            found = at(size)
            return math.inf if found is None else found.balance

        def distance(found: SizeMatch) -> float:
            return abs(found.largest.relative_residual)

        sizes = nearest_sizes(balance, 0.0, low, high, self._solved.get(recipe, matched.size))
        if sizes:
            self._solved[recipe] = max(sizes)
        nearest = sorted(filter(None, map(at, sizes)), key=distance)
        kept = at(matched.size) if low <= matched.size <= high else None
        if kept is not None and (not nearest or distance(kept) <= distance(nearest[0])):
            return [kept, *(each for each in nearest if each.size != kept.size)]
        return nearest or [match(low, costs(settings(levels, low)))]

    def notes(self, study: Study, plan: Plan) -> Iterator[tuple[str, str]]:
        solved = [model.size_match for model in plan.models if model.size_match is not None]
        if (matched := study.design.matched_size) is None or not solved:
            return
        baseline = {**study.design.baseline, matched.name: matched.size}
        cell = ", ".join(f"{factor}={level_name(level)}" for factor, level in baseline.items())
        worst = max(solved, key=lambda one: abs(one.largest.relative_residual)).largest
        order = "residuals in this order, the largest" if matched.costs[1:] else "largest residual"
        apart = factors_of_sizes(study)
        where = f" at the same {' and '.join(apart)}" if apart else ""
        text = f"{matched.name} solved for the {' and '.join(matched.costs)} of {cell}{where}; {order} "
        share = f", {100 * abs(worst.relative_residual):.2g} %" if worst.residual else ""
        text += worst.residual_text + (share if worst.name == "parameters" else "")
        yield "match", "; ".join(filter(None, (text, training_difference(study))))
        least = [each.label for each in plan.models if each.size_match and each.size_match.size == 1]
        if least and matched.size > 1:
            yield "note", f"{matched.name} is solved to 1, the lowest value, in {', '.join(least)}"


def _remedy(
    study: Study, matched: MatchedSize, baseline: Mapping[str, Level], nearest: Sequence[SizeMatch]
) -> str:
    """Return what to change if the sizes of a cell that are nearest to the baseline's costs do not match."""
    residuals = [each.largest.relative_residual for each in nearest]
    if matched.costs[1:]:
        return "match only one cost, or raise tolerance"
    if min(residuals) < 0 < max(residuals):
        least = min(map(abs, residuals))
        digit = 10 ** (math.floor(math.log10(least)) - 1)  # the second significant one
        return f"set tolerance = {math.ceil(least / digit) * digit:.2g}"
    (name,), template = matched.costs, study.template

    def cost(size: int) -> float:
        try:
            return _COSTS[name](resolve_settings(template, {**baseline, matched.name: size}))
        except (InvalidTableError, RecipeError):  # too many blocks
            return math.inf

    sought, is_too_large = nearest[0].largest.amount, residuals[0] > 0
    ranges = _ranges(read_recipe(template.recipe(baseline)), matched.name) or [(1, MAX_D_MODEL)]
    low, high = max(low for low, _ in ranges), min(high for _, high in ranges)
    reaching = _smallest_reaching(cost, sought, low, high, matched.size)
    size = reaching if is_too_large or cost(reaching) == sought else reaching - 1
    if low <= size <= high and math.isfinite(cost(size)) and cost(size) != cost(matched.size):
        change, bound = ("raise", "or more") if is_too_large else ("lower", "or less")
        return f"{change} the baseline's `{matched.name}` from {matched.size} to {size} {bound}"
    return "choose another baseline, or leave this cell out"


EXPANSION = Match
