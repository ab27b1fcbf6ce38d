"""Fractional and Plackett-Burman designs equal the textbooks', checked by their runs."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from activemem.studies.designs import (
    MAX_FACTORS,
    MAX_SCREENED,
    find_aliases,
    fraction_columns,
    fractional_rows,
    plackett_burman_rows,
)

RESOLUTIONS = {"III": 3, "IV": 4, "V": 5}
DIGIT = 16  # bits for a number of sets, of which there are 6,435 at most


def word_lengths(columns):
    """Count the words of one letter, two letters and so on in a fraction's defining relation.

    A word is a set of columns whose sum is zero, so it has been found once the last of its columns is read.
    """
    counts = {0: 1}  # by sum: the numbers of sets by their size, each in DIGIT bits of one number
    for column in columns:
        longer = {total ^ column: sizes << DIGIT for total, sizes in counts.items()}
        counts = {key: counts.get(key, 0) + longer.get(key, 0) for key in counts.keys() | longer.keys()}
    return tuple(counts[0] >> DIGIT * size & (1 << DIGIT) - 1 for size in range(1, len(columns) + 1))


@pytest.mark.parametrize("name", RESOLUTIONS)
@pytest.mark.parametrize("factors", range(1, MAX_FACTORS + 1))
def test_a_fraction_has_its_resolution_by_its_defining_relation(factors, name):
    columns, resolution = fraction_columns(factors, name), RESOLUTIONS[name]
    assert not any(word_lengths(columns)[: resolution - 1])
    rows = fractional_rows(factors, name)
    assert not any(rows[0])
    assert len(set(rows)) == len(rows) == 2 ** max(columns).bit_length()
    for count in range(1, resolution):  # so few factors have all of their combinations equally often
        for some in combinations(range(factors), min(count, factors)):
            assert len({tuple(row[number] for number in some) for row in rows}) == 2 ** len(some)


@pytest.mark.parametrize(
    ("factors", "resolution", "runs", "words"),
    [  # Box, Hunter and Hunter (1978), table 12.15; numbers of words of 3, 4 and 5 letters
        (5, "III", 8, (2, 1, 0)),
        (7, "III", 8, (7, 7, 0)),
        (9, "III", 16, (4, 14, 8)),
        (11, "III", 16, (12, 26, 28)),
        (6, "IV", 16, (0, 3, 0)),
        (8, "IV", 16, (0, 14, 0)),
        (9, "IV", 32, (0, 6, 8)),
        (10, "IV", 32, (0, 10, 16)),
        (11, "IV", 32, (0, 25, 0)),
        (5, "V", 16, (0, 0, 1)),
        (8, "V", 64, (0, 0, 2)),
        (11, "V", 128, (0, 0, 6)),
    ],
)
def test_fractions_are_those_of_the_book(factors, resolution, runs, words):
    assert len(fractional_rows(factors, resolution)) == runs
    assert word_lengths(fraction_columns(factors, resolution))[2:5] == words


@pytest.mark.parametrize(
    ("factors", "resolution"),
    [
        *((factors, "III") for factors in range(3, MAX_FACTORS + 1)),
        *((factors, "IV") for factors in range(4, 9)),
        *((factors, "V") for factors in range(5, 8)),
        pytest.param(9, "IV", marks=pytest.mark.slow),
        *(pytest.param(factors, "V", marks=pytest.mark.slow) for factors in (8, 9)),
    ],
)
def test_no_fraction_of_the_same_size_is_less_aberrant(factors, resolution):
    """Compare with every choice of generators."""
    columns = fraction_columns(factors, resolution)
    basic = max(columns).bit_length()
    bases = tuple(1 << bit for bit in range(basic))
    others = [each for each in range(1, 1 << basic) if each not in bases]
    assert word_lengths(columns) == min(
        word_lengths(bases + some) for some in combinations(others, factors - basic)
    )


@pytest.mark.parametrize("factors", range(3, MAX_SCREENED + 1))
def test_screening_designs_are_balanced_and_orthogonal(factors):
    rows = plackett_burman_rows(factors)
    assert len(rows) == len(set(rows)) == 4 * (factors // 4 + 1)
    assert not any(rows[0])
    columns = list(zip(*rows, strict=True))
    assert all(2 * sum(column) == len(rows) for column in columns)
    for one, other in combinations(columns, 2):
        assert 2 * sum(a != b for a, b in zip(one, other, strict=True)) == len(rows)


@pytest.mark.parametrize("factors", [20, MAX_SCREENED])
def test_no_main_effect_of_a_large_screening_design_is_an_interaction(factors):
    signs = 1 - 2 * np.array(plackett_burman_rows(factors))
    for one, other in combinations(range(factors), 2):
        shared = np.abs(signs.T @ (signs[:, one] * signs[:, other]))
        assert max(np.delete(shared, (one, other))) < len(signs)


@pytest.mark.parametrize(
    ("runs", "generator"),
    [  # Plackett and Burman (1946), p. 323
        (12, "++-+++---+-"),
        (20, "++--++++-+-+----++-"),
        (24, "+++++-+-++--++--+-+----"),
    ],
)
def test_generators_are_the_published_ones_except_for_where_they_begin(runs, generator):
    ours = ["".join("-+"[level] for level in row) for row in plackett_burman_rows(runs - 1)]
    shifts = {generator[at:] + generator[:at] for at in range(runs - 1)}
    backwards = {shift[::-1] for shift in shifts}
    assert ours[0] == "-" * (runs - 1)
    assert set(ours[1:]) in (shifts, backwards)


def test_aliases_are_computed_from_the_runs():
    whole = tuple(product((0, 1), repeat=4))
    assert find_aliases(whole).groups == ()
    half = find_aliases(fractional_rows(4, "IV"))
    assert half.groups == (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2)))
    small = find_aliases(fractional_rows(3, "III"))
    assert small.groups == (((0,), (1, 2)), ((1,), (0, 2)), ((2,), (0, 1)))
    twelve = find_aliases(plackett_burman_rows(11))
    assert twelve.groups == ()
    assert twelve.partial == ((Fraction(1, 3), 11 * 45),)
