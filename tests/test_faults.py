"""The nearest known name of a word, by spelling, parts and beginnings."""

import pytest

from activemem.errors import nearest, nearest_hint
from activemem.grammar.vocabulary.spec import nearest_block

METRICS = ("bleu", "test_mae", "test_r2", "test_macro_f1", "test_loss", "max_length", "dev_accuracy")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("test_los", "test_loss"),
        ("Test-Loss", "test_loss"),
        ("dev_acc", "dev_accuracy"),
        ("test_l", "test_loss"),
        ("test_bleu", "bleu"),
        ("test_f1", "test_macro_f1"),
        ("max", "max_length"),
        ("maxlen", "max_length"),
        ("zzz", None),
        ("ma", None),
    ],
)
def test_a_name_is_near_by_a_slip_a_part_or_a_beginning(word, expected):
    assert nearest(word, METRICS) == expected


def test_without_a_near_name_all_are_listed():
    assert nearest_hint("zzz", ["b", "a"]) == "; known: a, b"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("convolution", "conv"),
        ("attention", "sa"),
        ("MLP", "ff"),
        ("highway", "highway_conv"),
        ("my_lstm_cell", "lstm"),
        ("mamba2", "ssd"),
        ("retnetwork", "retention"),
        ("quux", None),
    ],
)
def test_a_block_is_found_by_the_names_that_the_field_has_for_it(word, expected):
    assert nearest_block(word) == expected
