"""Blocks of other packages: found when they are named, and harmless when they are broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SPEC = """\
from activemem.grammar import Reach, Role, Spec, lookup

def spec(name):
    return Spec(
        name=name, role=Role.CHANNEL, summary="it", equation="y = x", source="here",
        reach=lambda *_: Reach(left=0, right=0),
    )
"""
PACKAGES = {
    "sound": (["keep = sound:KEEP"], f"{SPEC}\nKEEP = spec('keep')\n"),
    "eager": (
        ["hasty = eager:HASTY"],
        f"{SPEC}\nfrom activemem.grammar import register\nHASTY = register(spec('hasty'))\n",
    ),
    "absent": (["gone = absent_module:GONE"], ""),
    "raising": (["burst = raising:BURST"], "raise RuntimeError('first\\nsecond \\u202e')\n"),
    "leaving": (["left = leaving:LEFT"], "raise SystemExit(3)\n"),
    "lacking": (["lost = lacking:LOST"], ""),
    "mistaken": (["number = mistaken:NUMBER"], "NUMBER = 3\n"),
    "renamed": (["one = renamed:OTHER"], f"{SPEC}\nOTHER = spec('other')\n"),
    "taking": (["sa = taking:SA"], f"{SPEC}\nSA = spec('sa')\n"),
    "reserved": (["choice = reserved:CHOICE"], f"{SPEC}\nCHOICE = spec('choice')\n"),
    "first": (["both = first:BOTH"], f"{SPEC}\nBOTH = spec('both')\n"),
    "second": (["both = second:BOTH"], f"{SPEC}\nBOTH = spec('both')\n"),
}
MODULES = {"raising": ["keep = absent_module:Keep"], "sound": ["hasty = sound:KEEP"]}

AT = " of activemem.vocabulary: "
BOTH = "only one package may bring a name, so none of them is used"
RESERVED = "block 'choice' of reserved 1.0: the recipe language has that word"
PROBLEMS = {
    "both": f"first 1.0 and second 1.0, entry point 'both'{AT}{BOTH}",
    "burst": f"raising 1.0, entry point 'burst'{AT}RuntimeError: first second  ",
    "choice": f"reserved 1.0, entry point 'choice'{AT}{RESERVED}",
    "gone": f"absent 1.0, entry point 'gone'{AT}ModuleNotFoundError: No module named 'absent_module'",
    "left": f"leaving 1.0, entry point 'left'{AT}SystemExit: 3",
    "lost": f"lacking 1.0, entry point 'lost'{AT}AttributeError: module 'lacking' has no attribute 'LOST'",
    "number": f"mistaken 1.0, entry point 'number'{AT}expected a Spec, got int",
    "one": f"renamed 1.0, entry point 'one'{AT}expected the specification of 'one', got that of 'other'",
    "sa": f"taking 1.0, entry point 'sa'{AT}block 'sa' of taking 1.0 is already defined by activemem",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages, most of them broken."""
    folder = tmp_path_factory.mktemp("site")
    for name, (specifications, module) in PACKAGES.items():
        (folder / f"{name}.py").write_text(module, encoding="utf-8")
        about = folder / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8"
        )
        lines = ["[activemem.vocabulary]", *specifications, "[activemem.blocks]", *MODULES.get(name, ())]
        (about / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python where these packages are installed."""
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, encoding="utf-8", env=environment, check=False
    )


def test_broken_packages_are_told_and_stop_nothing_else(site: Path):
    done = run(site, "-m", "activemem", "block", "list", "--json")
    listed = json.loads(done.stdout)
    owners = {each["name"]: each["owner"] for each in listed["blocks"]}
    assert done.returncode == 0
    assert (owners["keep"], owners["hasty"], owners["sa"]) == ("sound 1.0", "eager 1.0", "activemem")
    assert not owners.keys() & (PROBLEMS.keys() - {"sa"})
    assert done.stderr.splitlines() == list(PROBLEMS.values())
    assert [each["name"] for each in listed["problems"]] == list(PROBLEMS)


def test_a_recipe_says_why_a_block_cannot_be_used(site: Path):
    program = """
from activemem import RecipeError, parse
for name in ("keep >> hasty", "both", "burst", "kep"):
    try:
        print(parse(name))
    except RecipeError as error:
        print(error.faults[0].message)
"""
    assert run(site, "-c", program).stdout.splitlines() == [
        "keep >> hasty",
        f"the block 'both' cannot be used: {PROBLEMS['both']}",
        f"the block 'burst' cannot be used: {PROBLEMS['burst']}",
        "unknown block 'kep'; nearest: keep",
    ]


def test_a_block_whose_module_is_broken_or_missing_cannot_be_built(site: Path):
    program = """
from activemem import build
try:
    build("keep >> hasty >> sa", d_model=8, vocab=5)
except ValueError as error:
    print(error)
"""
    at = " of activemem.blocks: "
    found = "expected a class of activemem.blocks.Block, got "
    lines = run(site, "-c", program).stdout.splitlines()
    assert lines[0] == "recipe 'keep >> hasty >> sa' cannot be built"
    assert lines[1] == (
        f"  block 'keep' has no module: raising 1.0, entry point 'keep'{at}"
        "ModuleNotFoundError: No module named 'absent_module'"
    )
    assert lines[2].startswith(
        f"  block 'hasty' has no module: sound 1.0, entry point 'hasty'{at}{found}Spec("
    )
    assert len(lines) == 3


def test_packages_are_looked_through_only_when_a_name_is_unknown(site: Path):
    program = """
import sys
from activemem.grammar import parse
parse("4 * (sa + highway_conv(k=20) >> ff(512, act=gelu))")
print("importlib.metadata" in sys.modules)
parse("keep")
print("sound" in sys.modules, "raising" in sys.modules)
"""
    assert run(site, "-c", program).stdout.splitlines() == ["False", "True False"]
