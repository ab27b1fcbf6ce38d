"""The values that claims compare, or why they are missing.

There is one for each cell and seed. A trial that belongs to several cells, as with two spellings of one
recipe, has its value in each of them, but counts once for the pooled variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

import polars as pl

from ...studies.catalog.metrics import ANALYTIC_COSTS, find_metric, is_target
from ...studies.claims.comparisons import (
    Cell,
    Claim,
    Comparison,
    Constant,
    Extrapolation,
    Number,
    Picked,
    Quantity,
    Quotient,
    Ratio,
    Reduction,
    SignedSum,
    Speedup,
    cell_label,
    iter_quantities,
    number_parts,
    replace_comparisons,
    replace_metrics,
)
from ...studies.claims.interim_tests import seeds_at_looks
from ...studies.planning.final_values import (
    ValueStatus,
    cost_per_epoch,
    count_reasons,
    smallest_step,
    trial_values,
)
from ...studies.planning.reused_trials import find_stale_trials
from ...studies.resolve.costs import counted_cost, model_cost, reachable_length
from ...studies.resolve.trial import CellKey, Trial, cell_key
from ...studies.schema.factors import SEED
from ...studies.study import Study
from ..picked_levels import best_of
from ..statistics.estimates import Interval, mean
from ..statistics.pooled_differences import Pool, Values, pooled_variance
from ..statistics.speedup import Ends, TargetCosts, log_ratios
from .verdicts import Note

_ENDED = {ValueStatus.INFINITE, ValueStatus.FAILED, ValueStatus.DIVERGED, ValueStatus.NO_VALUE}
"""The statuses of trials of added seeds that will never have a value."""


_STALE = "not run, but stored for another version of the code (study run --keep-stale reuses it)"
"""Why a trial has no value whose plug-in was edited after it ended."""


_LOG = "log "
"""A prefix of a metric's name; the value is then the logarithm of the middle of two evaluations."""


_VALUED = (ValueStatus.DONE, ValueStatus.INFINITE, ValueStatus.CENSORED)
"""The statuses of trials with a value; for a censored trial it is its cost up to its last evaluation."""


UNBOUNDED: Ends = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberValues:
    """The values of a number in a comparison, by seed.

    `ends` has the lowest and the highest possible value. They differ for a seed with a training that ended
    before it reached a target. A seed is left out if the number is undefined, such as ∞ − ∞, or if a trial
    lacks a value. `limits` are the lowest and the highest value that the number can have, whatever its trials
    give. `step` is the smallest difference that two of its values can have, the largest one of its parts.
    `rounding` is the variance that rounding adds to a value. `weights` are those of quantities if the number
    is a weighted sum of them, up to a constant, such as `a - b`; None for others, such as a quotient.
    """

    ends: Mapping[int, Ends]
    limits: Ends = UNBOUNDED
    step: float = 0.0
    rounding: float = 0.0
    weights: Mapping[Quantity, float] | None = None

    @property
    def values(self) -> dict[int, float]:
        """Return the value for each seed; infinite if only bounds of it are known."""
        return {seed: low if low == high else math.inf for seed, (low, high) in self.ends.items()}

    @property
    def mean(self) -> float:
        """Return the mean of the finite values; 0 without any."""
        known = list(filter(math.isfinite, self.values.values()))
        return mean(known) if known else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CellValues(NumberValues):
    """The values of one quantity in one cell, by seed.

    The highest value of a seed that ended before it reached a target is infinite. `remarks` tell of these
    seeds and of diverged seeds, which count with the worst value. `missing` are the seeds without a value,
    which `gaps` tells of. `where` names the cell. For lengths, `step` is the step of the task's curriculum,
    otherwise one unit of the last printed digit.
    """

    gaps: tuple[Note, ...]
    missing: frozenset[int]
    remarks: Mapping[int, str]
    where: str


