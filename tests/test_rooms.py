"""Every folder describes its purpose, the list of packages is complete, and class names are unique."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OUTSIDE = ("tests", "docs", "bench", "build")
TOPS = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name not in OUTSIDE]
ROOMS = sorted([ROOT, *(path.parent for top in TOPS for path in top.rglob("__init__.py"))])


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(ROOT)))
def test_a_folder_says_what_it_is_for(room):
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))
    assert text.partition("\n\n")[0].endswith(".")


def test_the_list_of_packages_has_every_room():
    listed = re.search(
        r"^packages = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M | re.S
    )
    names = {".".join(("activemem", *room.relative_to(ROOT).parts)) for room in ROOMS}
    assert set(re.findall(r'"(.*)"', listed[1])) == names


@cache
def trees():
    """Return the syntax tree of every module by its path."""
    paths = [path for room in ROOMS for path in room.glob("*.py")]
    return {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def test_no_two_classes_share_a_name():
    owners = defaultdict(list)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                owners[node.name].append(str(path))
    assert {name: paths for name, paths in owners.items() if len(paths) > 1} == {}


def imports_engine(path, tree):
    """Return whether a module of the command line imports the engine, for types or when it runs."""
    found = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return any(
        node.level == len(path.parts) and (node.module or "").partition(".")[0] == "engine" for node in found
    )


def test_few_files_of_the_command_line_know_the_engine():
    found = {
        str(path) for path, tree in trees().items() if path.parts[0] == "cli" and imports_engine(path, tree)
    }
    assert len(found) <= 5, f"use a method of StudyResults, or a name of activemem, instead: {sorted(found)}"
