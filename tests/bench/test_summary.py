"""The table of benchmarks: what raises is told in its place, and the other rows stand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
PROGRAM = """
import summary, torch

def some():
    yield summary.Row("a step", "another", 2.0, 4.0)
    raise RuntimeError("CUDA error: a | b\\nand more")

def others():
    yield summary.Row("a step", "a third", 3.0, 2.0)

measured = [("a step", some), ("a step", others)]
for given in (measured, measured[1:]):
    found, is_whole = summary.table(given, torch.device("cpu"))
    print(*found.splitlines()[2:-2], is_whole, sep="\\n")
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
        "| a step | raised RuntimeError: CUDA error: a \\| b | | | |",
        "| a step | a third | 3 | 2 | 1.50 |",
        "False",
        "| a step | a third | 3 | 2 | 1.50 |",
        "True",
    ]
    assert "RuntimeError: CUDA error: a | b" in done.stderr  # with its traceback
