import math

import pytest

from activemem.grammar import Reach
from activemem.studies.text.units import (
    abbreviate_all,
    degrees_of_freedom,
    format_bytes,
    format_duration,
    format_quantity,
    format_reach,
    plural,
    si_prefix,
    truncate,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0 s"),
        (0, "0 s"),
        (0.4, "1 s"),
        (59.4, "59 s"),
        (59.6, "1.0 min"),
        (90, "1.5 min"),
        (31 * 60, "31 min"),
        (59.7 * 60, "1.0 h"),
        (14 * 3600, "14 h"),
        (47 * 3600, "47 h"),
        (72 * 3600, "3.0 days"),
        (500 * 86400, "500 days"),
    ],
)
def test_a_time_reads_in_the_unit_that_suits_it(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 FLOPs"),
        (-1_234_567_890, "−1.23 GFLOPs"),
        (12_345_678, "12.3 MFLOPs"),
        (123_456, "123 kFLOPs"),
        (999_999, "1.00 MFLOPs"),
        (4.5e19, "45,000 PFLOPs"),
        (-math.inf, "−∞ FLOPs"),
    ],
)
def test_a_quantity_has_three_digits_and_a_prefix(value, text):
    assert format_quantity(value, "FLOPs") == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (999, "999 B"), (8192, "8.2 kB"), (3.1e9, "3.1 GB")])
def test_bytes_have_a_prefix_from_a_thousand_on(count, text):
    assert format_bytes(count) == text


def test_a_prefix_brings_a_number_to_at_least_one():
    assert [si_prefix(value) for value in (0.2, 999, 1000, 6.1e6)] == [
        ("", 1),
        ("", 1),
        ("k", 1e3),
        ("M", 1e6),
    ]


def test_one_thing_is_not_plural():
    assert [plural(count, "trial") for count in (0, 1, 1440)] == ["0 trials", "1 trial", "1,440 trials"]
    assert [plural(2, noun) for noun in ("batch", "epoch", "loss")] == ["2 batches", "2 epochs", "2 losses"]
    told = [degrees_of_freedom(numbers) for numbers in ([1], [3], [1, 2])]
    assert told == [f"{numbers} of freedom" for numbers in ("1 degree", "3 degrees", "1 to 2 degrees")]


def test_a_reach_without_bound_is_all_and_none_is_zero():
    reaches = [Reach(left=math.inf, right=math.inf), Reach(left=0, right=0), Reach(left=math.inf, right=0)]
    assert [format_reach(each) for each in reaches] == ["all", "0", "all ← · → 0"]


def test_a_text_is_cropped_with_a_sign():
    assert [truncate("persistent", width) for width in (10, 9, 1)] == ["persistent", "persiste…", "…"]


def test_a_text_that_is_squeezed_keeps_its_beginning_and_its_end():
    assert [abbreviate_all(["reverse_copy_bigrams"], width) for width in (20, 16, 7, 1, 0)] == [
        ["reverse_copy_bigrams"],
        ["reverse_co…grams"],
        ["reve…ms"],
        ["…"],
        ["…"],
    ]


def test_texts_that_are_squeezed_still_differ_where_some_place_of_the_sign_allows_it():
    assert abbreviate_all(["recall_addition", "recall_multiplication"], 6) == ["…ition", "…ation"]
    assert abbreviate_all(["length=1000", "length=5000", "length"], 7) == ["le…1000", "le…5000", "length"]
    assert abbreviate_all(["sa", "sa sa"], 1) == ["…", "…"]
    recipes = (
        "(gla(short_conv=3) >> ff(32))",
        "(gla(a=2) >> ff(32))",
        "gla(short_conv=3)",
        "(conv(k=3) >> ff(32))",
    )
    short = abbreviate_all([f"2 * {each} >> mean_pool" for each in recipes], 15)
    assert len(set(short)) == len(recipes)


def test_texts_that_differ_in_their_middle_lose_the_beginning_that_they_share():
    long = [f"delta(heads=4, head_width=16, negative={negative}, conv=4, gate=true)" for negative in (0, 1)]
    assert abbreviate_all(["gru", *long], 21) == ["gru", "delta(…negative=0, c…", "delta(…negative=1, c…"]