class CellResults:
    """The results of a study's trials, by cell and seed.

    `outcomes` and `metrics` are the store's latest attempts; only metrics with an index are read.
    """

    def __init__(
        self,
        study: Study,
        quantities: Collection[Quantity],
        outcomes: pl.DataFrame,
        metrics: pl.DataFrame | None,
    ) -> None:
        self.seeds = study.seeds
        self.looks = seeds_at_looks(study.seeds, study.later_seeds)
        self._every = self.looks[-1]
        self._varied = [name for name, levels in study.design.known_levels.items() if len(levels) > 1]
        self._over_budget = {trial.cell for trial in study.source.over_budget}
        self._trials: dict[CellKey, dict[int, Trial]] = {}
        for trial in study.cells:
            self._trials.setdefault(trial.cell, {})[int(trial.levels[SEED])] = trial
        by_id = {trial.id: trial for cell in self._trials.values() for trial in cell.values()}
        self._values = {
            metric: {
                trial: (value if status in _VALUED else None, why, status)
                for trial, _, value, status, why in trial_values(
                    study.name, by_id, outcomes, metric, metrics=metrics
                ).iter_rows()
            }
            for metric in {quantity.metric for quantity in quantities}
        }
        for metric in self._values.keys() & {*ANALYTIC_COSTS}:
            for trial, (value, _, _) in self._values[metric].items():
                counted = None if value is not None else counted_cost(metric, by_id[trial].settings)
                if counted is not None:
                    self._values[metric][trial] = (counted, "", ValueStatus.DONE)
        for trial in find_stale_trials(study, outcomes):
            for values in self._values.values():
                if trial in values and values[trial][2] == ValueStatus.MISSING:
                    values[trial] = (None, _STALE, ValueStatus.MISSING)
        self._per_epoch = {metric: cost_per_epoch(metric, outcomes) for metric in self._values}
        self._evaluated: dict[Number, NumberValues] = {}
        self._picks: dict[tuple[str, Quantity], Note] = {}  # by the name of the claim
        self._answers = {quantity: self._cell_values(quantity) for quantity in quantities}
        self.comparable = ComparableCells(study, self._trials, self._finite_value)

    def with_picks(self, claim: Claim) -> Claim:
        """Return the claim with each picked cell in it replaced by the cell that the results pick.

        Added seeds do not count for this choice. A choice that still lacks a value stays open.
        """
        if not claim.spec.over:
            return claim
        pick = partial(self._pick, claim.spec.name)

        def chosen(comparison: Comparison) -> Comparison:
            left, right = (replace_metrics(side, pick) for side in number_parts(comparison))
            return replace(comparison, left=left, right=right)

        return replace(claim, statement=replace_comparisons(claim.statement, chosen))

    def _pick(self, claim: str, number: Quantity | Picked) -> Number:
        if isinstance(number, Quantity):
            return number
        values: dict[Cell, list[float]] = {}
        for cell in number.cells:
            trials = self._trials.get(cell_key(cell), {})
            answer = self._answers[Quantity(number.pick_by, cell)]
            lacking = [trials[seed] for seed in self.seeds if seed in trials and seed not in answer.ends]
            if any(self._values[number.pick_by][trial.id][2] not in _ENDED for trial in lacking):
                return number
            if answer.ends.keys() >= set(self.seeds):
                ends = [answer.ends[seed][1] for seed in self.seeds if seed not in answer.remarks]
                values[cell] = list(filter(math.isfinite, ends))
        if not (best := best_of(number.pick_by, values)):
            return number
        found = Quantity(number.metric, best[0])
        own = cell_label(tuple(pair for pair in best[0] if pair not in number.shared_levels))
        what = f"{own} is its best by {number.pick_by}"
        if not values[best[0]]:
            what = f"no level has a {number.pick_by} to pick by; {own}, the first of the file, is compared"
        elif len(best) > 1:
            what += f"; {len(best)} levels tie, and the first of the file was taken"
        where = self._where(number.shared_levels, number.metric)
        self._picks[claim, found] = Note(where=where, what=what)
        return found

    def trials(self, comparison: Comparison, seeds: Collection[int]) -> dict[str, Trial]:
        """Return a comparison's trials with these seeds, by id."""
        cells = [self._trials.get(cell_key(each.cell), {}) for each in iter_quantities(comparison)]
        found = [trials[seed] for trials in cells for seed in seeds if seed in trials]
        return {trial.id: trial for trial in found}

    def has_begun(self, comparison: Comparison) -> bool:
        """Return whether all trials of a comparison have begun for at least one seed.

        Also return True if the comparison has a value without some of them: some costs are computed from
        settings, and a level at the largest possible value settles a maximum.
        """
        if self.differences(comparison, self.seeds):
            return True
        parts = [
            (self._values[each.metric], self._trials.get(cell_key(each.cell), {}))
            for each in iter_quantities(comparison)
        ]
        return any(
            all(
                seed not in trials or values[trials[seed].id][2] != ValueStatus.MISSING
                for values, trials in parts
            )
            for seed in self.seeds
        )

    def has_ended(self, trial: Trial) -> bool:
        """Return whether a trial has a value, will never have one, or only needs a probe."""
        ends = [found[trial.id] for found in self._values.values() if trial.id in found]
        trained = {*_ENDED, ValueStatus.PENDING}
        return any(value is not None or status in trained for value, _, status in ends)

    def differences(self, comparison: Comparison, seeds: Collection[int]) -> dict[int, Ends]:
        """Return the lowest and the highest possible difference, left minus right, for each seed.

        Seeds without a value of both sides are left out. The two ends are equal unless a training ended
        before it reached a target. If both sides are infinite, they count as equal.
        """
        left, right = (self.values_of(side).ends for side in number_parts(comparison))
        return {
            seed: (_minus(left[seed][0], right[seed][1]), _minus(left[seed][1], right[seed][0]))
            for seed in seeds
            if seed in left and seed in right
        }

    def gaps(self, comparison: Comparison) -> tuple[Note, ...]:
        """Return notes on a comparison's trials that lack a value, including trials of added seeds.

        A value that cannot change the comparison is not missing, such as another level of a maximum that has
        reached the largest possible value.
        """
        undefined_seeds = set(self._every) - self.differences(comparison, self._every).keys()
        answers = [self._answers[part] for part in iter_quantities(comparison)]
        gaps = [gap for each in answers if each.missing & undefined_seeds for gap in each.gaps]
        undefined = len(self.seeds) - len(self.differences(comparison, self.seeds))
        if undefined and not gaps:
            what = f"{undefined} of {len(self.seeds)} seeds divide by 0"
            gaps = [Note(where="a quotient", what=what)]
        return tuple(dict.fromkeys(gaps))

    def saturation(self, comparison: Comparison) -> str | None:
        """Return the bound that both sides of a comparison have with all seeds: `largest` or `smallest`.

        One side may be a number that is the bound. Return None if there is no such bound, if a value is
        missing, or if a diverged training only counts as the worst.
        """
        quantities = list(iter_quantities(comparison))
        seeds = self.differences(comparison, self._every)
        strayed = any(self._answers[each].remarks.keys() & seeds.keys() for each in quantities)
        if not quantities or not seeds or strayed or self.gaps(comparison):
            return None
        sides = [self.values_of(side) for side in number_parts(comparison)]
        for end, bound in enumerate(("smallest", "largest")):
            limits = {side.limits[end] for side in sides}
            values = {value for side in sides for seed in seeds for value in side.ends[seed]}
            if values == limits and len(limits) == 1 and all(map(math.isfinite, limits)):
                return bound
        return None

    def is_censored(self, comparison: Comparison, seeds: Collection[int]) -> bool:
        """Return whether a training of these seeds missed a target of a comparison, as a diverged one has."""
        parts = [self._answers[each].ends for each in iter_quantities(comparison) if is_target(each.metric)]
        return any(math.isinf(ends[seed][1]) for ends in parts for seed in ends.keys() & set(seeds))

    def notes(self, comparison: Comparison, claim: Claim) -> tuple[Note, ...]:
        """Return notes on a claim's picked cells, and on trainings that diverged or missed their target."""
        paired = self.differences(comparison, self._every)
        notes: list[Note] = []
        for quantity in iter_quantities(comparison):
            answer = self._answers[quantity]
            if (pick := self._picks.get((claim.spec.name, quantity))) is not None:
                notes.append(pick)
            whys = [why for seed, why in answer.remarks.items() if seed in paired]
            notes += _counted(whys, answer.where, len(paired))
        return tuple(dict.fromkeys(notes))

    def _finite_value(self, metric: str, trial: Trial) -> float | None:
        name = metric.removeprefix(_LOG)
        value, _, status = self._values[name][trial.id]
        if value is None or status == ValueStatus.CENSORED or not math.isfinite(value):
            return None
        return value if name == metric else math.log(value - self._smallest_step(name, trial) / 2)

    def _smallest_step(self, metric: str, trial: Trial) -> float:
        per_epoch = self._per_epoch.get(metric, {}).get(trial.id)
        return smallest_step(find_metric(metric), trial.settings, per_epoch)

    def values_of(self, number: Number) -> NumberValues:
        """Return the values of a number in a comparison."""
        if isinstance(number, Quantity):
            return self._answers[number]
        if number not in self._evaluated:
            match number:
                case Extrapolation():
                    found = self._extrapolated(number)
                case Speedup():
                    fast, slow = (self._target_costs(each) for each in (number.fast, number.slow))
                    steps = fast.relative_step, slow.relative_step
                    logs = (replace(each, metric=_LOG + each.metric) for each in (number.slow, number.fast))
                    found = NumberValues(
                        ends=log_ratios(fast, slow),
                        step=sum(steps),
                        rounding=sum(map(_variance, steps)),
                        weights=dict(zip(logs, (1.0, -1.0), strict=True)),
                    )
                case _:
                    found = combined(number, list(map(self.values_of, number_parts(number))), self._every)
            self._evaluated[number] = found
        return self._evaluated[number]

    def _target_costs(self, quantity: Quantity) -> TargetCosts:
        ends, trials = self._answers[quantity].ends, self._trials.get(cell_key(quantity.cell), {})
        reached = {seed: low for seed, (low, high) in ends.items() if low == high}
        return TargetCosts(
            reached=reached,
            limits={seed: low for seed, (low, _) in ends.items() if seed not in reached},
            resolution={seed: self._smallest_step(quantity.metric, trials[seed]) for seed in reached},
        )

    def _extrapolated(self, number: Extrapolation) -> NumberValues:
        """Extrapolate a larger model's value by a power law, for seeds with a positive value of each size."""
        from ..statistics.power_law import fit_power_law  # noqa: PLC0415 -- loads NumPy

        parts = [self.values_of(part) for _, part in number.parts]
        values = [part.values for part in parts]
        sizes, size = [self._parameters(cell) for cell, _ in number.parts], self._parameters(number.cell)
        ends: dict[int, Ends] = {}
        for seed in self._every:
            points = zip(sizes, (each.get(seed) for each in values), strict=True)
            known = [(x, y) for x, y in points if x is not None and y is not None and 0 < y < math.inf]
            law = fit_power_law(known) if len(known) == len(parts) else None
            if law is not None and size is not None:
                value = law.at(size).value
                ends[seed] = (value, value)
        return NumberValues(
            ends=ends, step=max(each.step for each in parts), rounding=max(each.rounding for each in parts)
        )

    def prediction(self, law: Extrapolation) -> Interval | None:
        """Predict the value of a larger model by a power law, with a 95 % interval.

        As in a table of the kind `scaling`, the law is fitted to the geometric means over the study's own
        seeds. The interval is that of a new cell.
        Return None if a smaller size has no value, or one that is not positive.
        """
        from ..statistics.power_law import error_of_means, fit_power_law  # noqa: PLC0415 -- loads NumPy

        points, results = list[tuple[float, float]](), list[list[float]]()
        for cell, part in law.parts:
            found = self.values_of(part).values
            values = [found[seed] for seed in self.seeds if seed in found]
            parameters = self._parameters(cell)
            if parameters is None or not values or not all(0 < value < math.inf for value in values):
                return None
            points.append((parameters, math.exp(mean([math.log(value) for value in values]))))
            results.append(values)
        size, fitted = self._parameters(law.cell), fit_power_law(points, error_of_means(results))
        return None if size is None or fitted is None else fitted.next_cell(size)

    def _parameters(self, cell: Cell) -> float | None:
        trial = next(iter(self._trials.get(cell_key(cell), {}).values()), None)
        return None if trial is None else model_cost("parameters", trial.settings)

    def _cell_values(self, quantity: Quantity) -> CellValues:
        place = cell_key(quantity.cell)
        trials = self._trials.get(place, {})
        known, first = find_metric(quantity.metric), next(iter(trials.values()), None)
        is_refused = place in self._over_budget
        unknown = "exceeds the study's budget" if is_refused else "excluded by the overrides of the study"
        ends, missing, remarks = dict[int, Ends](), dict[int, str](), dict[int, str]()
        worst = -math.inf if known.higher_is_better else math.inf
        lowest, highest = known.bounds
        if known.steps_with_curriculum:
            has_curriculum = first is not None and first.common.train.curriculum is not None
            highest = float(reachable_length(first.common)) if first and has_curriculum else math.inf
        for seed in self._every:
            trial = trials.get(seed)
            value, why, status = self._values[quantity.metric][trial.id] if trial else (None, unknown, None)
            if value is not None and status == ValueStatus.CENSORED:
                # its cost is above that of its last evaluation, even if only by a little
                ends[seed] = (math.nextafter(value, math.inf), math.inf)
                remarks[seed] = why
            elif value is not None:
                ends[seed] = (value, value)
            elif status == ValueStatus.DIVERGED and known.higher_is_better is not None:
                ends[seed] = (worst, worst)
                remarks[seed] = why
            elif seed in self.seeds or status in _ENDED:
                missing[seed] = why
        where = self._where(quantity.cell, quantity.metric)
        step = self._smallest_step(quantity.metric, first) if first else smallest_step(known, None)
        count = len(self.seeds) if len(ends) < len(self.seeds) else len(ends) + len(missing)
        return CellValues(
            ends=ends,
            gaps=_counted(missing.values(), where, count),
            missing=frozenset(missing),
            remarks=remarks,
            where=where,
            step=step,
            rounding=_variance(step),
            weights={quantity: 1.0},
            limits=(lowest, highest),
        )

    def _where(self, cell: Cell, metric: str) -> str:
        """Return a label with the levels of a cell that vary in the study; the metric if there are none."""
        return cell_label(tuple(pair for pair in cell if pair[0] in self._varied)) or metric


