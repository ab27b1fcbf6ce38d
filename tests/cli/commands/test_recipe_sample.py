"""Sampling of architectures on the command line."""

import json

SPACE = "4 * (choice(sa, conv(k=integer(3, 40))) >> ff(512))"
SIZES = ("--d-model", "128", "--vocab", "20")


def test_check_says_how_many_architectures_a_space_has(run):
    assert run("recipe", "check", SPACE).stdout == f"{SPACE}   id 006838f7\n39 architectures\n"


def test_the_same_seed_draws_the_same_architectures_and_none_twice(run):
    first, second, other = (
        run("recipe", "sample", SPACE, "--count", "30", "--seed", seed) for seed in ("1", "1", "2")
    )
    assert (first.exit_code, first.stderr) == (0, "39 architectures\n")
    assert first.stdout == second.stdout != other.stdout
    lines = first.stdout.splitlines()
    assert len(set(lines)) == 30
    for line in lines:
        assert run("recipe", "check", line).exit_code == 0


def test_all_are_drawn_where_more_are_asked_for(run):
    assert len(run("recipe", "sample", SPACE, "--count", "100").stdout.splitlines()) == 39


def test_members_as_json_have_what_the_space_counts(run):
    result = run("recipe", "sample", "ff(8) >> ff(choice(8, 9))", "--count", "2", "--json")
    page = json.loads(result.stdout)
    assert result.stderr == ""
    assert sorted(member["recipe"] for member in page.pop("members")) == ["ff(8) >> ff(8)", "ff(8) >> ff(9)"]
    space = {"architectures": 2, "exact": True}
    recipe = "ff(8) >> ff(choice(8, 9))"
    assert page == {"schema": 2, "recipe": recipe, "space": space, "within": None, "seed": 0}


def test_a_budget_leaves_out_what_is_larger_and_says_how_many_remain(run):
    result = run("recipe", "sample", SPACE, "--count", "100", "--max-parameters", "1200000", *SIZES)
    assert result.stderr.startswith("8 of 39 ")
    members = result.stdout.splitlines()
    assert len(members) == 8
    for member in members:
        shown = run("recipe", "show", member, *SIZES, "--length", "40", "--json")
        assert json.loads(shown.stdout)["parameters"] <= 1_200_000


def test_what_a_budget_leaves_is_data_too(run):
    arguments = ("--max-flops", "200000000", *SIZES, "--length", "40", "--json")
    page = json.loads(run("recipe", "sample", SPACE, *arguments).stdout)
    assert page["within"] == {
        "architectures": page["within"]["architectures"],
        "share": page["within"]["architectures"] / 39,
        "error": 0.0,
        "drawn": 0,
    }
    assert 0 < page["within"]["architectures"] < 39


def test_a_huge_space_is_drawn_from(run):
    text = " >> ".join(["choice(sa, conv(k=integer(3, 40)))"] * 20)
    result = run("recipe", "sample", text, "--count", "3")
    assert result.stderr == "at most 6.63e+31 architectures\n"
    assert len(set(result.stdout.splitlines())) == 3


def test_an_impossible_budget_is_reported(run):
    result = run("recipe", "sample", SPACE, "--max-parameters", "9", *SIZES)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].startswith("none of 39 ")


def test_without_sizes_a_budget_counts_as_recipe_show_does(run):
    parameters = json.loads(run("recipe", "show", "sa", "--json").stdout)["parameters"]
    for limit, found in ((parameters, 0), (parameters - 1, 2)):
        assert run("recipe", "sample", "sa", "--max-parameters", str(limit)).exit_code == found
