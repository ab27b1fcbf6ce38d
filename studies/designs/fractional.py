"""Regular fractions of two-level designs, with minimum aberration (Box, Hunter 1961; Fries, Hunter 1980).

A factor is a column: a bit mask of the basic factors of which it is the sum modulo 2. Every fraction
therefore contains the run in which all factors are at their first level. A word of the defining relation is a
set of columns whose sum is zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import combinations, compress
from operator import xor
from typing import ClassVar, Literal

from ..schema.design import Design
from ..schema.factors import level_key
from ..schema.settings import Level
from ..text.strict_model import PartSettings
from ..text.toml_positions import KeyPath
from ..text.units import plural

RESOLUTIONS = {"III": 3, "IV": 4, "V": 5}
"""The resolutions of fractions, in the usual Roman numerals."""

_MEANINGS = {
    "III": "main effects are not aliased with each other, but with interactions of two factors",
    "IV": (
        "main effects are not aliased with each other or with interactions of two factors, some of which "
        "are aliased with each other"
    ),
    "V or more": "no main effect or interaction of two factors is aliased with another",
}
"""The meaning of each resolution of a fraction."""

MAX_FACTORS = 15
"""The maximum number of factors for which fractions are searched."""

Row = tuple[int, ...]
"""The index of each factor's level in a run."""


class TwoLevels(Design):
    """Base class of designs for factors with two levels. Level 0 is the baseline's level."""

    has_conditions = False
    most_factors: ClassVar[int]

    def runs(self) -> tuple[Row, ...]:
        """Return the runs of the design, each with a level number (0 or 1) for each factor."""
        raise NotImplementedError

    @property
    def two_level(self) -> list[str]:
        """The names of the factors with two levels. Factors in `[study] around` are left out."""
        return [name for name, levels in self.inner.items() if len(levels) == 2]

    def make_rows(self) -> list[dict[str, Level]]:
        ends = {name: (self.baseline_level(name), self.other_level(name)) for name in self.two_level}
        constant = {name: levels[0] for name, levels in self.inner.items() if name not in ends}
        return [
            {**constant, **{name: ends[name][number] for name, number in zip(ends, row, strict=True)}}
            for row in self.runs()
        ]

    def faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield a fault for each factor with more than two levels, and one for too many factors."""
        for name, levels in self.inner.items():
            if len(levels) > 2:
                yield ("factors", name), f"{self.kind} takes factors of two levels, got {len(levels)}"
        if (count := len(self.two_level)) > self.most_factors:
            message = f"expected at most {self.most_factors} factors of two levels, got {count}"
            yield ("study", "design"), message

    def aliases(self) -> Aliases | None:
        """Return the effects that the design cannot tell apart; None if no factor has two levels.

        Effects name factors by their indices in `two_level`.
        """
        if not self.two_level:
            return None
        baseline = {name: level_key(self.baseline_level(name)) for name in self.two_level}
        rows = [
            tuple(int(level_key(row[name]) != first) for name, first in baseline.items())
            for row in self.rows()
        ]
        return find_aliases(rows)

    def alias_words(self) -> list[str]:
        found = self.aliases()
        named = [
            [" × ".join(self.two_level[number] for number in effect) for effect in group]
            for group in (found.groups if found else ())
        ]
        return [f"{first} is aliased with {' and '.join(others)}" for first, *others in named]

    def explain_kind(self) -> str:
        factors, rows = len(self.two_level), self.rows()
        full = 2**factors
        if len(rows) >= full:
            return f"all {full:,} combinations of {plural(factors, 'factor')}; every effect can be estimated"
        head = f"{len(rows):,} of {full:,} combinations of {factors} factors of two levels"
        aliases = self.aliases()
        assert aliases is not None, "a fraction has factors of two levels"
        if aliases.partial:
            sizes = ", ".join(str(size) for size, _ in aliases.partial)
            return (
                f"{head}; main effects are not aliased with each other, but partly with interactions of two "
                f"others (correlation {sizes}), which are assumed to be small"
            )
        resolution = "III" if aliases.mains else "IV" if aliases.interactions else "V or more"
        return f"{head}, resolution {resolution}; {_MEANINGS[resolution]}"


class FractionalSettings(PartSettings):
    """The keys of `[study] design` for `fractional`."""

    resolution: Literal["III", "IV", "V"]
    """III separates main effects from each other, IV also from two-factor interactions, V also these
    interactions from each other"""


@dataclass(frozen=True, kw_only=True)
class Fractional(TwoLevels):
    """The smallest regular fraction that has at least the requested resolution."""

    settings: FractionalSettings

    settings_class = FractionalSettings
    title = "a fraction of a grid of factors with two levels"
    source = "Box and Hunter 1961; Fries and Hunter 1980"
    most_factors = MAX_FACTORS

    def runs(self) -> tuple[Row, ...]:
        return fractional_rows(len(self.two_level), RESOLUTIONS[self.settings.resolution])


DESIGN = Fractional


def fractional_rows(factors: int, resolution: int) -> tuple[Row, ...]:
    """Return the runs of the smallest regular fraction with at least this resolution.

    The first run has every factor at its first level. The basic factors come first and form a full grid; the
    last of them changes fastest.
    """
    return rows_of(smallest_fraction(factors, resolution))


@lru_cache(maxsize=64)
def smallest_fraction(factors: int, resolution: int) -> tuple[int, ...]:
    """Return the columns of the smallest fraction that has at least this resolution.

    It has the fewest runs and, for this number of runs, the minimal aberration. Each column is a bit mask of
    the basic factors.
    """
    assert 0 <= factors <= MAX_FACTORS
    basic = factors.bit_length()  # 2 ** basic runs are enough to estimate all main effects and the mean
    while (columns := minimum_aberration(factors, min(basic, factors), resolution)) is None:
        basic += 1
    return columns


@lru_cache(maxsize=64)
def minimum_aberration(factors: int, basic: int, resolution: int) -> tuple[int, ...] | None:
    """Return the columns of a minimum-aberration fraction with `2 ** basic` runs.

    Return None if no fraction has this resolution.

    Columns are added one by one to all fractions that differ (Chen, Sun and Wu 1993). Fractions count as
    equal if their runs have equal numbers of high levels, overall and at each factor's high level.
    """
    # pyDOE3's fracfact_by_res has more aberration from 4 factors on, and for resolution V runs that lack it;
    # its fracfact_opt compares every choice of columns, which takes hours from 9 factors on
    levels = [[(column & run).bit_count() & 1 for run in range(1 << basic)] for column in range(1 << basic)]
    fractions = [tuple(1 << bit for bit in reversed(range(basic)))]
    for _ in range(factors - basic):
        found: dict[object, tuple[int, ...]] = {}
        for columns in fractions:
            # a sum of at most resolution - 2 columns would make a word shorter than the resolution
            few = (combinations(columns, count) for count in range(resolution - 1))
            taken = {reduce(xor, some, 0) for each in few for some in each}
            for column in range(1, 1 << basic):
                if column not in taken:
                    longer = (*columns, column)
                    found.setdefault(_invariant([levels[each] for each in longer]), longer)
        fractions = list(found.values())
    return min(fractions, key=word_lengths, default=None)


def rows_of(columns: Sequence[int]) -> tuple[Row, ...]:
    """Return the runs of a fraction, from its columns.

    Each column is a bit mask of the basic factors that it combines.
    """
    basic = max(columns, default=0).bit_length()
    return tuple(tuple((column & run).bit_count() % 2 for column in columns) for run in range(1 << basic))


def word_lengths(columns: Sequence[int]) -> tuple[int, ...]:
    """Count the words of one letter, two letters and so on in a fraction's defining relation.

    The function counts them from the runs: the weights of a code determine the weights of its dual
    (MacWilliams 1963).
    """
    counts = [0] * (len(columns) + 1)
    for high, runs in Counter(map(sum, rows_of(columns))).items():
        for length, term in enumerate(_expanded(high, len(columns) - high)):
            counts[length] += runs * term
    return tuple(count // counts[0] for count in counts[1:])


def _invariant(levels: Sequence[Sequence[int]]) -> object:
    """Return a value that does not depend on the order of a fraction's factors and runs."""
    high = list(map(sum, zip(*levels, strict=True)))
    return tuple(sorted(high)), tuple(sorted(tuple(sorted(compress(high, each))) for each in levels))