def _counted(whys: Iterable[str], where: str, count: int) -> tuple[Note, ...]:
    of = f" of {count} seeds" if count > 1 else " seed"
    return tuple(Note(where=where, what=f"{n}{of} {why}") for why, n in count_reasons(whys).items())


def _total(values: list[float]) -> float:
    """Return the sum of values; NaN for ∞ − ∞, for which math.fsum raises an error."""
    return math.fsum(values) if all(map(math.isfinite, values)) else sum(values)


_REDUCTIONS: Mapping[str, Callable[[list[float]], float]] = {
    "mean": lambda values: _total(values) / len(values),
    "min": min,
    "max": max,
}


def _by_end(reduce: Callable[[list[float]], float], ends: Collection[Ends]) -> Ends:
    return reduce([low for low, _ in ends]), reduce([high for _, high in ends])


def _variance(step: float) -> float:
    """Return the variance of the error between −step/2 and step/2 that rounding to steps adds."""
    return step**2 / 12


def combined(number: Number, parts: Sequence[NumberValues], seeds: Sequence[int]) -> NumberValues:
    """Return the values of a number that is computed from its parts; none of a number without a value.

    The variance of a sum is the sum of its terms' variances; a mean of k values divides it by k². A minimum
    or maximum has the largest variance of its parts. A quotient is approximated linearly at the means of both
    sides, and changes by its step when both sides change by their own.
    """
    steps, variances = [part.step for part in parts], [part.rounding for part in parts]
    step, rounding, limits = max(steps, default=0.0), math.fsum(variances), UNBOUNDED
    shared = [seed for seed in seeds if all(seed in part.ends for part in parts)]
    ends: dict[int, Ends] = {}
    weights: Mapping[Quantity, float] | None = None
    match number:
        case Constant():
            weights, limits = {}, (number.value, number.value)
            ends = dict.fromkeys(seeds, limits)
        case Ratio():
            weights, value = {}, math.log(number.value)
            ends = dict.fromkeys(seeds, (value, value))
        case Reduction():
            reduce = _REDUCTIONS[number.function]
            limits = _by_end(reduce, [part.limits for part in parts])
            for seed in seeds:
                # a part without a value is no gap if no value of it could change the minimum or maximum
                low, high = _by_end(reduce, [part.ends.get(seed, part.limits) for part in parts])
                if seed in shared or (low == high and math.isfinite(low)):
                    ends[seed] = low, high
            rounding = rounding / len(parts) ** 2 if number.function == "mean" else max(variances)
            if number.function == "mean" or len(parts) == 1:
                weights = _weighted([1 / len(parts)] * len(parts), parts)
        case SignedSum():
            for seed in shared:
                signed = zip(number.terms, [part.ends[seed] for part in parts], strict=True)
                terms = [(sign * each[sign < 0], sign * each[sign > 0]) for (sign, _), each in signed]
                ends[seed] = _by_end(_total, terms)
            weights = _weighted([sign for sign, _ in number.terms], parts)
        case Quotient():
            (above, below), center = parts, parts[1].mean
            quotients = {seed: _quotient(above.ends[seed], below.ends[seed]) for seed in shared}
            ends = {seed: each for seed, each in quotients.items() if each is not None}
            ratio = NumberValues(ends=ends).mean
            step = rounding = 0.0
            if center:
                step = (above.step + abs(ratio) * below.step) / abs(center)
                rounding = (above.rounding + ratio**2 * below.rounding) / center**2
        case _:
            pass
    known = {seed: each for seed, each in ends.items() if not any(map(math.isnan, each))}
    return NumberValues(ends=known, limits=limits, step=step, rounding=rounding, weights=weights)


