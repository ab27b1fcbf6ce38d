"""Aliases of a two-level design: effects with the same contrasts, or nearly so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from .fractions import Row

Effect = tuple[int, ...]
"""The numbers of its factors: one of a main effect, two of an interaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aliases:
    """The aliases of main effects and two-factor interactions, up to their signs.

    `groups` has effects of equal contrasts, each group that has more than one; `partial` each size of the
    correlations between a main effect and an interaction that is neither 0 nor 1, with how many have it.
    """

    groups: tuple[tuple[Effect, ...], ...]
    partial: tuple[tuple[Fraction, int], ...]

    @property
    def mains(self) -> tuple[tuple[Effect, ...], ...]:
        """The groups with a main effect."""
        return tuple(group for group in self.groups if len(group[0]) == 1)

    @property
    def interactions(self) -> tuple[tuple[Effect, ...], ...]:
        """The groups of interactions alone."""
        return tuple(group for group in self.groups if len(group[0]) > 1)


def find_aliases(rows: Sequence[Row]) -> Aliases:
    """Return the aliases in these runs of factors with two levels, 0 and 1."""
    factors = range(len(rows[0]))
    contrasts = [_bits(row[factor] for row in rows) for factor in factors]
    whole, groups = (1 << len(rows)) - 1, dict[int, list[Effect]]()
    for effect in [*((each,) for each in factors), *combinations(factors, 2)]:
        contrast = _contrast(contrasts, effect)
        groups.setdefault(min(contrast, contrast ^ whole), []).append(effect)
    sizes: dict[Fraction, int] = {}
    for main in factors:
        for pair in combinations(factors, 2):
            differing = (contrasts[main] ^ _contrast(contrasts, pair)).bit_count()
            size = abs(1 - 2 * Fraction(differing, len(rows)))
            if main not in pair and 0 < size < 1:
                sizes[size] = sizes.get(size, 0) + 1
    return Aliases(
        groups=tuple(tuple(group) for group in groups.values() if len(group) > 1),
        partial=tuple(sorted(sizes.items(), reverse=True)),
    )


def _contrast(contrasts: Sequence[int], effect: Effect) -> int:
    total = 0
    for factor in effect:
        total ^= contrasts[factor]
    return total


def _bits(levels: Iterator[int]) -> int:
    """Return the levels of all runs as the bits of a number."""
    return int("".join(map(str, levels)), 2)
