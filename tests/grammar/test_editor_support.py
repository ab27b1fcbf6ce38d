"""Expressions in editors and type checkers, and the import cost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "ray", "optuna", "numpy", "polars", "pyarrow", "pydantic", "rich", "typer")

RIGHT = """\
from activemem import Recipe, analyse, block, build, choice, conv, ff, highway_conv, hole, integer, parse, sa
from activemem import tied

recipe: Recipe = 4 * (sa + highway_conv(k=20) >> ff(512))
space: Recipe = choice(sa, conv(k=integer(3, 40))) >> ff(hole("filter"), act=choice("relu", "gelu"))
other: Recipe = integer(1, 8) * tied(hole("n") * (sa(heads=4) >> conv(3, act="gelu"))) + block("sa")()
model = build(recipe, d_model=8, vocab=5)
parameters: int = analyse("sa", d_model=8, length=9, vocab=5).parameters
trained: int = sum(parameter.numel() for parameter in model.parameters())
text: str = parse(sa).text
"""

WRONG = """\
from activemem import build, conv, ff, integer, sa

sa(head=4)
conv(k="wide")
conv(k=3, act="gleu")
conv()
first = conv + sa
second = sa >> conv
third = sa + "conv(k=3)"
ff(sa)
build(conv, d_model=8, vocab=5)
build(integer(1, 3), d_model=8, vocab=5)
from activemem import highway_cnv
"""


def loaded(program: str) -> set[str]:
    """Return the modules that a program has loaded at its end, heavy ones and ours."""
    program += "\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {name for name in done.stdout.split() if name in HEAVY or name.partition(".")[0] == "activemem"}


def test_importing_the_package_loads_nothing_of_it():
    assert loaded("import activemem") == {"activemem", "activemem.lazy_exports"}


def test_expressions_load_nothing_heavy():
    program = "from activemem import ff, sa; repr(4 * (sa >> ff(16)))"
    assert not loaded(program) & set(HEAVY)


@pytest.mark.heavy
def test_building_loads_torch():
    assert "torch" in loaded("from activemem import build")


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, str]]:
    """Return the lines of each program with type errors, and their kinds."""
    folder = tmp_path_factory.mktemp("typing")
    (folder / "libraries").mkdir()
    (folder / "libraries" / "activemem").symlink_to(ROOT, target_is_directory=True)
    programs = {"right.py": RIGHT, "wrong.py": WRONG}
    for name, text in programs.items():
        (folder / name).write_text(text, encoding="utf-8")
    settings = {"include": list(programs), "extraPaths": ["libraries"], "typeCheckingMode": "standard"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    found: dict[str, dict[int, str]] = {name: {} for name in programs}
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        found[Path(each["file"]).name][each["range"]["start"]["line"] + 1] = each["rule"]
    return found


@pytest.mark.heavy
def test_a_type_checker_finds_nothing_wrong_with_right_expressions(reported: dict[str, dict[int, str]]):
    assert reported["right.py"] == {}


@pytest.mark.heavy
def test_a_type_checker_finds_what_is_wrong_before_it_runs(reported: dict[str, dict[int, str]]):
    assert reported["wrong.py"] == {
        3: "reportCallIssue",
        4: "reportArgumentType",
        5: "reportArgumentType",
        6: "reportCallIssue",
        7: "reportOperatorIssue",
        8: "reportOperatorIssue",
        9: "reportOperatorIssue",
        10: "reportArgumentType",
        11: "reportArgumentType",
        12: "reportArgumentType",
        13: "reportAttributeAccessIssue",
    }
