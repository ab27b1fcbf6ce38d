"""Hostile texts give a plain error quickly; many recipes parse fast."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from activemem.grammar import RecipeError, parse

from ..quick_cases import one_in

SOON_S = 3.0
"""At least thirty times the time of the slowest text on a free core."""

HOSTILE = {
    "open parentheses": "(" * 9999,
    "deep parentheses": "(" * 4990 + "sa" + ")" * 4990,
    "open calls": "sa(" * 3333,
    "deep repeats": "9 * (" * 31 + "sa" + ")" * 31,
    "deep tied repeats": "tied(9 * " * 30 + "sa" + ")" * 30,
    "deep repeats that are written out": "each(9, " * 31 + "sa" + ")" * 31,
    "wide repeats that are written out": " >> ".join(["each(9999, sa)"] * 500),
    "a gigantic repeat": "1000000000 * sa",
    "many counts": "sa" + "*2" * 4990,
    "a huge integer": "ff(" + "9" * 9000 + ")",
    "a huge exponent": "ff(1e" + "9" * 9000 + ")",
    "exponents": "1e+1" * 2400,
    "numbers": "1 " * 4999,
    "a long name": "a" * 9999,
    "unknown names": " + ".join(f"n{i}" for i in range(1300)),
    "unknown parameters": "ff(" + "a=1," * 2400 + ")",
    "too many arguments": "ff(" + "1," * 4900 + ")",
    "minus signs": "-" * 9999,
    "commas": "," * 9999,
    "equals signs": "=" * 9999,
    "braces": "{" * 9999,
    "quotes": "'" * 9999,
    "dollars": "$ " * 4999,
    "control characters": "\x0b\x0c\x00" * 3333,
    "right-to-left overrides": "\u202e" * 9999,
    "combining characters": "a\u0301" * 4999,
    "lone surrogates": "\ud800" * 9999,
    "wide characters": "日本 " * 3333,
    "an attempt to evaluate": "().__class__.__bases__[0].__subclasses__()",
    "an import": "__import__('os').system('true')",
    "a million characters": "sa + " * 200_000,
    "a million letters": "日" * 1_000_000,
}


def _cpu_s(text: str) -> float:
    """Return the CPU seconds until the error message, the least of three."""
    times: list[float] = []
    for _ in range(3):
        start = time.process_time()
        with pytest.raises(RecipeError) as caught:
            parse(text)
        lines = str(caught.value).splitlines()
        assert all(line.isprintable() for line in lines)
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_text_ends_in_a_plain_error_soon(text: str):
    assert _cpu_s(text) < SOON_S


@pytest.mark.parametrize("text", one_in(2, HOSTILE.values()), ids=HOSTILE.keys())
def test_a_hostile_text_takes_little_memory(text: str):
    tracemalloc.start()
    with pytest.raises(RecipeError) as caught:
        parse(text)
    str(caught.value)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def test_two_thousand_distinct_recipes_are_read_soon():
    texts = [f"{n} * (sa + highway_conv(k={k}) >> ff({n * k}))" for n in range(1, 41) for k in range(1, 51)]
    start = time.process_time()
    recipes = {parse(text) for text in texts}
    assert time.process_time() - start < 2 * SOON_S
    assert len(recipes) == 2000
