"""Every recipe of identity.txt has its canonical text, every one of wrong.txt its whole message."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from activemem.errors import MAX_FAULTS
from activemem.grammar import Fault, RecipeError, parse

HERE = Path(__file__).parent


def _identities() -> list[tuple[str, str]]:
    lines = (HERE / "identity.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" -> ") for line in lines if not line.startswith("#")]
    return [(written, canonical) for written, canonical in pairs]


def _wrongs() -> list[tuple[str, str]]:
    sections = (HERE / "wrong.txt").read_text(encoding="utf-8").split("----------\n")[1:]
    pairs = [section.rstrip("\n").split("\n", 1) for section in sections]
    return [(recipe, message) for recipe, message in pairs]


def _unescaped(text: str) -> str:
    text = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
    return text.replace("\\n", "\n").replace("\\t", "\t")


@pytest.mark.usefixtures("more_blocks")
@pytest.mark.parametrize(("written", "canonical"), _identities(), ids=lambda text: text)
def test_a_recipe_has_one_canonical_text(written: str, canonical: str):
    recipe = parse(written)
    assert recipe.text == canonical
    assert str(recipe) == canonical
    assert parse(canonical).root == recipe.root


@pytest.mark.usefixtures("more_blocks")
@pytest.mark.parametrize(("written", "message"), _wrongs(), ids=[recipe for recipe, _ in _wrongs()])
def test_a_wrong_recipe_gets_its_whole_message(written: str, message: str):
    with pytest.raises(RecipeError) as caught:
        parse(_unescaped(written))
    assert str(caught.value) == message


def test_there_are_enough_wrong_recipes_and_none_twice():
    recipes = [recipe for recipe, _ in _wrongs()]
    assert len(recipes) >= 60
    assert len(set(recipes)) == len(recipes)


def test_an_error_holds_the_text_and_the_faults_and_can_be_pickled():
    with pytest.raises(RecipeError) as caught:
        parse("sa(8 >> ff(0)")
    error = caught.value
    assert error.text == "sa(8 >> ff(0)"
    assert error.faults == (
        Fault(3, 13, "heads must be a whole number, got 8 >> ff(0)"),
        Fault(2, 3, "this parenthesis is never closed", detected_at=13),
    )
    copy = pickle.loads(pickle.dumps(error))  # as Ray does with an exception
    assert str(copy) == str(error)


def test_only_the_first_of_very_many_faults_are_reported():
    with pytest.raises(RecipeError) as caught:
        parse(">> ".join(["nothing"] * 200))
    assert len(caught.value.faults) == MAX_FAULTS
    told = str(caught.value).splitlines()
    assert told[0] == "recipe: at least 50 faults"
    assert sum("unknown block 'nothing'" in line for line in told) == 10
    assert told[-1] == "    and 40 more"


def test_parentheses_that_are_too_deep_are_reported_once(golden):
    with pytest.raises(RecipeError) as caught:
        parse("(" * 1000 + "sa")
    golden([fault.message for fault in caught.value.faults])


def test_a_text_beyond_any_use_is_not_read(golden):
    with pytest.raises(RecipeError) as caught:
        parse("sa" * 6000)
    golden([fault.message for fault in caught.value.faults])


def test_a_text_that_grows_too_long_in_canonical_form_is_refused():
    with pytest.raises(RecipeError) as caught:
        parse("+".join(["sa"] * 3300))
    (fault,) = caught.value.faults
    assert fault.message.endswith(", got 16497")


REPAIR = re.compile(
    r"(?:: write|for example|without names, as in|for several depths write|and part: write) (.+)$"
)
"""The end of a message that shows how the wrong part is written."""


@pytest.mark.usefixtures("more_blocks")
@pytest.mark.parametrize("written", ["tied", "repeat", "each"])
def test_a_repair_is_a_recipe_with_the_blocks_of_the_wrong_one(written: str):
    words = {"tied": "tied", "repeat": "a repeat is", "each": "each "}[written]
    repairs = [
        (recipe, found[1])
        for recipe, message in _wrongs()
        for line in message.splitlines()
        if re.search(rf"\^ +(?:expected )?{words}|inside {words}", line) and (found := REPAIR.search(line))
    ]
    assert len(repairs) >= 3
    for recipe, repair in repairs:
        parse(repair)
        blocks, own = (set(re.findall(r"[a-z_]\w*", text)) for text in (repair, recipe))
        assert blocks - {"choice", "each", "tied"} <= own or not own - {"choice", "each", "tied"}
