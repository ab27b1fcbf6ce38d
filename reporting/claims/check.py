"""Checks of claims: tests of comparisons, and verdicts that combine them.

The comparisons of a claim are one family. Hochberg's procedure chooses the level of all tests: the claim's
own level if all are decided at it, else a stricter one. So an `all` is confirmed when each part alone would
be, which needs no correction (Berger 1982). A part that refutes it must pass the stricter level.

A study that may add seeds is tested at several looks, each at its own level. The first look that decides a
comparison counts, and later looks cannot overturn it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from ...studies.catalog.metrics import ANALYTIC_COSTS, find_metric, is_timed
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
    iter_numbers,
    iter_quantities,
    number_parts,
)
from ...studies.resolve.trial import CellKey, cell_key
from ...studies.schema.factors import ABSENT, level_key, level_text, named_levels
from ...studies.schema.settings import Level
from ...studies.study import Study
from ...studies.text.units import format_quantity, plural
from ..outcomes import device_fault
from ..statistics.decided_differences import look_level, p_over_looks
from ..statistics.estimates import hochberg_adjusted, hochberg_threshold
from .cell_values import CellResults, NumberValues
from .hypothesis_test import PairedTest, paired_test
from .verdicts import (
    OPEN,
    ClaimError,
    ClaimResult,
    ComparisonResult,
    Note,
    Verdict,
    judge,
)

WIDER = 3.0
"""A note says so if compared cells vary this many times as much as the others, or the others as much more."""


def check_claims(
    study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None = None
) -> tuple[ClaimResult, ...]:
    """Check each claim of a study, in file order.

    `study` comes from `with_later_seeds`, and `outcomes` are its known outcomes. `metrics` are the metrics of
    its trials in the store, which are needed only if `needs_metrics(study)`. Raises ClaimError if trainings
    with a time budget ran on several devices, or cells of several devices are compared by their time.
    """
    return tuple(
        check_claim(claim, results, small=study.header.small)
        for claim, results in results_of_claims(study, outcomes, metrics)
    )


def _device_fault(study: Study, outcomes: pl.DataFrame) -> str:
    comparisons = (each for claim in study.claims for each in claim.comparisons)
    timed = (tuple(one for one in iter_quantities(each) if is_timed(one.metric)) for each in comparisons)
    for quantities in dict.fromkeys(((), *timed)):
        names, cells = [each.metric for each in quantities], {cell_key(each.cell) for each in quantities}
        if fault := device_fault(study, outcomes, names, lambda trial, own=cells: trial.cell in own):
            return fault
    return ""


def results_of_claims(
    study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None
) -> Iterator[tuple[Claim, CellResults]]:
    """Yield each claim with the results of the cells that may decide it, its picked cells chosen by them.

    If a claim opens a gate, the cells that this gate or a later one holds back are left out, since their
    results must not change the claim's verdict. The arguments and the error are those of `check_claims`.
    """
    if study.claims and (fault := _device_fault(study, outcomes)):
        raise ClaimError(fault)
    gates = study.gates
    stages = [gates.first_gate(claim.spec.name) for claim in study.claims]
    made: dict[int | None, CellResults] = {}
    for stage in dict.fromkeys(stages):
        claims = (claim for claim, each in zip(study.claims, stages, strict=True) if each == stage)
        quantities = {each for claim in claims for each in claim.quantities}
        cells = study if stage is None else gates.without_held(study, stage)
        made[stage] = CellResults(cells, quantities, outcomes, metrics)
    for claim, stage in zip(study.claims, stages, strict=True):
        yield made[stage].with_picks(claim), made[stage]


def needs_metrics(study: Study) -> bool:
    """Return whether a claim uses an index, as in `bleu[10-20]`, which only the metric history has."""
    return any("[" in each.metric for claim in study.claims for each in claim.quantities)


def check_claim(claim: Claim, results: CellResults, *, small: bool) -> ClaimResult:
    """Check one claim by the results of its cells. `small` marks a paper's claim in a smaller study."""
    family = claim.comparisons
    tests = {each: comparison_tests(each, claim, results, len(family)) for each in family}
    # without the comparisons that hold, or fail, without a test
    firsts = {each: looked[0] for each, looked in tests.items()}
    tested = [each for each, one in firsts.items() if not (one.exact or (one.at_bound and one.inside))]
    alpha, counts = 1 - claim.spec.level, tuple(map(len, results.looks))
    over_looks = [p_over_looks(counts, min(test.p for test in tests[each])) for each in tested]
    threshold = look_level(counts, hochberg_threshold(over_looks, alpha))
    shown = {
        each: next(
            (test for test in found if test.complete and test.p <= threshold and not claim.uses_last_look),
            found[-1],
        )
        for each, found in tests.items()
    }  # the test at the first look that decides a comparison, or at the last look
    verdicts = {
        each: _verdict(test, threshold) if results.has_begun(each) else Verdict.NOT_RUN
        for each, test in shown.items()
    }
    adjusted = hochberg_adjusted([p_over_looks(counts, shown[each].p) for each in tested])
    p_values = dict(zip(tested, adjusted, strict=True))
    labels = comparison_labels(claim)
    needed = {
        each: test.needed(1 - threshold) if verdicts[each] in OPEN else None for each, test in shown.items()
    }
    doubts = {each: test.p if test.inside else 2 - test.p for each, test in shown.items()}
    judged = judge(claim.statement, verdicts, doubts, needed)
    findings = {
        each: ComparisonResult(
            text=full_text(each, claim),
            label=labels[each],
            verdict=verdicts[each],
            effect=_shown(test.effect, each),
            interval=_shown_interval(test.interval(1 - threshold), each),
            bounds=test.bounds and (_shown(test.bounds[0], each), _shown(test.bounds[1], each)),
            p=p_values.get(each) if test.complete and test.n > 1 and not test.at_bound else None,
            test=None if test.exact or test.at_bound or not test.complete or test.n < 2 else test.method,
            n=test.n,
            degrees=test.degrees if test.method in {"pooled", "t"} else None,
            needed=needed[each],
            decimals=_decimals(each),
            unit=_unit(each),
            is_ratio=each.is_ratio,
            added=each.added,
            tested_for=_tested_for(each),
            gaps=results.gaps(each),
            notes=(
                *results.notes(each, claim),
                *_notes(test, results.saturation(each), labels[each], verdicts[each], judged.verdict),
                *_doubts_of_pool(each, claim, results, test, {verdicts[each], judged.verdict}),
            ),
            decides_part=each in judged.parts,
        )
        for each, test in shown.items()
    }
    return ClaimResult(
        spec=claim.spec,
        verdict=judged.verdict,
        findings=tuple(findings.values()),
        deciding=findings[judged.deciding],
        level=1 - threshold,
        level_of_look=1 - look_level(counts, alpha),
        looks=counts,
        needed=judged.needed if judged.verdict in OPEN else None,
        seeds=len(results.seeds),
        comparable_words=results.comparable.words_for(claim),
        small=small and bool(claim.spec.source),
    )


