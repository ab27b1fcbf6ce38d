"""Differences of recipes in words: removed, added or replaced parts, at any place."""

import pytest

from activemem.grammar import parse
from activemem.grammar.difference import describe_difference

TRANSDUCER = "seq2seq(2 * (gru >> ff(8)), lstm, attention=luong)"
FULL = "4 * (sa + highway_conv(k=20) >> ff(512))"


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (FULL, ""),
        ("4 * (sa >> ff(512))", "− highway_conv(k=20)"),
        ("4 * (highway_conv(k=20) >> ff(512))", "− sa"),
        ("4 * (sa + highway_conv(k=20))", "− ff(512)"),
        ("4 * ff(512)", "− (sa + highway_conv(k=20))"),
        ("4 * (sa + highway_conv(k=20) + conv(k=3) >> ff(512))", "+ conv(k=3)"),
        ("4 * (sa + highway_conv(k=20) >> gru >> ff(512))", "+ gru"),
        ("4 * (sa + highway_conv(k=5) >> ff(512))", "highway_conv(k=20) → highway_conv(k=5)"),
        ("4 * (sa + highway_conv(k=20) >> ff(64))", "ff(512) → ff(64)"),
        ("6 * (sa + highway_conv(k=20) >> ff(512))", "4 × → 6 ×"),
        ("6 * (sa >> ff(512))", "4 × → 6 ×, − highway_conv(k=20)"),
        ("tied(4 * (sa + highway_conv(k=20) >> ff(512)))", "tied"),
        (
            "4 * (ff(512) >> sa + highway_conv(k=20))",
            "sa + highway_conv(k=20) >> ff(512) → ff(512) >> sa + highway_conv(k=20)",
        ),
        ("gru", "4 * (sa + highway_conv(k=20) >> ff(512)) → gru"),
    ],
)
def test_a_single_change_is_described_at_its_position(after, told):
    assert describe_difference(parse(FULL).root, parse(after).root) == told


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ("seq2seq(2 * gru, lstm, attention=luong)", "− ff(8) of encoder"),
        ("seq2seq(2 * (gru >> ff(8)), gru, attention=luong)", "lstm → gru of decoder"),
        ("seq2seq(4 * (gru >> ff(8)), gru, attention=luong)", "2 × → 4 × of encoder, lstm → gru of decoder"),
        (
            "seq2seq(2 * gru, lstm, attention=bahdanau)",
            f"{TRANSDUCER} → seq2seq(2 * gru, lstm, attention=bahdanau)",
        ),
    ],
)
def test_a_change_inside_of_a_block_names_the_argument(after, told):
    assert describe_difference(parse(TRANSDUCER).root, parse(after).root) == told
