"""Labels do not overlap, and are close to their points."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from activemem.reporting.curves.draw.panel import place_labels, spread_labels

PLACES = st.lists(st.floats(0, 100, allow_nan=False), min_size=1, max_size=8)


@given(PLACES)
def test_names_along_a_side_are_apart_in_order_and_inside(wanted):
    places = spread_labels(wanted, 10, 0, 100)
    ordered = sorted(places)
    assert all(b - a >= 10 - 1e-6 for a, b in pairwise(ordered))
    assert all(-1e-6 <= place <= 100 + 1e-6 for place in places)
    order = sorted(range(len(wanted)), key=lambda index: (wanted[index], index))
    assert [places[index] for index in order] == ordered


@given(PLACES)
def test_names_that_are_apart_stay_where_they_want_to_be(wanted):
    apart = [20.0 * index for index in range(len(wanted)) if index < 6]
    assert spread_labels(apart, 10, 0, 100) == apart


def test_two_names_at_one_place_move_as_far_each():
    assert spread_labels([50, 50], 10, 0, 100) == [45, 55]


def test_more_names_than_there_is_room_for_share_it():
    assert spread_labels([0] * 5, 10, 0, 20) == [0, 5, 10, 15, 20]


def test_names_in_a_plane_keep_off_each_other():
    places = [(50, 50), (52, 50)]
    first, second = place_labels(places, [30, 30], 9, dots=places, bounds=(100, 100))
    assert first == (45, 50, "right")
    assert second == (57, 59, "left")


def test_a_name_is_rather_on_a_dot_than_outside():
    ((x, _, side),) = place_labels(
        [(10, 50)], [60], 9, dots=[(40, y) for y in range(30, 70)], bounds=(100, 100)
    )
    assert (x, side) == (15, "left")
