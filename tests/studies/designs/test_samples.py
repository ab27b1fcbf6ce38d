"""Samples of grids: reproducible, distinct, and balanced."""

import math
from collections import Counter
from itertools import product

import pytest

from activemem.studies.designs import latin_hypercube_rows, random_rows

HUGE = {f"factor{number}": 10 for number in range(9)}


def test_a_larger_random_sample_begins_with_the_smaller_one():
    assert random_rows(tuple(HUGE.items()), 40, 3)[:24] == random_rows(tuple(HUGE.items()), 24, 3)
    assert random_rows(tuple(HUGE.items()), 24, 3) != random_rows(tuple(HUGE.items()), 24, 4)


def test_a_sample_is_the_same_for_ever():
    assert random_rows(tuple({"a": 4, "b": 3}.items()), 3, 0) == ((0, 2), (1, 0), (2, 0))
    assert latin_hypercube_rows((4, 3), 4, 0) == ((1, 0), (0, 2), (3, 1), (2, 1))


def test_a_level_more_leaves_what_is_drawn_of_other_factors():
    one, other = (
        random_rows(tuple(HUGE.items()), 9, 0),
        random_rows(tuple((HUGE | {"factor8": 11}).items()), 9, 0),
    )
    assert [row[:8] for row in one] == [row[:8] for row in other]


def test_a_random_sample_of_all_cells_has_each_once():
    assert len(set(random_rows(tuple({"a": 4, "b": 3, "c": 2}.items()), 24, 0))) == 24


@pytest.mark.parametrize("cells", [1, 5, 12, 18])
def test_each_level_of_a_hypercube_is_as_frequent_as_the_others_except_for_one(cells):
    sizes = (4, 3, 2)
    rows = latin_hypercube_rows(sizes, cells, 0)
    assert len(set(rows)) == cells
    for number, size in enumerate(sizes):
        counts = Counter(row[number] for row in rows)
        assert {counts[level] for level in range(size)} <= {cells // size, -(-cells // size)}


@pytest.mark.parametrize("sizes", [(2, 2), (6, 6, 6), (2, 3, 5, 7)])
def test_a_hypercube_of_as_many_cells_as_the_grid_has_each_cell_once(sizes):
    rows = latin_hypercube_rows(sizes, math.prod(sizes), 0)
    assert list(rows) == list(product(*map(range, sizes)))


def test_a_hypercube_without_room_is_not_found():
    assert latin_hypercube_rows((2, 2), 3, 0) is not None
    assert latin_hypercube_rows((1,), 2, 0) is None
