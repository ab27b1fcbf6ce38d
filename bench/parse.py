"""Time to parse 10,000 distinct recipes; the target is below 2 s.

Run: python bench/parse.py.
"""

from __future__ import annotations

import sys
import time

from activemem.grammar import parse

COUNT, TARGET_S = 10_000, 2.0


def texts() -> list[str]:
    """Return distinct recipes like those of the paper, in the spellings of study files."""
    return [
        f"{n} * (sa(heads={h}) + highway_conv(k={k}) >> ff({16 * k}, act=gelu)) >> conv(k={k})"
        for n in range(1, 11)
        for h in range(1, 21)
        for k in range(2, 52)
    ]


def main() -> None:
    """Parse the recipes once, and print the time."""
    given = texts()
    begin = time.process_time()
    distinct = {parse(text).id for text in given}
    took_s = time.process_time() - begin
    assert len(distinct) == COUNT, f"expected {COUNT} distinct recipes, got {len(distinct)}"
    met = took_s < TARGET_S
    print(f"{COUNT:,} recipes in {took_s:.2f} s; target below {TARGET_S:.0f} s: {'met' if met else 'MISSED'}")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
