"""Ticks are few round numbers, also on logarithmic axes."""

from activemem.reporting.curves.curve import Axis
from activemem.reporting.curves.draw.panel import make_scale, tick_texts


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


def test_a_single_number_has_one_tick_of_its_own_on_a_logarithmic_axis():
    assert [text for _, text in make_scale([5, 5], Axis(title="", log=True)).ticks] == ["5"]
    assert [text for _, text in make_scale([0, 0.3], Axis(title="", log=True)).ticks] == ["0.0", "0.3"]


def test_the_axis_of_a_single_integer_has_no_fractions():
    assert [text for _, text in make_scale([0], Axis(title="")).ticks] == ["0"]


def test_large_numbers_have_prefixes_and_small_ones_on_the_same_axis_have_none():
    assert tick_texts([1e-4, 1e-2, 1, 100, 1e4]) == ["0.0001", "0.01", "1", "100", "10k"]
