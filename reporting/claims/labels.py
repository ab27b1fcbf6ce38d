"""What the comparisons of a claim are called: in full, and short beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...studies.claims.comparisons import (
    Comparison,
    Constant,
    MissingQuantity,
    Number,
    Quantity,
    Reduction,
    SignedSum,
    iter_comparisons,
    iter_quantities,
)
from ...studies.claims.scope import Cell
from ...studies.claims.spec import Claim
from ...studies.schema.design import level_key
from ...studies.schema.level_names import level_text, short_level_names
from ...studies.schema.settings import Level

Selectors = frozenset[tuple[str, object]]
"""Factors with their levels."""


def full_text(comparison: Comparison, claim: Claim) -> str:
    """A comparison as a claim could write it: read again, it is the same comparison.

    Factors of one level are left out.
    """
    names = {
        factor: [level_text(level) for level in levels] for factor, levels in claim.varied_factors.items()
    }
    return _LabelWriter(varied=claim.varied_factors, names=names, full=True).comparison(comparison)


def comparison_labels(claim: Claim) -> dict[Comparison, str]:
    """A short name for each comparison of a claim: `addition: conv > sa`.

    Levels that the whole claim shares are left out, and those that follow from others; what both sides share
    stands in front, the metric too where a claim has several. Where what is left behind these is the same for
    all, as `max_length >= 104`, it is left out too. Blocks lose the arguments that they have wherever they
    stand in the study; numbers have the name of their factor.
    """
    varied = {
        factor: levels
        for factor, levels in claim.varied_factors.items()
        if factor not in claim.dependent_factors
    }
    names = {factor: _factor_level_names(factor, levels) for factor, levels in varied.items()}
    family = list(dict.fromkeys(iter_comparisons(claim.statement)))
    everywhere = _shared(each for one in family for each in _quantities(one))
    metrics = {each.metric for one in family for each in _quantities(one)}
    found: dict[Comparison, tuple[str, str]] = {}
    for one in family:
        parts = _quantities(one)
        here = _shared(parts)
        shared = len({each.metric for each in parts}) == 1 < len(metrics) and all(
            any(factor in varied for factor, _ in _selectors(each.cell) - here) for each in parts
        )  # the metric, where levels are left to tell the sides apart
        several = len(metrics) > 1 and not shared
        writer = _LabelWriter(varied=varied, names=names, omitted=here, metrics=several)
        front = writer.levels(parts[0].cell, here - everywhere) if parts else []
        front += [parts[0].metric] if shared else []
        found[one] = (", ".join(front), writer.comparison(one))
    alike = len({rest for _, rest in found.values()}) == 1
    return {
        one: front if front and alike else f"{front}: {rest}" if front else rest
        for one, (front, rest) in found.items()
    }


def _factor_level_names(factor: str, levels: Sequence[Level]) -> tuple[str, ...]:
    """The short names of a factor's levels, those that are no text with the factor's: `N=16`."""
    texts = short_level_names(levels)
    if all(isinstance(level, str) for level in levels):
        return texts
    return tuple(f"{factor}={text}" for text in texts)


def _quantities(comparison: Comparison) -> list[Quantity]:
    return [*iter_quantities(comparison.left), *iter_quantities(comparison.right)]


def _shared(parts: Iterable[Quantity]) -> Selectors:
    """The levels that all quantities have."""
    held = [_selectors(each.cell) for each in parts]
    return frozenset.intersection(*held) if held else frozenset()


def _selectors(cell: Cell) -> Selectors:
    return frozenset((factor, level_key(level)) for factor, level in cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LabelWriter:
    """One way to write comparisons: in full, or with `names` for the levels, some of them left out.

    `varied` are the factors that are named at all, `metrics` says whether the metrics are.
    """

    varied: Mapping[str, tuple[Level, ...]]
    names: Mapping[str, Iterable[str]]
    omitted: Selectors = frozenset()
    metrics: bool = False
    full: bool = False

    def comparison(self, one: Comparison) -> str:
        """`left > right`, `left within 1 of right`."""
        sign = f"within {one.margin:g} of" if one.sign == "within" else one.sign
        return f"{self.number(one.left)} {sign} {self.number(one.right)}"

    def number(self, number: Number) -> str:
        """A number."""
        match number:
            case Constant():
                return f"{number.value:g}"
            case MissingQuantity():
                return number.text
            case Quantity():
                return self._quantity(number)
            case SignedSum():
                return self._total(number)
            case Reduction():
                return f"{number.function}({', '.join(map(self.number, number.parts))})"

    def _total(self, total: SignedSum) -> str:
        """Terms with their signs, sums among them in parentheses."""
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

    def levels(self, cell: Cell, only: Selectors) -> list[str]:
        """The names of a cell's levels that are among these."""
        return [
            self._name(*each)
            for each in cell
            if each[0] in self.varied and (each[0], level_key(each[1])) in only
        ]

    def _quantity(self, quantity: Quantity) -> str:
        """A metric in a cell; its levels alone where they say enough."""
        held = [each for each in quantity.cell if each[0] in self.varied]
        kept = [each for each in held if (each[0], level_key(each[1])) not in self.omitted]
        if self.full:
            inside = ", ".join(f"{factor}={self._name(factor, level)}" for factor, level in kept)
            name, bracket, index = quantity.metric.removesuffix("]").partition("[")
            return f"{name}[{', '.join(filter(None, (index, inside)))}]" if bracket or inside else name
        inside = ", ".join(self._name(factor, level) for factor, level in kept)
        if not inside:
            return quantity.metric
        return f"{quantity.metric} of {inside}" if self.metrics else inside

    def _name(self, factor: str, level: Level) -> str:
        """A level as it is called here."""
        known = zip(map(level_key, self.varied[factor]), self.names[factor], strict=True)
        return dict(known)[level_key(level)]