def _notes(
    test: PairedTest, bound: str | None, label: str, own: Verdict, of_claim: Verdict
) -> Iterator[Note]:
    """Yield notes on what a test shows of a comparison besides its numbers.

    They are on an effect without a bound, on values that are all at a `bound`, which more seeds do not
    change, and on other cells that widen its interval.
    """
    if test.bounds == (None, None) and test.is_unknown:
        yield Note(where="target", what="not reached by either side")
    elif test.bounds == (None, None) and test.n:
        yield Note(where="effect", what="no bound, as trainings of both sides missed the target")
    if bound is not None:
        easier = (
            "fewer epochs, or steps_to a value," if bound == "largest" else "an easier task or more epochs"
        )
        advice = f", so more seeds do not help; {easier} may show a difference" if own in OPEN else ""
        what = f"all values of {plural(test.n, 'seed')} at the {bound} possible value{advice}"
        yield Note(where=label, what=what)
    is_wider = test.own_spread and test.spread and test.spread > WIDER * test.own_spread
    if is_wider and own in OPEN and of_claim in OPEN:
        yield Note(kind="spread", where="spread", what=f"other cells vary over {WIDER:g} times as much")


def _doubts_of_pool(
    comparison: Comparison,
    claim: Claim,
    results: CellResults,
    test: PairedTest,
    verdicts: Collection[Verdict],
) -> Iterator[Note]:
    """Yield a note if a claim is decided by a pooled test of cells that vary far more than all others."""
    own = test.own_spread
    if own is None or test.spread is None or own < test.spread or any(each in OPEN for each in verdicts):
        return  # with calmer other cells, the own spread is above the pooled one
    weights = _difference(comparison, results).weights
    seeds = next((each for each in results.looks if len(each) == test.n), results.looks[-1])
    others = results.comparable.pool(claim, weights, seeds, of_others=True)
    if others is not None and own > WIDER * math.sqrt(others.variance):
        yield Note(kind="spread", where="spread", what=f"other cells vary less than 1 / {WIDER:g} as much")


