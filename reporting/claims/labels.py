"""Labels of a claim's comparisons: in full, and short for lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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
    iter_comparisons,
    iter_quantities,
)
from ...studies.claims.reader import CellKey, cell_key
from ...studies.schema.factors import ABSENT, level_key, level_text, named_levels
from ...studies.schema.settings import Level


def full_text(comparison: Comparison, claim: Claim) -> str:
    """Return a comparison as text that parses back to it, without factors that have one level."""
    names = {
        factor: [level_text(level) for level in levels] for factor, levels in claim.varied_factors.items()
    }
    return _LabelWriter(varied=claim.varied_factors, names=names, full=True).comparison(comparison)


def comparison_labels(claim: Claim) -> dict[Comparison, str]:
    """Return a short label for each comparison of a claim: `addition: conv > sa`.

    Levels shared by the whole claim are left out, as are those that follow from others. Levels shared by both
    sides become a prefix, with the metric if a claim has several. If the rest is the same for all
    comparisons, such as `max_length >= 104`, only the prefix is kept. Blocks lose arguments that are equal in
    the whole study; numbers get the name of their factor.
    """
    varied = {
        factor: levels
        for factor, levels in claim.varied_factors.items()
        if factor not in claim.dependent_factors
    }
    names = {factor: named_levels(factor, levels, joint="=") for factor, levels in varied.items()}
    family = list(dict.fromkeys(iter_comparisons(claim.statement)))
    quantities = {comparison: list(iter_quantities(comparison)) for comparison in family}
    claim_levels = _shared_levels(each for parts in quantities.values() for each in parts)
    metrics = {each.metric for parts in quantities.values() for each in parts}
    found: dict[Comparison, tuple[str, str]] = {}
    for comparison, parts in quantities.items():
        shared = _shared_levels(parts)
        metric_in_prefix = len({each.metric for each in parts}) == 1 < len(metrics) and all(
            any(factor in varied for factor, _ in cell_key(each.cell) - shared) for each in parts
        )  # only if levels remain that distinguish the sides
        with_metrics = len(metrics) > 1 and not metric_in_prefix
        writer = _LabelWriter(varied=varied, names=names, omitted=shared, metrics=with_metrics)
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
    """Formatter of comparisons: in full, or short, without the `omitted` levels.

    Only the factors in `varied` are included, by the `names` of their levels, and metrics only if `metrics`.
    """

    varied: Mapping[str, tuple[Level, ...]]
    names: Mapping[str, Iterable[str]]
    omitted: CellKey = frozenset()
    metrics: bool = False
    full: bool = False

    def comparison(self, comparison: Comparison) -> str:
        within = comparison.sign == "within"
        sign = f"within {comparison.margin:g} of" if within else comparison.sign
        return f"{self.number(comparison.left)} {sign} {self.number(comparison.right)}"

    def number(self, number: Number) -> str:  # noqa: PLR0911 -- one return for each kind
        match number:
            case Constant():
                return f"{number.value:g}"
            case Quantity():
                return self._quantity(number)
            case SignedSum():
                return self._total(number)
            case Quotient():
                above, below = self.number(number.numerator), self.number(number.denominator)
                above = f"({above})" if isinstance(number.numerator, SignedSum) else above
                below = f"({below})" if isinstance(number.denominator, SignedSum | Quotient) else below
                return f"{above} / {below}"
            case Reduction():
                return f"{number.function}({', '.join(map(self.number, number.parts))})"
            case Extrapolation():
                return f"law({self.number(number.of)})"
            case Ratio():
                return f"{number.value:g}"
            case Speedup():
                return self._speedup(number)

    def _speedup(self, speedup: Speedup) -> str:
        fast, slow = dict(speedup.fast.cell), dict(speedup.slow.cell)
        factor = next(name for name, level in fast.items() if level_key(level) != level_key(slow[name]))
        both = f"{self._name(factor, fast[factor])} over {self._name(factor, slow[factor])}"
        if not self.full:
            return f"speedup of {both}"
        shared = tuple((name, level) for name, level in speedup.fast.cell if name != factor)
        return f"speedup({both}, {self._quantity(Quantity(speedup.fast.metric, shared))})"

    def _total(self, total: SignedSum) -> str:
        minus = "-" if self.full else "−"
        text = ""
        for sign, term in total.terms:
            inner = self.number(term)
            inner = f"({inner})" if isinstance(term, SignedSum) else inner
            if text:
                text += f" + {inner}" if sign > 0 else f" {minus} {inner}"
            else:
                text = inner if sign > 0 else minus + inner
        return text

    def levels(self, cell: Cell, only: CellKey) -> list[str]:
        """Return the names of those levels of a cell that are in `only`."""
        return [
            self._name(*each)
            for each in cell
            if self._is_named(*each) and (each[0], level_key(each[1])) in only
        ]

    def _quantity(self, quantity: Quantity) -> str:
        """Return a metric in a cell.

        The short form has only its levels, unless there are none or metrics are named.
        """
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
        """Return whether a label names this level; an absent factor follows from the cell's other levels."""
        return factor in self.varied and level != ABSENT

    def _name(self, factor: str, level: Level) -> str:
        known = zip(map(level_key, self.varied[factor]), self.names[factor], strict=True)
        return dict(known)[level_key(level)]