def _weighted(factors: Sequence[float], parts: Sequence[NumberValues]) -> dict[Quantity, float] | None:
    """Return the weights of quantities in a weighted sum of numbers; None if one of these has none."""
    found: dict[Quantity, float] = {}
    for factor, part in zip(factors, parts, strict=True):
        if part.weights is None:
            return None
        for quantity, weight in part.weights.items():
            found[quantity] = found.get(quantity, 0.0) + factor * weight
    return found


def printed_effect(comparison: Comparison, printed: Mapping[tuple[str, CellKey], float]) -> float | None:
    """Return the effect of a comparison in a paper's numbers: left minus right.

    `printed` has the numbers by their metric and the cell of the study that repeats them. As in
    `ComparisonResult`, the margin of the comparison is not part of the effect. Return None if the paper does
    not print one of the numbers. A paper's table has no law and no speedup.
    """

    def values(number: Number) -> NumberValues:
        if isinstance(number, Quantity):
            value = printed.get((number.metric, cell_key(number.cell)))
            return NumberValues(ends={} if value is None else {0: (value, value)})
        if isinstance(number, Extrapolation | Speedup):
            return NumberValues(ends={})
        return combined(number, list(map(values, number_parts(number))), (0,))

    left, right = (values(side).ends.get(0) for side in number_parts(comparison))
    return None if left is None or right is None else left[0] - right[0] + comparison.added