def _difference(comparison: Comparison, results: CellResults) -> NumberValues:
    return results.values_of(SignedSum(((1, comparison.left), (-1, comparison.right))))


def comparison_tests(
    comparison: Comparison, claim: Claim, results: CellResults, family: int
) -> list[PairedTest]:
    """Return the tests of a comparison, one for each look (interim test).

    A look adds seeds. Later looks are included as long as all their seeds have values. Costs that are
    computed, not measured, are exact. If all values are at a bound, there is a single look at all of them.
    """
    names = {each.metric for each in iter_quantities(comparison)}
    found: list[PairedTest] = []
    left, right = map(results.values_of, number_parts(comparison))
    both, pool = _difference(comparison, results), results.comparable.pool
    complete = not results.gaps(comparison)
    alpha = look_level(tuple(map(len, results.looks)), 1 - claim.spec.level)
    at_bound = results.saturation(comparison) is not None
    known = tuple(results.differences(comparison, results.looks[-1]))
    for seeds in (known,) if at_bound else results.looks:
        differences, censored = results.differences(comparison, seeds), results.is_censored(comparison, seeds)
        sides = [(left.ends[seed], right.ends[seed]) for seed in differences]
        if found and len(differences) < len(seeds):
            break
        found.append(
            paired_test(
                differences={seed: low for seed, (low, _) in differences.items()},
                highest={seed: high for seed, (_, high) in differences.items()} if censored else None,
                region=comparison.accepted_range(both.step),
                rounding_sd=math.sqrt(both.rounding),
                test=claim.spec.test,
                complete=complete,
                exact=bool(names) and names <= set(ANALYTIC_COSTS),
                ties=sum(one == other and all(map(math.isinf, one)) for one, other in sides),
                at_bound=at_bound,
                pool=pool(claim, both.weights, seeds) if claim.spec.test == "pooled" else None,
                family=family,
                alpha=alpha,
            )
        )
    return found


def _verdict(test: PairedTest, threshold: float) -> Verdict:
    if not test.complete or test.p > threshold:
        return Verdict.UNDECIDED
    return Verdict.CONFIRMED if test.inside else Verdict.REFUTED


def _shown(difference: float | None, comparison: Comparison) -> float | None:
    """Return the effect to display: left minus right, or a speedup as a ratio.

    A number that the comparison adds, as in `a > b + 0.01`, is not subtracted. A speedup is tested as a
    difference of logarithms.
    """
    if difference is None:
        return None
    if not comparison.is_ratio:
        return difference + comparison.added
    ratio = math.inf if difference == math.inf else math.exp(difference)
    return ratio * comparison.right.value if isinstance(comparison.right, Ratio) else ratio


