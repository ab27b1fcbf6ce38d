"""Regular fractions of two-level designs, with minimum aberration (Box, Hunter 1961; Fries, Hunter 1980).

A factor is a column: a bit mask of the basic factors of which it is the sum modulo 2. Every fraction
therefore contains the run in which all factors are at their first level. A word of the defining relation is a
set of columns whose sum is zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import combinations
from operator import xor
from string import ascii_lowercase
from typing import ClassVar, Literal

from ..schema.design import Design
from ..schema.factors import level_key
from ..schema.settings import Level
from ..text.strict_model import PartSettings
from ..text.toml_positions import KeyPath
from ..text.units import plural

_GENERATORS: Mapping[str, Mapping[int, str]] = {
    "III": {
        3: "ab",
        4: "abc",
        5: "bc ac",
        6: "bc ac ab",
        7: "bc ac ab abc",
        8: "bcd acd abd abc",
        9: "cd bd ad abc abcd",
        10: "cd bd bc ad abc abcd",
        11: "cd bd bc ad ac abd abc",
        12: "cd bd bc ad ac abd abc abcd",
        13: "cd bd bc bcd ad ac acd ab abd",
        14: "cd bd bc bcd ad ac acd ab abd abc",
        15: "cd bd bc bcd ad ac acd ab abd abc abcd",
    },
    "IV": {
        4: "abc",
        5: "abcd",
        6: "bcd acd",
        7: "bcd acd abd",
        8: "bcd acd abd abc",
        9: "cde bde ade abce",
        10: "cde bde ade abce abcd",
        11: "cde bde bce ade ace abe",
        12: "cde bde bce bcd ade ace abe",
        13: "cde bde bce bcd ade ace acd abe",
        14: "cde bde bce bcd ade ace acd abe abd",
        15: "cde bde bce bcd ade ace acd abe abd abc",
    },
    "V": {
        5: "abcd",
        6: "abcde",
        7: "abcdef",
        8: "cdef abef",
        9: "cdefg abefg",
        10: "defg bcfg aceg",
        11: "defg bcfg aceg abdf",
        12: "defgh bcfgh acegh abdfh",
        13: "efgh bcdh acdfg abdeg abcefh",
        14: "efgh cdgh bdfh adeg abcgh abcdefgh",
        15: "efgh cdgh bdfh bceg adegh acefh abdg",
    },
}
"""The columns of the factors that are not basic, by resolution and number of factors.

A word such as `abc` is the sum of the first three basic factors. Without an entry, the design is a full grid.
These are the fractions with the fewest runs, and among them those with minimum aberration.
"""

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
"""The maximum number of factors of a fraction."""

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
        """Return the effects that the design cannot separate; None if no factor has two levels.

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
        shortest = min((len(group[0]) for group in aliases.groups), default=3)
        resolution = {1: "III", 2: "IV"}.get(shortest, "V or more")
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
        return fractional_rows(len(self.two_level), self.settings.resolution)


DESIGN = Fractional


def fractional_rows(factors: int, resolution: str) -> tuple[Row, ...]:
    """Return the runs of the smallest regular fraction with at least this resolution, such as "IV".

    The first run has every factor at its first level. The basic factors come first and form a full grid; the
    last of them changes fastest.
    """
    columns = fraction_columns(factors, resolution)
    runs = range(1 << max(columns, default=0).bit_length())
    return tuple(tuple((column & run).bit_count() % 2 for column in columns) for run in runs)


def fraction_columns(factors: int, resolution: str) -> tuple[int, ...]:
    """Return the column of each factor: a bit mask of the basic factors that it combines."""
    words = _GENERATORS[resolution].get(factors, "").split()
    basic = [1 << bit for bit in reversed(range(factors - len(words)))]
    named = dict(zip(ascii_lowercase, basic, strict=False))
    return (*basic, *(sum(named[letter] for letter in word) for word in words))


Effect = tuple[int, ...]
"""The indices of an effect's factors: one for a main effect, two for an interaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aliases:
    """Groups of main effects and two-factor interactions that the runs cannot separate.

    Signs of effects are ignored.

    `groups` has groups of two or more effects with equal contrasts. `partial` counts correlations between a
    main effect and an interaction by size, without the sizes 0 and 1.
    """

    groups: tuple[tuple[Effect, ...], ...]
    partial: tuple[tuple[Fraction, int], ...]


def find_aliases(rows: Sequence[Row]) -> Aliases:
    """Find the effects of two-level factors that these runs cannot separate."""
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
