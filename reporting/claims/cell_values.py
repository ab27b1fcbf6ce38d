"""The values that claims compare, or why they are missing.

There is one for each cell and seed. A trial that belongs to several cells, as with two spellings of one
recipe, has its value in each of them, but counts once for the pooled variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby
from typing import NamedTuple

import polars as pl

from ...studies.catalog.metrics import find_metric, shown_decimals
from ...studies.claims.comparisons import (
    Cell,
    Claim,
    Comparison,
    Constant,
    Extrapolation,
    Number,
    Quantity,
    Quotient,
    Ratio,
    Reduction,
    SignedSum,
    Speedup,
    cell_label,
    iter_quantities,
    number_parts,
)
from ...studies.claims.interim_tests import seeds_at_looks
from ...studies.planning.final_values import (
    ValueStatus,
    cost_per_epoch,
    count_reasons,
    smallest_step,
)
from ...studies.resolve.costs import model_cost, reachable_length
from ...studies.resolve.trial import CellKey, Trial, cell_key
from ...studies.schema.factors import SEED
from ...studies.schema.reported_metrics import final_metrics
from ...studies.study import Study
from ..observe import observe
from ..outcomes import guess_of, has_learnt
from ..statistics.estimates import Interval, mean
from ..statistics.groups import pool_groups
from ..statistics.pooled_differences import Pool, pooled_variance
from ..statistics.speedup import Ends, TargetCosts, log_ratios
from .verdicts import Note

ENDED = {ValueStatus.INFINITE, ValueStatus.FAILED, ValueStatus.DIVERGED, ValueStatus.NO_VALUE}
"""The statuses of trials that will never have a value."""

_VALUED = (ValueStatus.DONE, ValueStatus.INFINITE, ValueStatus.CENSORED)
"""The statuses of trials with a value."""

_LOG = "log "
"""A prefix of a metric's name; the value is then the logarithm of the middle of two evaluations."""


