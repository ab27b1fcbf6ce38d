import json

import pytest

FOUR_FAULTS = """\
recipe: 4 faults

    4 * (sa(head=8) + highway_cnv(k=0) >> ff(512)
  1         ^^^^                                    sa has no parameter 'head'; nearest: heads
  2                   ^^^^^^^^^^^                   unknown block 'highway_cnv'; nearest: highway_conv
  3                               ^^^               k must be at least 1, got 0
  4     ^                                           this parenthesis is never closed
"""

TAKEN_APART = """\
4 * (sa + conv(k=20) >> ff(512))                                     id e3b6a2bf

  part                parameters  MFLOPs/token  reach       state/token
  embedding                2,560           0.0
  4 ×                  2,888,704           6.1  all              8.2 kB
  ├─ sa + conv(k=20)     590,208           1.3  all              2.0 kB
  │  ├─ sa               262,144           0.6  all              2.0 kB
  │  └─ conv(k=20)       327,808           0.7  9 ← · → 10
  └─ ff(512)             131,968           0.3  0
  final norm                 256           0.0
  output                   2,580           0.0  0
  total                2,894,100           6.1  all              8.2 kB

  bidirectional, pre-norm, 40 tokens
"""

SIZES = ("--d-model", "128", "--length", "40", "--vocab", "20")


def test_a_right_recipe_is_answered_by_its_canonical_text_and_id(run):
    result = run("recipe", "check", "4 * ((sa + highway_conv(k=20)) >> ff(filter=512))")
    assert result.stdout == "4 * (sa + highway_conv(k=20) >> ff(512))   id 6eefcde3\n"
    assert (result.exit_code, result.stderr) == (0, "")


def test_check_as_json_lists_what_is_still_open(run):
    result = run("recipe", "check", "{mixer} >> ff(integer(8, 64))", "--json")
    assert json.loads(result.stdout) == {
        "recipe": "{mixer} >> ff(integer(8, 64))",
        "id": json.loads(result.stdout)["id"],
        "holes": ["mixer"],
        "dimensions": ["ff.filter"],
    }


def test_a_wrong_recipe_is_drawn_on_standard_error_with_all_its_faults(run):
    result = run("recipe", "check", "4 * (sa(head=8) + highway_cnv(k=0) >> ff(512)")
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", FOUR_FAULTS)


def test_the_faults_of_a_wrong_recipe_are_data_too(run):
    result = run("recipe", "check", "sa(head=8)", "--json")
    assert json.loads(result.stdout) == {
        "text": "sa(head=8)",
        "faults": [{"start": 3, "end": 7, "message": "sa has no parameter 'head'; nearest: heads"}],
    }
    assert result.exit_code == 2


def test_a_recipe_is_taken_apart(run):
    result = run("recipe", "show", "4 * (sa + conv(k=20) >> ff(512))", *SIZES)
    assert (result.exit_code, result.stdout, result.stderr) == (0, TAKEN_APART, "")


def test_a_recipe_with_long_parts_is_taken_apart_within_eighty_columns(run):
    result = run("recipe", "show", "4 * (sa + highway_conv(k=20) + persistent_conv(k=20) >> ff(512))", *SIZES)
    assert max(map(len, result.stdout.splitlines())) == 80
    assert "  ├─ sa + highway_conv(k=20)…" in result.stdout


def test_a_long_recipe_has_its_id_on_a_line_of_its_own(run):
    text = "2 * (conv(k=20) >> ff(1024)) >> 6 * (sa >> ff(1024)) >> 2 * (conv(k=20) >> ff(1024))"
    first, second, *_ = run("recipe", "show", text, *SIZES).stdout.splitlines()
    assert (first, second[:3]) == (text, "id ")


def test_a_causal_recipe_does_not_see_to_the_right(run):
    *_, total, _, conditions = run("recipe", "show", "8 * conv(k=20)", *SIZES, "--causal").stdout.splitlines()
    assert total.endswith("152 ← · → 0")
    assert conditions == "  causal, pre-norm, 40 tokens"


def test_the_parts_as_json_add_up_to_the_whole(run):
    arguments = ("recipe", "show", "4 * (sa + conv(k=20) >> ff(512))", *SIZES, "--norm", "post", "--json")
    whole = json.loads(run(*arguments).stdout)
    assert whole["parameters"] == sum(part["parameters"] for part in whole["parts"])
    assert whole["flops"] == sum(part["flops"] for part in whole["parts"])
    assert whole["training_flops"] == 3 * whole["flops"]
    assert (whole["norm"], whole["reach"]) == ("post", {"left": "all", "right": "all"})
    assert whole["parts"][1]["parts"][0]["parts"][1]["reach"] == {"left": 9, "right": 10}


def test_a_recipe_with_a_hole_cannot_be_taken_apart(run):
    result = run("recipe", "show", "{mixer} >> ff(512)", *SIZES)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "recipe: 1 fault\n"
        "\n"
        "    {mixer} >> ff(512)\n"
        "  1 ^^^^^^^              the hole 'mixer' must be filled before the recipe is analysed\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("recipe", "show", "sa"), "Error: Missing option '--d-model'."),
        (("recipe", "chek", "sa"), "Error: No such command 'chek'. Did you mean 'check'?"),
        (("recipe", "check", "sa", "--jsn"), "Error: No such option: --jsn (Possible options: --json)"),
    ],
)
def test_a_wrong_command_line_is_told_in_plain_text(run, arguments, message):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1] == message