@lru_cache(maxsize=1024)
def _expanded(minus: int, plus: int) -> tuple[int, ...]:
    coefficients = [1]
    for sign in [-1] * minus + [1] * plus:
        shifted = [0, *(sign * each for each in coefficients)]
        coefficients = [one + other for one, other in zip([*coefficients, 0], shifted, strict=True)]
    return tuple(coefficients)


Effect = tuple[int, ...]
"""The indices of an effect's factors: one for a main effect, two for an interaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aliases:
    """Groups of main effects and two-factor interactions that the runs cannot tell apart.

    Signs of effects are ignored.

    `groups` has groups of two or more effects with equal contrasts. `partial` counts correlations between a
    main effect and an interaction by size, without the sizes 0 and 1.
    """

    groups: tuple[tuple[Effect, ...], ...]
    partial: tuple[tuple[Fraction, int], ...]

    @property
    def mains(self) -> tuple[tuple[Effect, ...], ...]:
        """The groups of aliased effects that include a main effect."""
        return tuple(group for group in self.groups if len(group[0]) == 1)

    @property
    def interactions(self) -> tuple[tuple[Effect, ...], ...]:
        """The groups of aliased effects that are all interactions."""
        return tuple(group for group in self.groups if len(group[0]) > 1)


def find_aliases(rows: Sequence[Row]) -> Aliases:
    """Find the effects of two-level factors that these runs cannot tell apart."""
    factors = range(len(rows[0]))
    contrasts = [
        int("".join(str(row[factor]) for row in rows), 2) for factor in factors
    ]  # one bit for each run
    whole, groups = (1 << len(rows)) - 1, dict[int, list[Effect]]()
    for effect in [*((each,) for each in factors), *combinations(factors, 2)]:
        contrast = reduce(xor, (contrasts[factor] for factor in effect))
        # an effect and its complement differ only in sign, so both count as one
        groups.setdefault(min(contrast, contrast ^ whole), []).append(effect)
    sizes: dict[Fraction, int] = {}
    for main in factors:
        for pair in combinations(factors, 2):
            differing = (contrasts[main] ^ contrasts[pair[0]] ^ contrasts[pair[1]]).bit_count()
            size = abs(1 - 2 * Fraction(differing, len(rows)))
            if main not in pair and 0 < size < 1:
                sizes[size] = sizes.get(size, 0) + 1
    return Aliases(
        groups=tuple(tuple(group) for group in groups.values() if len(group) > 1),
        partial=tuple(sorted(sizes.items(), reverse=True)),
    )
