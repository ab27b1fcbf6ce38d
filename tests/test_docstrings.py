"""Docstrings name no parameter that no longer exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .product_classes import ROOT, nodes_of, syntax_trees

NAME = re.compile(r"(?<!`)`([a-z][a-z0-9]*(?:_[a-z0-9]+)*)`(?!`)")
OF_OTHERS = {"conv1d", "and", "or", "except"}
"""Names of torch, and words of claims."""

EXAMPLES = {"delay", "unix_find_other", "conv_k_2", "dev_name", "test_name", "few"}
"""Names that docstrings use as examples or patterns."""

Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _words(tree: ast.Module) -> Iterator[str]:
    """Yield the words of all strings but docstrings and sentences: keys, recipes, names."""
    documented = [each for each in nodes_of(tree) if isinstance(each, Documented | ast.Module)]
    first = (each.body[0] for each in documented if each.body)
    docstrings = {id(each.value) for each in first if isinstance(each, ast.Expr)}
    for node in nodes_of(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
            and " " not in node.value
        ):
            yield from re.findall(r"\w+", node.value)


def _shared_names(tree: ast.Module) -> set[str]:
    """Return what other modules may name: classes, functions, their fields, and words of strings."""
    found = set(_words(tree))
    for node in nodes_of(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name)):
                found.add(name)
            case _:
                pass
    return found


def _own_names(tree: ast.Module) -> set[str]:
    """Return every identifier of a module."""
    found: set[str] = set()
    for node in nodes_of(tree):
        match node:
            case (
                ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name))
            ):
                found.add(name)
            case ast.alias(name=name):
                found |= set(name.split("."))
            case _:
                pass
    return found


def unknown_names(trees: dict[str, ast.Module]) -> Iterator[str]:
    """Yield the names in backticks of docstrings that neither their module nor another one has."""
    shared = (OF_OTHERS | EXAMPLES).union(*map(_shared_names, trees.values()))
    shared |= {part for path in trees for part in path.removesuffix(".py").split("/")}
    for path, tree in trees.items():
        known = shared | _own_names(tree)
        for node in nodes_of(tree):
            if isinstance(node, Documented) and (text := ast.get_docstring(node, clean=False)) is not None:
                yield from (
                    f"{path}: {node.name}: {name}" for name in NAME.findall(text) if name not in known
                )


def test_names_in_backticks_exist() -> None:
    trees = {path.relative_to(ROOT).as_posix(): tree for path, tree in syntax_trees().items()}
    assert not list(unknown_names(trees))


def test_a_parameter_that_is_gone_is_found() -> None:
    code = "def area(height):\n    '''Multiply `height` and `breadth`, in `unit`.'''\n    return height\n"
    other = "def volume(breadth):\n    unit = 'cm'\n"
    trees = {"one.py": ast.parse(code), "two.py": ast.parse(other)}
    assert list(unknown_names(trees)) == ["one.py: area: breadth", "one.py: area: unit"]
