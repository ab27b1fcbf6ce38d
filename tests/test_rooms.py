"""Folders: purposes, the list of packages, faces, unique class names, and what the command line imports."""

import ast
import re
from collections import defaultdict
from functools import cache
from importlib import import_module

import pytest

from activemem.studies.presentation.reader import KINDS

from .product_classes import ROOT, nodes_of, syntax_trees, tree_of

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
    outside = {path: tree_of(path) for path in ROOT.glob("*.py")}
    return {path.relative_to(ROOT): tree for path, tree in (outside | syntax_trees()).items()}


def test_no_two_classes_share_a_name():
    owners = defaultdict(list)
    for path, tree in trees().items():
        for node in nodes_of(tree):
            if isinstance(node, ast.ClassDef):
                owners[node.name].append(str(path))
    assert {name: paths for name, paths in owners.items() if len(paths) > 1} == {}


def imports_engine(path, tree):
    """Return whether a module of the command line imports the engine, for types or when it runs."""
    found = (node for node in nodes_of(tree) if isinstance(node, ast.ImportFrom))
    return any(
        node.level == len(path.parts) and (node.module or "").partition(".")[0] == "engine" for node in found
    )


def test_few_files_of_the_command_line_know_the_engine():
    found = {
        str(path) for path, tree in trees().items() if path.parts[0] == "cli" and imports_engine(path, tree)
    }
    assert len(found) <= 5, f"use a method of StudyResults, or a name of activemem, instead: {sorted(found)}"


def test_one_module_unpacks_the_metrics_of_a_row_and_one_those_of_frames():
    unpacks = re.compile(r'struct\.field\("(name|value)"\)|row\["metrics"\]')
    found = {str(path) for path in trees() if unpacks.search((ROOT / path).read_text(encoding="utf-8"))}
    assert found == {"storage/rows.py", "studies/planning/final_values.py"}


def test_no_module_asks_of_which_kind_a_table_or_figure_is():
    kinds = {kind.__name__ for role in ("table", "curve") for kind in KINDS[role].values()}
    calls = (
        (path, ast.unparse(node))
        for path, tree in trees().items()
        if path.parts[:2] != ("reporting", "kinds")  # a kind's own module may ask
        for node in nodes_of(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
    )
    found = {f"{path}: {text}" for path, text in calls if kinds & set(re.findall(r"\w+", text))}
    assert found == set(), "add a question to TableKind or CurveKind instead"


def test_no_module_outside_names_a_single_expansion():
    files = {path.stem for path in (ROOT / "studies/expansions").glob("*.py")} - {"__init__"}
    single = re.compile(rf"expansions(\.({'|'.join(files)})\b| import )")
    texts = {str(path): (ROOT / path).read_text(encoding="utf-8") for path in trees()}
    outside = {path: text for path, text in texts.items() if not path.startswith("studies/expansions/")}
    assert {path: found[0] for path, text in outside.items() if (found := single.search(text))} == {}


FACES = [room for room in ROOMS if (room / "__init__.pyi").exists()]


@pytest.mark.parametrize("room", FACES, ids=lambda room: str(room.relative_to(ROOT)))
def test_a_face_has_every_name_that_it_lists(room):
    face = import_module(".".join(("activemem", *room.relative_to(ROOT).parts)))
    names = re.findall(r"^from \.\S* import (\w+) as \1$", (room / "__init__.pyi").read_text("utf-8"), re.M)
    assert set(face.__all__) <= set(names) != set()
    for name in names:
        getattr(face, name)
        hidden = (room / f"{name}.py", room / name / "__init__.py")
        assert not any(path.exists() for path in hidden), f"the module {name} would hide this name"
