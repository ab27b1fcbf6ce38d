"""`docs/reference/recipes.md` and `blocks.md`: recipes parse, Python runs, and rules are the parser's.

The output and the code on these pages are compared in `test_documents`.
"""

import re
from pathlib import Path

import pytest

import activemem.grammar
from activemem.grammar import parse
from activemem.grammar.vocabulary.spec import builtin_names

ROOT = Path(__file__).parents[2]
PAGE, BLOCKS = (
    (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8") for page in ("recipes.md", "blocks.md")
)


def fences(language):
    """Return the contents of code fences in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE + BLOCKS, re.DOTALL | re.MULTILINE)


FORMS = re.findall(r"^\| (\w+) \| [^|]* \| `(.+)` \|$", PAGE, re.MULTILINE)
LINES = [line for fence in fences("recipe") for line in fence.splitlines()]


@pytest.mark.parametrize("text", [*(text for name, text in FORMS if name != "each"), *LINES])
def test_a_recipe_of_the_page_is_one_and_is_canonical(text):
    assert parse(text).text == text


def test_every_form_of_the_language_has_an_example():
    assert [name for name, _ in FORMS] == [
        *("block", "sum", "series", "repeat", "tied", "each"),
        *("hole", "choice", "integer"),
    ]


def test_the_example_of_each_is_written_out():
    assert parse(dict(FORMS)["each"]).text == "choice(sa, conv(k=3)) >> choice(sa, conv(k=3))"


def test_the_example_of_precedence_says_the_same_with_parentheses():
    one, other = re.search(r"`([^`]+)` is read as\n`([^`]+)`", PAGE).groups()
    assert parse(one).root == parse(other).root


@pytest.mark.parametrize("program", fences("python"))
def test_the_python_of_the_page_runs(program):
    exec(compile(program, "docs/reference/recipes.md", "exec"), {})


def test_the_rules_are_those_in_the_grammars_own_words():
    stated = re.search(r"generated: grammar -->\n\n```\n(.*?)```", PAGE, re.DOTALL)[1]
    for line in stated.splitlines():
        assert " ".join(line.split()) in " ".join(activemem.grammar.__doc__.split())


def test_every_block_is_in_both_tables():
    tables = BLOCKS.partition("\n## Heads")[0]
    for name in builtin_names():
        assert len(re.findall(rf"^\| `{name}\b", tables, re.MULTILINE)) == 2


def test_the_page_is_two_pages():
    assert len(PAGE.splitlines()) <= 300