def _shown_interval(
    interval: tuple[float, float] | None, comparison: Comparison
) -> tuple[float, float] | None:
    low, high = (_shown(end, comparison) for end in interval or (None, None))
    return None if low is None or high is None else (low, high)


_SIGN_WORDS = {">": "more than", "<": "less than", ">=": "at least", "<=": "at most", "==": "exactly"}


def _tested_for(comparison: Comparison) -> str:
    """Describe the number in a comparison: `tested for more than 0.01` or `difference from 0.5`; else ""."""
    unit, right = _unit(comparison), comparison.right
    is_from = isinstance(right, Constant) and comparison.subtracts_constant
    value = right.value if isinstance(right, Constant) and is_from else comparison.added
    if not value:
        return ""
    number = format_quantity(value, unit) if unit else f"{value:g}".replace("-", "−")
    if is_from:
        return f"difference from {number}"
    words = _SIGN_WORDS.get(comparison.sign)
    return f"tested for {words} {number}" if words else f"tested for {number} ± {comparison.margin:g}"


def _decimals(comparison: Comparison) -> int:
    if comparison.is_ratio:
        return 2
    known = max((find_metric(each.metric).decimals for each in iter_quantities(comparison)), default=1)
    return max(known, 3) if any(isinstance(each, Quotient) for each in iter_numbers(comparison)) else known


def _unit(comparison: Comparison) -> str:
    """Return the unit of a comparison's effect; empty if its numbers have no unit or different units."""
    if comparison.is_ratio or any(isinstance(each, Quotient) for each in iter_numbers(comparison)):
        return ""
    units = {find_metric(each.metric).unit for each in iter_quantities(comparison)}
    return units.pop() if len(units) == 1 else ""


def full_text(comparison: Comparison, claim: Claim) -> str:
    """Return a comparison as text that can be parsed again. Factors with a single level are left out."""
    names = {
        factor: {level_key(level): level_text(level) for level in levels}
        for factor, levels in claim.varied_factors.items()
    }
    return _LabelWriter(names=names, full=True).comparison(comparison)


def comparison_labels(claim: Claim) -> dict[Comparison, str]:
    """Return short labels for the comparisons of a claim, such as `addition: conv > sa`.

    Levels that the whole claim shares are left out, and so are levels that follow from other levels. Levels
    that both sides share become a prefix; it includes the metric if the claim has several metrics. If the
    rest is the same for all comparisons, such as `max_length >= 104`, only the prefix is kept. Blocks lose
    arguments that are equal in the whole study; numbers get the name of their factor.
    """
    names = {
        factor: dict(zip(map(level_key, levels), named_levels(factor, levels, joint="="), strict=True))
        for factor, levels in claim.varied_factors.items()
        if factor not in claim.dependent_factors
    }
    quantities = {comparison: list(iter_quantities(comparison)) for comparison in claim.comparisons}
    claim_levels = _shared_levels(each for parts in quantities.values() for each in parts)
    metrics = {each.metric for parts in quantities.values() for each in parts}
    found: dict[Comparison, tuple[str, str]] = {}
    for comparison, parts in quantities.items():
        shared = _shared_levels(parts)
        metric_in_prefix = len({each.metric for each in parts}) == 1 < len(metrics) and all(
            any(factor in names for factor, _ in cell_key(each.cell) - shared) for each in parts
        )  # otherwise nothing would distinguish the two sides
        with_metrics = len(metrics) > 1 and not metric_in_prefix
        writer = _LabelWriter(names=names, omitted=shared, metrics=with_metrics)
        prefix = writer.levels(parts[0].cell, shared - claim_levels) if parts else []
        prefix += [parts[0].metric] if metric_in_prefix else []
        found[comparison] = (", ".join(prefix), writer.comparison(comparison))
    same_rest = len({rest for _, rest in found.values()}) == 1
    return {
        comparison: prefix if prefix and same_rest else f"{prefix}: {rest}" if prefix else rest
        for comparison, (prefix, rest) in found.items()
    }