def _minus(left: float, right: float) -> float:
    """Return left minus right; 0 if both are the same infinity."""
    return 0.0 if left == right else left - right


def _quotient(above: Ends, below: Ends) -> Ends | None:
    """Return the lowest and the highest possible value of a quotient; None for a division by 0."""
    if not any(below):
        return None
    is_infinite = above[0] == above[1] and math.isinf(above[0])
    if below[0] < below[1] and (is_infinite or below[0] <= 0 <= below[1]):
        return (-math.inf, math.inf)
    corners = [one / other for one in above for other in below]
    known = [each for each in corners if not math.isnan(each)]  # ∞ / ∞ is between the others
    return (min(known), max(known)) if known else (math.nan, math.nan)


_Group = tuple[str, str, CellKey]
"""A metric, a task with all its settings, and the levels shared by comparable cells."""


class ComparableCells:
    """The cells of a study, grouped by task and its settings.

    A group's cells are used together to estimate a variance; `words_for` says which cells these are. `trials`
    maps each cell to its trials by seed. `value` returns a metric of one trial.
    """

    def __init__(
        self,
        study: Study,
        trials: Mapping[CellKey, Mapping[int, Trial]],
        value: Callable[[str, Trial], float | None],
    ) -> None:
        self._trials, self._value = trials, value
        first = {place: next(iter(each.values())) for place, each in trials.items()}
        self._tasks = {place: trial.settings.task.model_dump_json() for place, trial in first.items()}
        self._is_grid = study.design.is_grid
        self._has_gates = bool(study.gates.held())
        self._pools: dict[Hashable, Pool | None] = {}  # by the arguments of `_values`

    def words_for(self, claim: Claim) -> str:
        """Return which cells a claim's pooled variance is estimated from."""
        cells = "the claim's picked cells" if claim.spec.over else "all cells"
        others = " and the levels that both sides share" if self._is_grid else ", whatever their other levels"
        gates = ", without those behind a gate of the claim" if self._has_gates else ""
        return f"{cells} with the same task{others}{gates}"

    def pool(
        self,
        claim: Claim,
        weights: Mapping[Quantity, float] | None,
        seeds: tuple[int, ...],
        *,
        of_others: bool = False,
    ) -> Pool | None:
        """Estimate how much a weighted sum of quantities varies between seeds, from all comparable cells.

        In a claim with picked levels these are its own cells, since levels that nobody would choose say
        nothing of the chosen ones. With `of_others`, the cells of the sum itself are left out. Return None
        without weights, and with too few values. Logarithms are only comparable with each other. The degrees
        of freedom of a sum of variances are Satterthwaite's (1946).
        """
        if not weights:
            return None

        def task(quantity: Quantity) -> tuple[str, str]:
            return quantity.metric, self._tasks.get(cell_key(quantity.cell), "")

        parts: list[tuple[float, Pool]] = []
        left_out = frozenset(cell_key(each.cell) for each in weights) if of_others else frozenset[CellKey]()
        picked: frozenset[CellKey] | None = None
        if claim.spec.over:
            named = (each for one in claim.comparisons for each in iter_quantities(one))
            picked = frozenset(cell_key(each.cell) for each in named)
        for (metric, settings), members in groupby(sorted(weights, key=task), key=task):
            quantities = list(members)
            # effects that all cells of a seed share drop out only if the weights of a group add up to 0
            if not settings or abs(math.fsum(weights[each] for each in quantities)) > 1e-9:
                return None
            shared: CellKey = frozenset()
            if self._is_grid:
                shared = frozenset.intersection(*(cell_key(each.cell) for each in quantities))
                shared = frozenset(pair for pair in shared if pair[0] not in claim.spec.over)
            group = (metric, settings, shared)
            key = (group, seeds, left_out, picked)
            if key not in self._pools:
                self._pools[key] = pooled_variance(self._values(*key))
            if (pool := self._pools[key]) is None:
                return None
            # a pool has the variance of a difference of two cells
            squares = math.fsum(weights[each] ** 2 for each in quantities)
            parts.append((squares / 2 * pool.variance, pool))
        variance = math.fsum(each for each, _ in parts)
        if not variance:
            return None
        weight = math.fsum(each**2 / pool.degrees for each, pool in parts)
        # rounded down, so that the interval is rather too wide than too narrow
        return Pool(variance=variance, degrees=int(variance**2 / weight))

    def _values(
        self,
        group: _Group,
        seeds: tuple[int, ...],
        left_out: frozenset[CellKey],
        picked: frozenset[CellKey] | None,
    ) -> list[Values]:
        metric, settings, shared = group
        # cells of recipes that do not use a factor share their trials, which count once
        distinct = {
            frozenset(trial.id for trial in trials.values()): trials
            for place, trials in self._trials.items()
            if shared <= place and place not in left_out and self._tasks[place] == settings
            if picked is None or place in picked
        }
        return [
            {
                seed: found
                for seed in seeds
                if seed in trials and (found := self._value(metric, trials[seed])) is not None
            }
            for trials in distinct.values()
        ]
