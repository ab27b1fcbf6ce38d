import json
import re

import pytest

from activemem.grammar.vocabulary import SPECS, builtin_names

from ...quick_cases import one_in

SHOWN = """\
persistent_conv(k, act=relu)                                    mixer, activemem

  convolution padded with trained vectors, shared by all such convolutions of
    equal k
  y = act(W ∗ [p ; x ; p′] + b)
  Dowdell and Zhang 2019, section 3.1

  k    kernel width in tokens: whole number, 1 to 1024; required
  act  activation: relu, gelu, gelu_tanh, tanh, leaky_relu or relu2; default
       relu

  persistent_conv(k=20) at width 128, 40 tokens, in a bidirectional model
    parameters    327,808, and 2,432 in the padding of persistent_conv(k=20)
    kFLOPs/token  655.4
    reach         9 ← · → 10
    cache/token   0 B kept of each past token in a stream
    fixed state   4.9 kB kept in a stream of any length
"""


def test_every_block_is_listed_with_its_signature_role_and_summary(run):
    result = run("list", "blocks")
    owner, *lines = result.stdout.splitlines()
    assert (result.exit_code, owner, result.stderr) == (0, "activemem", "")
    assert [re.split(r"[ (]", line.strip())[0] for line in lines] == list(SPECS.own_names())
    assert any("pos_values=false)  mixer       attention over a window" in line for line in lines)
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
        "summary": "one step of a convolutional gated recurrent unit",
        "owner": "activemem",
    }


def test_a_block_is_shown_with_its_parameters_equation_source_cost_and_reach(run):
    result = run("show", "persistent_conv(k=20)")
    assert (result.exit_code, result.stdout, result.stderr) == (0, SHOWN, "")


def test_a_block_by_its_name_alone_gets_small_values_for_what_it_needs(run, golden):
    *_, at, parameters, _, _, state, window = run("show", "conv").stdout.splitlines()
    assert at == "  conv(k=4) at width 128, 40 tokens, in a bidirectional model"
    assert parameters == "    parameters    65,664"
    golden((state, window))
    assert "  sa at width 128, 40 tokens, in a bidirectional model\n" in run("show", "sa").stdout


def test_the_short_convolution_of_a_block_is_explained_by_what_the_block_computes(run):
    words = " ".join(run("show", "min_gru").stdout.split())
    assert "short_conv kernel size of a causal depthwise convolution of W_z x and W_h x" in words


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
