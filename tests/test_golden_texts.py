"""Golden texts: each is one that a test compares, and a new or another text fails its test."""

import ast
import re

import pytest

from .golden import GoldenTexts, read_texts
from .product_classes import ROOT, nodes_of, tree_of

TESTS = ROOT / "tests"


def golden_tests(path):
    """Return the names of the tests of a module that compare golden texts."""
    functions = (node for node in nodes_of(tree_of(path)) if isinstance(node, ast.FunctionDef))
    return {node.name for node in functions if "golden" in [each.arg for each in node.args.args]}


def test_every_golden_text_is_that_of_a_test():
    compared = {path.with_suffix(".txt"): golden_tests(path) for path in TESTS.rglob("test_*.py")}
    kept = {
        path: {re.match(r"\w+", name)[0] for name in read_texts(path)} for path in TESTS.rglob("test_*.txt")
    }
    assert kept == {path: tests for path, tests in compared.items() if tests}


def golden_texts(folder):
    return GoldenTexts(folder / "test_it.txt", "test_it", str(folder))


def test_texts_that_are_new_are_written_and_reported(tmp_path):
    texts = golden_texts(tmp_path)
    texts(f"one line\n\nof {tmp_path}/file\n")
    texts(["an item", "another"])
    assert texts.added == ["test_it", "test_it (2)"]
    assert read_texts(tmp_path / "test_it.txt") == {
        "test_it": "one line\n\nof TMP_PATH/file\n",
        "test_it (2)": "- an item\n- another",
    }


def test_texts_are_compared_in_their_order(tmp_path):
    first, again = golden_texts(tmp_path), golden_texts(tmp_path)
    first("one")
    with first.raises(ValueError):
        raise ValueError("two")
    again("one")
    with pytest.raises(pytest.fail.Exception, match=r"(?s)test_it.txt has another text.*-two\n\+three"):
        again("three")
    assert again.added == []