UNBOUNDED: Ends = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberValues:
    """The values of a number in a comparison, by seed.

    `ends` has the lowest and the highest possible value. They differ for a seed with a training that ended
    before it reached a target. A seed is left out if the number is undefined, such as ∞ − ∞, or if a trial
    lacks a value. `limits` are the lowest and the highest value that the number can have, whatever its trials
    give. `step` is the smallest difference that two of its values can have, the largest one of its parts.
    `rounding` is the standard deviation that rounding adds to a value. `weights` are those of quantities if
    the number is a weighted sum of them, up to a constant, such as `a - b`; None for others, such as a
    quotient.
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


class TrialValue(NamedTuple):
    """A trial's value of a metric, or why it has none. Without a trial, there is no status.

    The value of a censored trial is its cost up to its last evaluation; `why` says what it missed.
    """

    value: float | None
    why: str
    status: ValueStatus | None


def _read_values(
    study: Study, metric: str, outcomes: pl.DataFrame, metrics: pl.DataFrame | None
) -> dict[str, TrialValue]:
    """Return each trial's value of a metric, by its id."""
    found = observe(study, study.cells, outcomes, metric, metrics=metrics).select(
        "trial", "value", "status", "why"
    )
    return {
        trial: TrialValue(value if status in _VALUED else None, why, ValueStatus(status))
        for trial, value, status, why in found.iter_rows()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class CellValues(NumberValues):
    """The values of one quantity in one cell, by seed.

    The highest value of a seed that ended before it reached a target is infinite. `remarks` tell of these
    seeds and of diverged seeds, which count with the worst value. `missing` are the seeds without a value,
    which `gaps` tells of. `where` names the cell, and `trials` are those of all seeds. For lengths, `step` is
    the step of the task's curriculum, otherwise one unit of the last printed digit.
    """

    quantity: Quantity
    trials: Mapping[int, Trial]
    gaps: tuple[Note, ...]
    missing: Mapping[int, TrialValue]
    remarks: Mapping[int, str]
    where: str


class CellResults:
    """The results of a study's trials, and the numbers that claims compute from them.

    `trials` has the trials by cell and seed, and `cells` the values of each quantity. `looks` are the seeds
    of each look (interim test), `counts` their numbers, and `every` those of the last look. `outcomes` and
    `metrics` are the store's latest attempts; only metrics with an index are read.
    """

    def __init__(
        self,
        study: Study,
        quantities: Collection[Quantity],
        outcomes: pl.DataFrame,
        metrics: pl.DataFrame | None,
    ) -> None:
        self.seeds, self.pairs_seeds, self._runs = study.seeds, study.pairs_seeds, study.runs
        self.repeats = study.repeats
        self.are_judged = study.runs is not None
        self.tries = (study.runs.settings.tries if study.runs is not None else None) or 1
        self.looks = seeds_at_looks(study.seeds, study.later_seeds)
        self.counts, self.every = tuple(map(len, self.looks)), self.looks[-1]
        self.trials: dict[CellKey, dict[int, Trial]] = {}
        for trial in study.cells:
            self.trials.setdefault(trial.cell, {})[int(trial.levels[SEED])] = trial
        names = {quantity.metric for quantity in quantities}
        self._values = {name: _read_values(study, name, outcomes, metrics) for name in names}
        # a failed training may have an infinite value
        self._largest = {
            name: max(
                (abs(x.value) for x in each.values() if x.value is not None and math.isfinite(x.value)),
                default=0.0,
            )
            for name, each in self._values.items()
        }
        self._observe = partial(_read_values, study, outcomes=outcomes, metrics=metrics)
        self._learning = dict[CellKey, bool | None]()
        self._uncompared = dict[str, Mapping[str, TrialValue]]()
        self._per_epoch = {name: cost_per_epoch(name, outcomes) for name in names}
        self._varied = [name for name, levels in study.design.known_levels.items() if len(levels) > 1]
        self._over_budget = {trial.cell for trial in study.over_budget}
        self.cells = {quantity: self._cell_values(quantity) for quantity in quantities}
        self._numbers: dict[Number, NumberValues] = {**self.cells}
        self.comparable = ComparableCells(study, self)

    def finite_value(self, metric: str, trial: Trial) -> float | None:
        """Return a trial's finite value of a metric or, with the prefix `log `, the logarithm of a cost."""
        name = metric.removeprefix(_LOG)
        value, _, status = self._values[name][trial.id]
        if value is None or status == ValueStatus.CENSORED or not math.isfinite(value):
            return None
        return value if name == metric else math.log(value - self._smallest_step(name, trial) / 2)

    def _smallest_step(self, metric: str, trial: Trial | None) -> float:
        if self._runs is not None:
            return self._runs.step(metric)
        if trial is None:
            return smallest_step(find_metric(metric), None, largest=self._largest[metric])
        per_epoch = self._per_epoch[metric].get(trial.id)
        return smallest_step(find_metric(metric), trial.settings, per_epoch, largest=self._largest[metric])

    def decimals(self, metric: str) -> int:
        """Return how many decimals show the differences between the values of a metric."""
        return shown_decimals(find_metric(metric).decimals, self._largest[metric])

    def trial_ends(self, quantity: Quantity) -> list[tuple[str, float | None]]:
        """Return the status and the value of a cell's trials with the seeds of the file."""
        trials, values = self.trials.get(cell_key(quantity.cell), {}), self._values[quantity.metric]
        found = [values[trials[seed].id] for seed in self.seeds if seed in trials]
        return [(each.status or ValueStatus.NO_VALUE, each.value) for each in found]

    def has_ended(self, trial: Trial) -> bool:
        """Return whether a trial has a value, will never have one, or only needs a probe."""
        found = [values[trial.id] for values in self._values.values() if trial.id in values]
        return any(one.value is not None or one.status in {*ENDED, ValueStatus.PENDING} for one in found)

    def has_learnt(self, place: CellKey) -> bool | None:
        """Return whether any seed of a cell is better than a guess, by any metric; None if it is unknown."""
        trials = self.trials.get(place, {})
        if place not in self._learning and trials and not self.are_judged:
            settings = next(iter(trials.values())).common
            found = set[bool | None]()
            compared = (each.metric for each in self.cells if cell_key(each.cell) == place)
            for name in dict.fromkeys((*final_metrics(settings), *compared)):
                if guess_of(name, settings) is not None:
                    known = self._values[name] if name in self._values else self._guessable(name)
                    values = [known[trial.id].value for trial in trials.values()]
                    found.add(has_learnt(name, settings, [each for each in values if each is not None]))
            self._learning[place] = True if True in found else False if False in found else None
        return self._learning.get(place)

    def _guessable(self, name: str) -> Mapping[str, TrialValue]:
        """Return the values of a metric that no claim compares."""
        if name not in self._uncompared:
            self._uncompared[name] = self._observe(name)
        return self._uncompared[name]

    def label(self, cell: Cell, metric: str) -> str:
        """Return a label with the levels of a cell that vary in the study; the metric if there are none."""
        return cell_label(tuple(pair for pair in cell if pair[0] in self._varied)) or metric

    def values_of(self, number: Number) -> NumberValues:
        """Return the values of a number in a comparison."""
        if number not in self._numbers:
            match number:
                case Extrapolation():
                    found = self._extrapolated(number)
                case Speedup():
                    found = self._speedup(number)
                case _:
                    found = combined(number, list(map(self.values_of, number_parts(number))), self.every)
            self._numbers[number] = found
        return self._numbers[number]

    def _speedup(self, number: Speedup) -> NumberValues:
        fast, slow = (self._target_costs(each) for each in (number.fast, number.slow))
        steps = fast.relative_step, slow.relative_step
        logs = (replace(each, metric=_LOG + each.metric) for each in (number.slow, number.fast))
        return NumberValues(
            ends=log_ratios(fast, slow),
            step=sum(steps),
            rounding=math.hypot(*map(_rounding_sd, steps)),
            weights=dict(zip(logs, (1.0, -1.0), strict=True)),
        )

    def _target_costs(self, quantity: Quantity) -> TargetCosts:
        cell = self.cells[quantity]
        reached = {seed: low for seed, (low, high) in cell.ends.items() if low == high}
        return TargetCosts(
            reached=reached,
            limits={seed: low for seed, (low, _) in cell.ends.items() if seed not in reached},
            resolution={seed: self._smallest_step(quantity.metric, cell.trials[seed]) for seed in reached},
        )

    def _extrapolated(self, number: Extrapolation) -> NumberValues:
        """Extrapolate a larger model's value by a power law, for seeds with a positive value of each size."""
        from ..statistics.power_law import fit_power_law  # noqa: PLC0415 -- loads NumPy

        parts = [self.values_of(part) for _, part in number.parts]
        values = [part.values for part in parts]
        sizes, size = [self._parameters(cell) for cell, _ in number.parts], self._parameters(number.cell)
        ends: dict[int, Ends] = {}
        for seed in self.every:
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

        As in a table of the kind `scaling`, the law is fitted to the geometric means over the seeds. The
        interval is that of a new cell.
        Return None if a smaller size has no value, or one that is not positive.
        """
        from ..statistics.power_law import error_of_means, fit_power_law  # noqa: PLC0415 -- loads NumPy

        points, results = list[tuple[float, float]](), list[list[float]]()
        for cell, part in law.parts:
            found = self.values_of(part).values
            values = list(found.values())
            parameters = self._parameters(cell)
            if parameters is None or not values or not all(0 < value < math.inf for value in values):
                return None
            points.append((parameters, math.exp(mean([math.log(value) for value in values]))))
            results.append(values)
        size, fitted = self._parameters(law.cell), fit_power_law(points, error_of_means(results))
        return None if size is None or fitted is None else fitted.next_cell(size)

    def _parameters(self, cell: Cell) -> float | None:
        trial = next(iter(self.trials.get(cell_key(cell), {}).values()), None)
        return None if trial is None else model_cost("parameters", trial.settings)

    def _cell_values(self, quantity: Quantity) -> CellValues:
        place, metric = cell_key(quantity.cell), find_metric(quantity.metric)
        trials, values = self.trials.get(place, {}), self._values[quantity.metric]
        first = next(iter(trials.values()), None)
        is_refused = place in self._over_budget
        unknown = "exceeds the study's budget" if is_refused else "excluded by the overrides of the study"
        ends, missing, remarks = dict[int, Ends](), dict[int, TrialValue](), dict[int, str]()
        worst = -math.inf if metric.higher_is_better else math.inf
        lowest, highest = metric.bounds
        if metric.steps_with_curriculum:
            has_curriculum = first is not None and first.common.train.curriculum is not None
            highest = float(reachable_length(first.common)) if first and has_curriculum else math.inf
        # runs of another program have the seeds that they have, so that none is missing
        for seed in trials if self._runs is not None or not self.pairs_seeds else self.every:
            trial = trials.get(seed)
            found = values[trial.id] if trial else TrialValue(None, unknown, None)
            if found.value is not None and found.status == ValueStatus.CENSORED:
                # its cost is above that of its last evaluation, even if only by a little
                ends[seed] = (math.nextafter(found.value, math.inf), math.inf)
                remarks[seed] = found.why
            elif found.value is not None:
                ends[seed] = (found.value, found.value)
            elif found.status == ValueStatus.DIVERGED and metric.higher_is_better is not None:
                ends[seed] = (worst, worst)
                remarks[seed] = found.why
            elif seed in self.seeds or found.status in ENDED:
                missing[seed] = found
        where = self.label(quantity.cell, quantity.metric)
        count = len(ends) + len(missing)
        count = max(count, len(self.seeds)) if self._runs is None and self.pairs_seeds else count
        step = self._smallest_step(quantity.metric, first)
        return CellValues(
            quantity=quantity,
            trials=trials,
            ends=ends,
            gaps=count_notes((each.why for each in missing.values()), where, count, self.repeats),
            missing=missing,
            remarks=remarks,
            where=where,
            step=step,
            rounding=_rounding_sd(step),
            weights={quantity: 1.0},
            limits=(lowest, highest),
        )


def count_notes(whys: Iterable[str], where: str, count: int, noun: str) -> tuple[Note, ...]:
    """Return a note for each reason, such as `2 of 3 seeds not run`, with the number of its seeds or runs."""
    of = f" of {count} {noun}s" if count > 1 else f" {noun}"
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


def _rounding_sd(step: float) -> float:
    """Return the standard deviation of the error that rounding to steps adds, from −step/2 to step/2."""
    return step / math.sqrt(12)


def combined(number: Number, parts: Sequence[NumberValues], seeds: Sequence[int]) -> NumberValues:
    """Return the values of a number that is computed from its parts; none of a number without a value.

    The variance of a sum is the sum of its terms' variances; a mean of k values divides it by k². A minimum
    or maximum has the largest variance of its parts. A quotient is approximated linearly at the means of both
    sides, and changes by its step when both sides change by their own.
    """
    steps, roundings = [part.step for part in parts], [part.rounding for part in parts]
    step, rounding, limits = max(steps, default=0.0), math.hypot(*roundings), UNBOUNDED
    shared = [seed for seed in seeds if all(seed in part.ends for part in parts)]
    ends: dict[int, Ends] = {}
    weights: Mapping[Quantity, float] | None = None
    match number:
        case Constant() | Ratio():
            value = number.value if isinstance(number, Constant) else math.log(number.value)
            weights, limits = {}, (value, value)
            ends = dict.fromkeys(seeds, limits)
        case Reduction():
            reduce = _REDUCTIONS[number.function]
            limits = _by_end(reduce, [part.limits for part in parts])
            for seed in seeds:
                # a part without a value is no gap if no value of it could change the minimum or maximum
                low, high = _by_end(reduce, [part.ends.get(seed, part.limits) for part in parts])
                if seed in shared or (low == high and math.isfinite(low)):
                    ends[seed] = low, high
            rounding = rounding / len(parts) if number.function == "mean" else max(roundings)
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
                rounding = math.hypot(above.rounding, ratio * below.rounding) / abs(center)
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


class ComparableCells:
    """The cells of a study, grouped by task and its settings.

    A group's cells are used together to estimate a variance; `words_for` says which cells these are.
    """

    def __init__(self, study: Study, results: CellResults) -> None:
        self._results = results
        first = {place: next(iter(each.values())) for place, each in results.trials.items()}
        self._tasks = {place: trial.settings.task.model_dump_json() for place, trial in first.items()}
        self._places, self._is_grid = frozenset(first), study.design.is_grid
        self._ladder = frozenset(study.design.ladder)
        self._pooled = cache(self._pool_group)

    def words_for(self, claim: Claim) -> str:
        """Return which cells a claim's pooled variance is estimated from."""
        cells = "the claim's picked cells" if claim.spec.over else "all cells"
        if self._results.are_judged:
            return cells
        others = " and the levels that both sides share" if self._is_grid else ", whatever their other levels"
        sizes = " at the sizes that are compared" if self._ladder else ""
        return f"{cells}{sizes} with the same task{others}"

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
        nothing of the chosen ones. On a ladder they are the cells of the compared sizes, so that larger sizes
        change no verdict on smaller ones. With `of_others`, the cells of the sum itself are left out. Return
        None without weights, and with too few values. Logarithms are only comparable with each other. The
        degrees of freedom of a sum of variances are Satterthwaite's (1946).
        """
        if not weights:
            return None
        parts: list[tuple[float, Pool]] = []
        for quantities, pool in self._pools(claim, weights, seeds, of_others=of_others):
            # effects that all cells of a seed share drop out only if the weights of a group add up to 0
            if pool is None or abs(math.fsum(weights[each] for each in quantities)) > 1e-9:
                return None
            # a pool has the variance of a difference of two cells
            length = math.hypot(*(weights[each] for each in quantities))
            parts.append((length / math.sqrt(2) * pool.sd, pool))
        sd = math.hypot(*(each for each, _ in parts))
        if not sd:
            return None
        share = math.fsum((each / sd) ** 4 / pool.degrees for each, pool in parts)
        # rounded down, so that the interval is rather too wide than too narrow
        return Pool(sd=sd, degrees=int(1 / share + 1e-9))

    def value_pools(self, claim: Claim, weights: Mapping[Quantity, float]) -> dict[Quantity, Pool | None]:
        """Estimate how much the runs of each cell vary, from all comparable cells. They are not paired."""
        pools = self._pools(claim, weights, self._results.every)
        return {each: pool for quantities, pool in pools for each in quantities}

    def _pools(
        self,
        claim: Claim,
        weights: Mapping[Quantity, float],
        seeds: tuple[int, ...],
        *,
        of_others: bool = False,
    ) -> Iterator[tuple[list[Quantity], Pool | None]]:
        """Yield the quantities of each metric and task, with the variance of the cells comparable to them."""

        def task(quantity: Quantity) -> tuple[str, str]:
            return quantity.metric, self._tasks.get(cell_key(quantity.cell), "")

        among = self._places
        if claim.spec.over:
            named = (each for one in claim.comparisons for each in iter_quantities(one))
            among = frozenset(cell_key(each.cell) for each in named)
        if self._ladder:
            sizes = {self._size(cell_key(each.cell)) for each in weights}
            among = frozenset(place for place in among if self._size(place) in sizes)
        if of_others:
            among -= {cell_key(each.cell) for each in weights}
        for (metric, settings), members in groupby(sorted(weights, key=task), key=task):
            quantities, shared = list(members), CellKey()
            if self._is_grid:
                shared = frozenset.intersection(*(cell_key(each.cell) for each in quantities))
                shared = frozenset(pair for pair in shared if pair[0] not in claim.spec.over)
            yield quantities, self._pooled(metric, settings, shared, seeds, among) if settings else None

    def _size(self, place: CellKey) -> CellKey:
        """Return the levels of a cell that are its size on the ladder."""
        return frozenset(pair for pair in place if pair[0] in self._ladder)

    def _pool_group(
        self, metric: str, task: str, shared: CellKey, seeds: tuple[int, ...], among: frozenset[CellKey]
    ) -> Pool | None:
        """Estimate the variance of a metric from those cells of a task that have all `shared` levels."""
        # cells of recipes that do not use a factor share their trials, which count once
        distinct = {
            frozenset(trial.id for trial in trials.values()): trials
            for place, trials in self._results.trials.items()
            if shared <= place and place in among and self._tasks[place] == task
        }
        values = [
            {seed: self._results.finite_value(metric, trials[seed]) for seed in seeds if seed in trials}
            for trials in distinct.values()
        ]
        known = [{seed: value for seed, value in each.items() if value is not None} for each in values]
        if self._results.pairs_seeds:
            return pooled_variance(known)
        return pool_groups([list(each.values()) for each in known])