def _shared_levels(quantities: Iterable[Quantity]) -> CellKey:
    cells = [cell_key(each.cell) for each in quantities]
    return frozenset.intersection(*cells) if cells else frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class _LabelWriter:
    """Writer of comparisons as text.

    The text is full, or a short label without the levels in `omitted`. Only the factors in `names` are
    included, with the names of their levels (by `level_key`). Metrics are included if `metrics` is set.
    """

    names: Mapping[str, Mapping[str, str]]
    omitted: CellKey = frozenset()
    metrics: bool = False
    full: bool = False

    def comparison(self, comparison: Comparison) -> str:
        within = comparison.sign == "within"
        sign = f"within {comparison.margin:g} of" if within else comparison.sign
        return f"{self.number(comparison.left)} {sign} {self.number(comparison.right)}"

    def number(self, number: Number) -> str:  # noqa: PLR0911 -- one return for each kind
        match number:
            case Constant() | Ratio():
                return f"{number.value:g}"
            case Quantity():
                return self._quantity(number)
            case Picked():
                return self._quantity(Quantity(number.metric, number.shared_levels))
            case SignedSum():
                text, minus = "", "-" if self.full else "−"
                for sign, term in number.terms:
                    inner = self.number(term)
                    inner = f"({inner})" if isinstance(term, SignedSum) else inner
                    if text:
                        text += f" {'+' if sign > 0 else minus} {inner}"
                    else:
                        text = inner if sign > 0 else minus + inner
                return text
            case Quotient():
                above, below = self.number(number.numerator), self.number(number.denominator)
                above = f"({above})" if isinstance(number.numerator, SignedSum) else above
                below = f"({below})" if isinstance(number.denominator, SignedSum | Quotient) else below
                return f"{above} / {below}"
            case Reduction():
                return f"{number.function}({', '.join(map(self.number, number.parts))})"
            case Extrapolation():
                return f"law({self.number(number.of)})"
            case Speedup():
                fast, slow = dict(number.fast.cell), dict(number.slow.cell)
                factor = next(name for name in fast if level_key(fast[name]) != level_key(slow[name]))
                both = f"{self._name(factor, fast[factor])} over {self._name(factor, slow[factor])}"
                if not self.full:
                    return f"speedup of {both}"
                shared = tuple(pair for pair in number.fast.cell if pair[0] != factor)
                return f"speedup({both}, {self._quantity(Quantity(number.fast.metric, shared))})"

    def levels(self, cell: Cell, only: CellKey) -> list[str]:
        return [
            self._name(*each)
            for each in cell
            if self._is_named(*each) and (each[0], level_key(each[1])) in only
        ]

    def _quantity(self, quantity: Quantity) -> str:
        """Write a metric in a cell; in short only its levels, unless it has none or metrics are named."""
        kept = [
            (factor, level)
            for factor, level in quantity.cell
            if self._is_named(factor, level) and (factor, level_key(level)) not in self.omitted
        ]
        if self.full:
            inside = ", ".join(f"{factor}={self._name(factor, level)}" for factor, level in kept)
            name, bracket, index = quantity.metric.removesuffix("]").partition("[")
            return f"{name}[{', '.join(filter(None, (index, inside)))}]" if bracket or inside else name
        inside = ", ".join(self._name(factor, level) for factor, level in kept)
        if not inside:
            return quantity.metric
        return f"{quantity.metric} of {inside}" if self.metrics else inside

    def _is_named(self, factor: str, level: Level) -> bool:
        """Return whether labels name a level: its cell has the factor, and other cells another level."""
        return factor in self.names and level != ABSENT

    def _name(self, factor: str, level: Level) -> str:
        return self.names[factor][level_key(level)]
