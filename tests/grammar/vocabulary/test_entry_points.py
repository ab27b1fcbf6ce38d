"""Blocks of other packages: found by name, and harmless if broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ...forked_commands import run_program
from ...golden import GoldenTexts

SPEC = """\
from activemem.grammar import Reach, Role, Spec, register

def add(name):
    return register(Spec(
        name=name, role=Role.CHANNEL, summary="it", equation="y = x", source="here",
        reach=lambda *_: Reach(left=0, right=0),
    ))
"""
PACKAGES = {
    "sound": (["keep = sound"], f"{SPEC}\nadd('keep')\n"),
    "half": (["burst = half_broken", "whole = half"], f"{SPEC}\nadd('whole')\n"),
    "absent": (["gone = absent_module"], ""),
    "leaving": (["left = leaving"], "raise SystemExit(3)\n"),
    "taking": (["sa = taking"], f"{SPEC}\nadd('first_of_two')\nadd('sa')\n"),
    "reserved": (["choice = reserved"], f"{SPEC}\nadd('choice')\n"),
}
BROKEN_HALF = f"{SPEC}\nadd('burst')\nraise RuntimeError('first\\nsecond \\u202e')\n"
PROBLEMS = {
    "burst": "entry point burst of half 1.0: RuntimeError: first second \N{REPLACEMENT CHARACTER}",
    "choice": "entry point choice of reserved 1.0: block 'choice': "
    "this name is a word of the recipe language",
    "gone": "entry point gone of absent 1.0: ModuleNotFoundError: No module named 'absent_module'",
    "left": "entry point left of leaving 1.0: SystemExit: 3",
    "sa": "entry point sa of taking 1.0: the block 'sa' is already defined by activemem",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of installed packages, most of them broken."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "half_broken.py").write_text(BROKEN_HALF, encoding="utf-8")
    for name, (entries, module) in PACKAGES.items():
        (folder / f"{name}.py").write_text(module, encoding="utf-8")
        about = folder / f"{name}-1.0.dist-info"
        about.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        (about / "METADATA").write_text(metadata, encoding="utf-8")
        lines = ["[activemem.plugins]", *entries]
        (about / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these packages installed."""
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, encoding="utf-8", env=environment, check=False
    )


def test_an_entry_point_that_breaks_is_reported_and_takes_nothing_else_with_it(site: Path):
    done = run(site, "-m", "activemem", "list", "blocks", "--json")
    listed = json.loads(done.stdout)
    owners = {each["name"]: each["owner"] for each in listed["names"]}
    assert done.returncode == 0
    assert (owners["keep"], owners["whole"], owners["sa"]) == ("sound 1.0", "half 1.0", "activemem")
    assert not owners.keys() & {"burst", "choice", "gone", "left", "first_of_two"}
    assert {each["message"] for each in listed["problems"]} == {*PROBLEMS.values()}
    assert [each for each in PROBLEMS.values() if each not in done.stderr] == []


def test_a_recipe_says_why_a_block_cannot_be_used(site: Path, golden: GoldenTexts):
    program = """
import sys
from activemem.grammar import RecipeError, parse
parse("4 * (sa + highway_conv(k=20) >> ff(512, act=gelu))")
print("importlib.metadata" in sys.modules)
for name in ("keep >> whole", "burst", "kep"):
    try:
        print(parse(name))
    except RecipeError as error:
        print(error.faults[0].message)
"""
    golden(run(site, "-c", program).stdout.splitlines())


def test_a_block_without_a_module_cannot_be_built(site: Path, tmp_path: Path, golden: GoldenTexts):
    program = tmp_path / "build.py"
    program.write_text("""
from activemem import build
try:
    build("keep >> whole >> sa", d_model=8, vocab=5)
except ValueError as error:
    print(error)
""")
    golden(run_program(program, environment={"PYTHONPATH": str(site)}).stdout.splitlines())


IDS = """
from activemem import load_study
print(load_study('''
[study]
name = "ids"
title = "Ids"
[model]
recipe = "mine"
d_model = 8
[task]
name = "reverse"
[train]
optimizer = { name = "adam", lr = 0.01 }
epochs = 1
steps_per_epoch = 1
[factors]
seed = [0]
''').trials[0].id)
"""


def test_the_id_of_a_trial_covers_all_modules_of_a_package_that_its_parts_import(tmp_path: Path):
    site, package = tmp_path / "site", tmp_path / "site/mixers"
    (package / "parts").mkdir(parents=True)
    about = site / "mixers-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mixers\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[activemem.plugins]\nmine = mixers.blocks\n", encoding="utf-8")
    sources = {
        "__init__.py": "",
        "blocks.py": f"from .parts import gate\n{SPEC}\nadd('mine')\ndef late(): from mixers.late import x\n",
        "parts/__init__.py": "from . import wide",
        "parts/gate.py": "from ..shared import half",
        "parts/wide.py": "",
        "shared.py": "half = 0.5",
        "late.py": "x = 1",
        "unused.py": "",
        "wrong.py": "def (",
    }
    for name, source in sources.items():
        (package / name).write_text(source, encoding="utf-8")

    def trial_id() -> str:
        done = run(site, "-c", IDS)
        assert done.returncode == 0, done.stderr
        return done.stdout

    before = trial_id()
    for name, source in sources.items():
        (package / name).write_text(f"{source}\n# edited", encoding="utf-8")
        assert (trial_id() == before) == (name in ("unused.py", "wrong.py")), name
        (package / name).write_text(source, encoding="utf-8")
    assert trial_id() == before
