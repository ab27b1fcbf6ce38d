"""The syntax trees and the classes of the product, for tests of the code itself."""

from __future__ import annotations

import ast
from functools import cache
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("blocks", "cli", "engine", "grammar", "reporting", "storage", "studies", "tracking")
OPTIONAL = {"transformers"}
"""Packages that some modules need, which are left out where these are not installed."""


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_bytes())


@cache
def syntax_trees() -> dict[Path, ast.Module]:
    """Return the syntax tree of every module by its path."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert len(paths) > 200
    return {path: tree_of(path) for path in paths}


@cache
def nodes_of(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Return all nodes of a syntax tree, which is walked once for all tests."""
    return tuple(ast.walk(tree))


@cache
def own_classes() -> set[type]:
    """Return every class that is defined at the top of a module."""
    found: set[type] = set()
    for path in syntax_trees():
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(("activemem", *parts)).removesuffix(".__init__")
        try:
            module = import_module(name)
        except ModuleNotFoundError as error:
            assert error.name in OPTIONAL, error
            continue
        found |= {
            each for each in vars(module).values() if isinstance(each, type) and each.__module__ == name
        }
    return found
