"""Differences of recipes in words: removed, added or replaced parts, at any place."""

import pytest

from activemem.grammar import parse
from activemem.grammar.difference import describe_difference

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
