"""Checks of claims: tests of comparisons, and verdicts that combine them.

The comparisons of a claim are one family. Hochberg's procedure chooses the level of all tests: the claim's
own level if all are decided at it, else a stricter one. So an `all` is confirmed when each part alone would
be, which needs no correction (Berger 1982). A part that refutes it must pass the stricter level.

A study that may add seeds is tested at several looks, each at its own level. The first look that decides a
comparison counts, and later looks cannot overturn it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
)
from ...studies.resolve.trial import CellKey, cell_key
from ...studies.schema.factors import ABSENT, level_key, level_text, named_levels
from ...studies.schema.settings import Level
from ...studies.study import Study
from ...studies.text.units import format_quantity
from ..outcomes import device_fault
from ..statistics.estimates import hochberg_adjusted, hochberg_threshold
from ..statistics.look_levels import look_level, p_over_looks
from .cell_values import CellResults
from .checked_comparison import CheckedComparison, notes_on_cells, notes_on_test, with_picks
from .verdicts import OPEN, ClaimError, ClaimResult, ComparisonResult, Judgement, Verdict, judge


def check_claims(
    study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None = None
) -> tuple[ClaimResult, ...]:
    """Check each claim of a study, in file order.

    `study` comes from `with_later_seeds`, and `outcomes` are its known outcomes. `metrics` are the metrics of
    its trials in the store, which only metrics with an index need. Raises ClaimError if trainings
    with a time budget ran on several devices, or cells of several devices are compared by their time.
    """
    checked = checked_comparisons(study, outcomes, metrics)
    return tuple(judge_claim(claim, own, study) for claim, own in checked)


def _device_fault(study: Study, outcomes: pl.DataFrame) -> str:
    comparisons = (each for claim in study.claims for each in claim.comparisons)
    timed = (tuple(one for one in iter_quantities(each) if is_timed(one.metric)) for each in comparisons)
    for quantities in dict.fromkeys(((), *timed)):
        names, cells = [each.metric for each in quantities], {cell_key(each.cell) for each in quantities}
        if fault := device_fault(study, outcomes, names, lambda trial, own=cells: trial.cell in own):
            return fault
    return ""


def checked_comparisons(
    study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None
) -> Iterator[tuple[Claim, list[CheckedComparison]]]:
    """Yield each claim, its picked cells chosen by the results, and its comparisons with their results.

    The arguments and the error are those of `check_claims`.
    """
    if study.claims and (fault := _device_fault(study, outcomes)):
        raise ClaimError(fault)
    quantities = {each for claim in study.claims for each in claim.quantities}
    results = CellResults(study, quantities, outcomes, metrics)
    for written in study.claims:
        claim, picks = with_picks(written, results)
        yield claim, [CheckedComparison(each, claim, results, picks) for each in claim.comparisons]


def judge_claim(claim: Claim, checked: Sequence[CheckedComparison], study: Study) -> ClaimResult:
    """Judge a claim of a study by its comparisons."""
    results, family = checked[0].results, claim.comparisons
    counts, alpha = results.counts, (1 - claim.spec.level) / results.tries
    smallest = [min(test.p for test in each.tests) for each in checked if not each.tests[0].is_certain]
    threshold = look_level(counts, hochberg_threshold([p_over_looks(counts, p) for p in smallest], alpha))
    level, own = 1 - threshold, [each.judge(threshold) for each in checked]
    judged = judge(claim.statement, dict(zip(family, own, strict=True)))
    tested = [one.test.p for one in own if not one.test.is_certain]
    adjusted = (
        min(1.0, results.tries * p) for p in hochberg_adjusted([p_over_looks(counts, p) for p in tested])
    )
    findings = tuple(
        _finding(each, one, judged, label, level, p=None if one.test.is_certain else next(adjusted))
        for each, one, label in zip(checked, own, comparison_labels(claim).values(), strict=True)
    )
    read = {cell_key(each.cell) for each in claim.quantities if each.metric not in ANALYTIC_COSTS}
    fitted = [each.name for each in study.fitted if read & {cell_key(one.cell) for one in each.cells}]
    verdict = Verdict.FITTED if fitted and judged.verdict is Verdict.CONFIRMED else judged.verdict
    return ClaimResult(
        spec=claim.spec,
        verdict=verdict,
        fitted=tuple(fitted),
        findings=findings,
        deciding=findings[family.index(judged.deciding)],
        level=level,
        level_of_look=1 - look_level(counts, alpha),
        looks=counts,
        needed=judged.needed if verdict in OPEN else None,
        seeds=len(results.seeds),
        comparable_words=results.comparable.words_for(claim),
        small=study.header.small and bool(claim.spec.source),
    )


def _finding(
    checked: CheckedComparison, own: Judgement, whole: Judgement, label: str, level: float, *, p: float | None
) -> ComparisonResult:
    """Return the result of a comparison of a `whole` claim, with its adjusted p and its interval."""
    comparison, test = checked.comparison, own.test
    interval, bounds = test.interval(level), test.bounds or (None, None)
    least, most = (None if end is None else _shown(end, comparison) for end in bounds)
    is_tested = test.complete and test.n > 1 and not test.at_bound
    notes = (*notes_on_cells(checked), *notes_on_test(checked, own, label, whole.verdict))
    return ComparisonResult(
        text=full_text(comparison, checked.claim),
        label=label,
        verdict=own.verdict,
        effect=None if test.effect is None else _shown(test.effect, comparison),
        interval=interval and (_shown(interval[0], comparison), _shown(interval[1], comparison)),
        bounds=test.bounds and (least, most),
        p=p if is_tested else None,
        test=test.method if is_tested and not test.exact else None,
        n=test.n,
        degrees=test.degrees if test.method in {"pooled", "t"} else None,
        needed=own.needed,
        decimals=_decimals(comparison, checked.results),
        unit=_unit(comparison),
        is_ratio=comparison.is_ratio,
        added=comparison.added,
        tested_for=_tested_for(comparison),
        gaps=checked.gaps,
        notes=tuple(dict.fromkeys(notes)),
        at_bound=test.at_bound,
        decides_part=comparison in whole.parts,
        groups=test.groups,
    )


def _shown(difference: float, comparison: Comparison) -> float:
    """Return the effect to display: left minus right, or a speedup as a ratio.

    A number that the comparison adds, as in `a > b + 0.01`, is not subtracted. A speedup is tested as a
    difference of logarithms.
    """
    if not comparison.is_ratio:
        return difference + comparison.added
    ratio = math.inf if difference == math.inf else math.exp(difference)
    return ratio * comparison.right.value if isinstance(comparison.right, Ratio) else ratio


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


def _decimals(comparison: Comparison, results: CellResults) -> int:
    if comparison.is_ratio:
        return 2
    known = max((results.decimals(each.metric) for each in iter_quantities(comparison)), default=1)
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
                    first = "" if sign > 0 else minus
                    text += (f" {first or '+'} " if text else first) + inner
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
