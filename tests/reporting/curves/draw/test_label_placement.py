"""Names stand apart from each other, as near to what they name as can be."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from activemem.reporting.curves.curve import Axis
from activemem.reporting.curves.draw.axis_scale import make_scale, tick_texts
from activemem.reporting.curves.draw.label_placement import place_labels, spread_labels

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
    first, second = place_labels([(50, 50), (52, 50)], [30, 30], 9, obstacles=[], bounds=(0, 0, 100, 100))
    assert (first.side, first.y) == ("left", 50)
    assert (second.side, second.y) != (first.side, first.y)


def test_ticks_are_few_round_numbers_with_no_more_decimals_than_they_need():
    assert [text for _, text in make_scale([0.13, 0.97], Axis(title="")).ticks] == [
        "0.2",
        "0.4",
        "0.6",
        "0.8",
    ]
    assert [text for _, text in make_scale([-3, 12], Axis(title="")).ticks] == ["0", "5", "10"]
    assert tick_texts([1e6, 2.5e6]) == ["1M", "2.5M"]
    assert tick_texts([-1.5, 0]) == ["−1.5", "0.0"]


def test_a_logarithmic_axis_has_powers_of_ten_or_what_is_between():
    axis = Axis(title="", log=True)
    assert [text for _, text in make_scale([3, 4000], axis).ticks] == ["10", "100", "1,000"]
    assert [text for _, text in make_scale([30, 700], axis).ticks] == ["50", "100", "200", "500"]
    assert [text for _, text in make_scale([1.4, 1.9], axis).ticks] == [
        "1.4",
        "1.5",
        "1.6",
        "1.7",
        "1.8",
        "1.9",
    ]
    assert make_scale([0, 10, 1000], axis).ticks[0][1] == "0"
