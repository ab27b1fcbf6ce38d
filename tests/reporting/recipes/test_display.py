"""Recipes display the same in Python as on the command line."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from typer.testing import CliRunner

from activemem import ActivememError, RecipeError, compare_recipes, ff, sa, show_recipe
from activemem.cli import command_line

TEXTS = ("4 * (sa >> ff(512))", "ff(512)")
MODEL = {"d_model": 128, "vocab": 20, "causal": True}
OPTIONS = (
    *("--d-model", "128", "--vocab", "20", "--causal"),
    *("--length", "40", "--batch", "8"),
)


def printed(*arguments: str) -> str:
    """Return the output of a command."""
    return CliRunner().invoke(command_line, ["recipe", *arguments, *OPTIONS]).stdout


def test_a_recipe_shows_what_the_command_prints():
    shown = show_recipe(4 * (sa >> ff(512)), length=40, batch=8, **MODEL)
    assert str(shown) == printed("show", TEXTS[0])
    assert {"schema": 3, **json.loads(json.dumps(asdict(shown.costs)))} == json.loads(
        printed("show", TEXTS[0], "--json")
    )


def test_a_comparison_shows_what_the_command_prints():
    compared = compare_recipes(TEXTS, length=40, batch=8, **MODEL)
    assert str(compared) == printed("compare", *TEXTS)
    costs = json.loads(json.dumps([asdict(each) for each in compared.costs]))
    assert costs == json.loads(printed("compare", *TEXTS, "--json"))["recipes"]
    assert compared._repr_html_().startswith("<pre>  a  4 * (sa &gt;&gt; ff(512))")


def test_a_wrong_or_open_recipe_is_refused(golden):
    with golden.raises(RecipeError):
        show_recipe("{mixer} >> ff(8)", d_model=8, vocab=8, length=8)


def test_the_faults_of_all_compared_recipes_come_in_one_error(golden):
    with pytest.raises(ActivememError) as caught:
        compare_recipes(["sa(head=8)", "sa", "{mixer}"], d_model=8, vocab=8, length=8)
    golden(str(caught.value))
    golden(str(caught.value))


def test_one_recipe_has_nothing_to_be_compared_with(golden):
    with golden.raises(ActivememError):
        compare_recipes(["sa"], d_model=8, vocab=8, length=8)
