"""The number of architectures in a space, and of those within a budget."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

_SCIENTIFIC_FROM = 10**12  # from here on a number is shown by its first digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Cardinality:
    """The number of architectures in a space.

    `forms` counts those that differ by more than the real numbers in them: each range of real numbers
    counts as one value. Without such ranges forms are architectures. A count that is not `exact` is an
    upper bound.
    """

    forms: int
    infinite: bool = False
    exact: bool = True

    @property
    def members(self) -> int | None:
        """The number of architectures; None where there is no end of them."""
        return None if self.infinite else self.forms

    def __str__(self) -> str:
        most = "" if self.exact else "at most "
        if self.infinite:
            return f"infinitely many architectures of {most}{_format_count(self.forms, 'form')}"
        return f"{most}{_format_count(self.forms, 'architecture')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetShare:
    """The share of a space that is within a budget, and the number of its architectures.

    A share that is not `exact` was estimated from `drawn` members; `error` is its standard error.
    """

    total: Cardinality
    share: float
    within: int | None = None
    samples: int = 0
    standard_error: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether every member was checked."""
        return not self.samples

    def __str__(self) -> str:
        if self.exact:
            return f"{self.within:,} of {self.total} are within the budget"
        share = f"{self.share:.1%} ± {self.standard_error:.1%}"
        if self.within is None:
            return f"{self.total}: {share} are within the budget, from {self.samples:,} draws"
        within = f"about {Decimal(self.within):.2g} of {self.total} are within the budget"
        return f"{within}: {share}, from {self.samples:,} draws"


def _format_count(count: int, noun: str) -> str:
    """Return `1 form`, `39 forms`, `1.27e+30 forms`."""
    number = f"{count:,}" if count < _SCIENTIFIC_FROM else f"{Decimal(count):.3g}"
    return f"{number} {noun}{'' if count == 1 else 's'}"
