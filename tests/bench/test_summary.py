"""The table of benchmarks: an exception takes the place of its row, and the other rows are kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RAISING = r"""
import summary, torch

def some():
    yield summary.Row("a step", "another", 2.0, 4.0)
    raise RuntimeError("CUDA error: a | b \\d\r\nand more")

def others():
    yield summary.Row("a step", "a third", 3.0, 2.0)
    yield summary.Row("a step", "a bound", 5.0, 4.0, is_bound=True)

def listed():
    yield "a step", others
    raise RuntimeError("nothing is recorded")

measured = [("a step", some), ("a step", others)]
for given in (measured, measured[1:], listed()):
    found, bounds, is_whole = summary.tables(given, torch.device("cpu"))
    print(*found.splitlines()[2:-2], is_whole, sep="\n")
print(bounds)
mark = summary.MARKS["cpu"]
print(summary.with_table(f"{mark}\nold\n{summary.END}\n", mark, r"raised error: bad escape \d"), end="")
"""
OTHERS = r"""
import summary, sys, torch

sys.modules["x_transformers"] = None
device = torch.device("cpu")
(what, measure), *_ = summary.beside_packages(0.01, device)
print(what, summary.tables([(what, measure)], device)[-1])
"""


COMPILED = r"""
import attention, time, torch

taken = []

def run():
    taken.append(time.sleep(0.3 if not taken else 0.0))
    return torch.ones((), requires_grad=True)

print(attention.median_ms({"compiled": run}, 0.2, torch.device("cpu"))["compiled"] < 100, len(taken) > 5)
"""

RELEASED = r"""
import released_active_memory, step, torch

for mixer, recipe in released_active_memory.RECIPES.items():
    training = step.make(recipe, model=released_active_memory.MODEL)
    theirs = released_active_memory.ReleasedTransformer.of(training.model, mixer)
    tokens = torch.arange(60).view(2, 30)
    gradients = []
    for model in (training.model, theirs):
        model.eval().double()
        model(tokens).square().mean().backward()
        gradients.append([each.grad.norm() for each in model.parameters()])
    sums = [torch.stack(each).square().sum() for each in gradients]
    print(sum(each.numel() for each in theirs.parameters()) - training.parameters, torch.allclose(*sums))
"""


def run(program):
    """Run a program that imports the benchmarks; return its output and error output."""
    path = os.pathsep.join([str(ROOT / "bench"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines(), done.stderr


@pytest.mark.heavy
def test_the_first_pass_of_a_layer_takes_none_of_the_time_for_its_measurement():
    assert run(COMPILED)[0] == ["True True"]


@pytest.mark.heavy
def test_the_model_of_the_released_program_has_our_numbers():
    assert run(RELEASED)[0] == ["0 True", "0 True"]


@pytest.mark.heavy
def test_a_package_that_is_not_installed_is_reported_in_place_of_its_row():
    printed, told = run(OTHERS)
    assert printed == ["a step of `4 * (sa >> ff(512))` False"]
    assert "ModuleNotFoundError: import of x_transformers halted" in told


@pytest.mark.heavy
def test_an_exception_takes_the_place_of_its_row_and_other_rows_are_kept():
    printed, told = run(RAISING)
    bounds = [
        "| ours | compared with | ours, ms | theirs, ms | ratio |",
        "| :-- | :-- | --: | --: | --: |",
        "| a step | a bound | 5 | 4 | 1.25 |",
    ]
    assert printed == [
        "| a step | another | 2 | 4 | 0.50 |",
        "| a step | raised RuntimeError: CUDA error: a \\| b \\d | | | |",
        "| a step | a third | 3 | 2 | 1.50 |",
        "False",
        "| a step | a third | 3 | 2 | 1.50 |",
        "True",
        "| a step | a third | 3 | 2 | 1.50 |",
        "| all others | raised RuntimeError: nothing is recorded | | | |",
        "False",
        *bounds,
        "<!-- measured: python bench/summary.py --write -->",
        "",
        r"raised error: bad escape \d",
        "",
        "<!-- end -->",
    ]
    assert "RuntimeError: CUDA error: a | b" in told  # with its traceback
