"""Every message of the grammar is asserted somewhere: in a golden text or in a test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
GRAMMAR = TESTS.parent / "grammar"
TELLING = {
    "add",
    "_report_here",
    "_report",
    "_report_unexpected",
    "_make_error",
    "_check_same_output",
    "Fault",
    "ValueError",
}
"""Functions that take a message, in addition to the grammar's exceptions."""


def _is_telling(node: ast.AST) -> bool:
    """Return whether a node contains a message."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in TELLING or name.endswith("Error")
        case ast.Assign(targets=[ast.Name(id="message" | "what" | "wanted" | "most")]):
            return True
    return False


def _pattern(node: ast.JoinedStr | ast.Constant) -> str:
    """Return a message as a pattern with wildcards for its placeholders."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(re.escape(str(p.value)) if isinstance(p, ast.Constant) else ".*" for p in parts)


def _texts(node: ast.AST) -> Iterator[ast.JoinedStr | ast.Constant]:
    """Yield the outermost strings in a node."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _texts(child)


def _messages() -> Iterator[tuple[str, str]]:
    """Yield every message of the grammar with its place."""
    for path in sorted(GRAMMAR.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for text in _texts(node) if _is_telling(node) else ():
                pattern = _pattern(text)
                if len(re.findall(r"[a-z]{2,}", pattern)) >= 2:  # shorter ones are pieces of others
                    yield f"{path.relative_to(GRAMMAR)}:{text.lineno}", pattern


@cache
def _asserted() -> str:
    """Return all expected messages of the tests, one per line."""
    lines = [path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("*.txt"))]
    for path in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        lines += [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return "\n".join(line for line in lines if isinstance(line, str))


FOUND = sorted(set(_messages()))


@pytest.mark.parametrize("pattern", [pattern for _, pattern in FOUND], ids=[where for where, _ in FOUND])
def test_a_message_is_asserted(pattern: str):
    assert re.search(pattern, _asserted())


def test_the_messages_of_the_grammar_are_found():
    assert len(FOUND) >= 70
