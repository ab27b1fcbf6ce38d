"""Pareto fronts of points."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from activemem.studies.searches.points import crowding, front, ranks

SMALL = st.integers(0, 4).map(float)
POINTS = st.integers(1, 3).flatmap(lambda axes: st.lists(st.tuples(*[SMALL] * axes), max_size=12))


def beats(first, second):
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))


@settings(max_examples=60)
@given(POINTS)
def test_the_front_has_the_points_that_none_beats(points):
    expected = {place for place, one in enumerate(points) if not any(beats(other, one) for other in points)}
    found = front(points)
    assert set(found) == expected
    assert len(found) == len(expected)
    assert [points[place] for place in found] == sorted(points[place] for place in found)


def test_a_long_front_of_two_objectives_takes_few_comparisons():
    compared = 0

    class Loss(float):
        def __le__(self, other):
            nonlocal compared
            compared += 1
            return float(self) <= float(other)

    assert len(front([(Loss(place), Loss(-place)) for place in range(1000)])) == 1000
    assert compared < 10_000


@settings(max_examples=60)
@given(POINTS)
def test_each_rank_is_the_front_of_what_the_ranks_before_leave(points):
    found = ranks(points)
    for rank in range(max(found, default=-1) + 1):
        left = [one for one, each in zip(points, found, strict=True) if each >= rank]
        first = [one for one, each in zip(points, found, strict=True) if each == rank]
        assert sorted(left[place] for place in front(left)) == sorted(first)


def test_crowding_is_the_room_between_neighbours():
    assert crowding([(0.0, 4.0), (1.0, 1.0), (4.0, 0.0)]) == [math.inf, 2.0, math.inf]
    assert crowding([(1.0,), (1.0,)]) == [math.inf, math.inf]
