"""The table of benchmarks: what raises is told in its place, and the other rows stand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
PROGRAM = r"""
import summary, torch

def some():
    yield summary.Row("a step", "another", 2.0, 4.0)
    raise RuntimeError("CUDA error: a | b \\d\r\nand more")

def others():
    yield summary.Row("a step", "a third", 3.0, 2.0)

def listed():
    yield "a step", others
    raise RuntimeError("nothing is recorded")

measured = [("a step", some), ("a step", others)]
for given in (measured, measured[1:], listed()):
    found, is_whole = summary.table(given, torch.device("cpu"))
    print(*found.splitlines()[2:-2], is_whole, sep="\n")
mark = summary.MARKS["cpu"]
print(summary.with_table(f"{mark}\nold\n{summary.END}\n", mark, r"raised error: bad escape \d"), end="")
"""


@pytest.mark.heavy
def test_a_row_that_raises_is_told_in_the_table_and_the_others_stand():
    path = os.pathsep.join([str(BENCH), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "| a step | another | 2 | 4 | 0.50 |",
        "| a step | raised RuntimeError: CUDA error: a \\| b \\d | | | |",
        "| a step | a third | 3 | 2 | 1.50 |",
        "False",
        "| a step | a third | 3 | 2 | 1.50 |",
        "True",
        "| a step | a third | 3 | 2 | 1.50 |",
        "| all others | raised RuntimeError: nothing is recorded | | | |",
        "False",
        "<!-- measured: python bench/summary.py --write -->",
        "",
        r"raised error: bad escape \d",
        "",
        "<!-- end -->",
    ]
    assert "RuntimeError: CUDA error: a | b" in done.stderr  # with its traceback
