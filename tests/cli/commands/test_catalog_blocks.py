import json
import re

import pytest

from activemem.grammar.vocabulary import SPECS, builtin_names

from ...quick_cases import one_in


def test_every_block_is_listed_with_its_signature_role_and_summary(run):
    result = run("list", "blocks")
    owner, *lines = result.stdout.splitlines()
    assert (result.exit_code, owner, result.stderr) == (0, "activemem", "")
    assert [re.split(r"[ (]", line.strip())[0] for line in lines] == list(SPECS.own_names())
    assert any(re.search(r"pos_values=false\) +mixer +attention", line) for line in lines)
    assert any(
        re.fullmatch(r"  conv\(k, act=relu\) +mixer +convolution over the sequence", line) for line in lines
    )


def test_the_list_as_json_leaves_nothing_out(run):
    listed = json.loads(run("list", "blocks", "--json").stdout)
    blocks = {each["name"]: each for each in listed["names"]}
    assert blocks.keys() == set(SPECS.own_names())
    assert listed["problems"] == []
    assert blocks["cgru"] == {
        "kind": "blocks",
        "name": "cgru",
        "role": "mixer",
        "signature": "cgru(k)",
        "summary": SPECS["cgru"].summary,
        "owner": "activemem",
    }


def test_a_block_is_shown_with_its_parameters_equation_source_cost_and_reach(run, golden):
    result = run("show", "persistent_conv(k=20)")
    assert (result.exit_code, result.stderr) == (0, "")
    golden(result.stdout)


def test_a_block_by_its_name_alone_gets_small_values_for_what_it_needs(run, golden):
    *_, at, parameters, _, _, state, window = run("show", "conv").stdout.splitlines()
    assert at.startswith("  conv(k=4) at ")
    assert parameters == "    parameters    65,664"
    golden((state, window))
    assert "\n  sa at " in run("show", "sa").stdout


def test_the_short_convolution_of_a_block_is_explained_by_what_the_block_computes(run):
    words = " ".join(run("show", "min_gru").stdout.split())
    assert re.search("short_conv kernel size .* W_z x and W_h x", words)


@pytest.mark.parametrize("name", one_in(2, builtin_names()))
def test_every_block_is_shown_within_eighty_columns_and_says_in_json_what_it_is(name, run):
    assert max(map(len, run("show", name).stdout.splitlines())) <= 80
    shown = json.loads(run("show", name, "--json").stdout)
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
