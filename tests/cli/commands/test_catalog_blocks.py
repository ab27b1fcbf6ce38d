import json
import re

import pytest

from activemem.grammar.vocabulary.spec import SPECS, builtin_names

from ...quick_cases import one_in


def test_every_block_is_listed_with_its_summary(run):
    result = run("list", "blocks")
    key, *lines = result.stdout.splitlines()
    assert (result.exit_code, key, result.stderr) == (0, "[model] recipe", "")
    assert [line.split()[0] for line in lines if not line.startswith("   ")] == list(SPECS.own_names())
    assert any(re.fullmatch(r"  conv +convolution over the sequence", line) for line in lines)


def test_the_list_as_json_leaves_nothing_out(run):
    listed = json.loads(run("list", "blocks", "--json").stdout)
    blocks = {each["name"]: each for each in listed["names"]}
    assert blocks.keys() == set(SPECS.own_names())
    assert listed["problems"] == []
    expected = {
        "kind": "blocks",
        "title": SPECS["cgru"].summary,
        "owner": "activemem",
        "key": "[model] recipe",
    }
    assert expected.items() <= blocks["cgru"].items()


def test_a_block_is_shown_with_its_parameters_equation_source_cost_and_reach(run, golden):
    result = run("show", "persistent_conv(k=20)")
    assert (result.exit_code, result.stderr) == (0, "")
    golden(result.stdout)


def test_a_block_by_its_name_alone_gets_small_values_for_what_it_needs(run):
    words = " ".join(run("show", "conv").stdout.split())
    assert (
        "costs of conv(k=4) at width 128, 40 tokens, in a bidirectional model: 65,664 parameters; " in words
    )
    assert "stream keeps 0 B of each past token, and 768 B in a stream of any length" in words
    assert "costs of sa at " in " ".join(run("show", "sa").stdout.split())


def test_the_short_convolution_of_a_block_is_explained_by_what_the_block_computes(run):
    words = " ".join(run("show", "min_gru").stdout.split())
    assert re.search("short_conv= kernel size .* W_z x and W_h x", words)


@pytest.mark.parametrize("name", one_in(2, builtin_names()))
def test_every_block_is_shown_within_eighty_columns_and_says_in_json_what_it_is(name, run):
    assert max(map(len, run("show", name).stdout.splitlines())) <= 80
    shown = next(
        each for each in json.loads(run("show", name, "--json").stdout)["names"] if each["kind"] == "blocks"
    )
    assert (shown["name"], shown["owner"]) == (name, "activemem")
    assert shown["example"]["recipe"].startswith(name)
    assert set(shown["example"]["reach"]) == {"left", "right"}


@pytest.mark.parametrize(
    "name",
    [
        "highway_cnv",
        "conv(k=0)",
        "sa + ff(3)",
        "conv(k={n})",
        "conv(k=integer(3, 9))",
    ],
)
def test_names_that_are_not_blocks_are_reported(name, run, golden):
    result = run("show", name)
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)
