import json

import pytest

SIZES = ("--d-model", "128", "--length", "40", "--vocab", "20")


def test_a_right_recipe_is_answered_by_its_canonical_text_and_id(run):
    result = run("recipe", "check", "4 * ((sa + highway_conv(k=20)) >> ff(filter=512))")
    assert result.stdout == "4 * (sa + highway_conv(k=20) >> ff(512))   id 6eefcde3\n"
    assert (result.exit_code, result.stderr) == (0, "")


def test_check_as_json_lists_what_is_still_open(run):
    result = run("recipe", "check", "{mixer} >> ff(integer(8, 64))", "--json")
    assert json.loads(result.stdout) == {
        "schema": 3,
        "text": "{mixer} >> ff(integer(8, 64))",
        "id": json.loads(result.stdout)["id"],
        "holes": ["mixer"],
        "dimensions": ["ff.filter"],
        "space": {"forms": 57, "infinite": False, "exact": True},
        "faults": [],
    }


def test_a_wrong_recipe_is_drawn_on_standard_error_with_all_its_faults(run, golden):
    result = run("recipe", "check", "4 * (sa(head=8) + highway_cnv(k=0) >> ff(512)")
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)


def test_the_faults_of_a_wrong_recipe_are_data_too(run, golden):
    result = run("recipe", "check", "sa(head=8)", "--json")
    page = json.loads(result.stdout)
    assert (page["text"], page["id"]) == ("sa(head=8)", None)
    (fault,) = page["faults"]
    assert (fault["start"], fault["end"]) == (3, 7)
    golden(fault["message"])
    assert result.exit_code == 2


def test_a_recipe_is_broken_down(run, golden):
    result = run("recipe", "show", "4 * (sa + conv(k=20) >> ff(512))", *SIZES)
    assert (result.exit_code, result.stderr) == (0, "")
    golden(result.stdout)


def test_a_recipe_with_long_parts_is_broken_down_within_eighty_columns(run, golden):
    text = "4 * (sa + highway_conv(k=20) + persistent_conv(k=20) >> ff(512))"
    head, _, *lines = run("recipe", "show", text, *SIZES).stdout.splitlines()[2:]
    assert max(map(len, lines)) == 80
    assert "  ├─ sa + highway_conv(k=20) …   1,245,824" in "\n".join(lines)
    golden((head.split()[-1], lines[-1]))


def test_a_long_recipe_has_its_id_on_a_line_of_its_own(run):
    text = "2 * (conv(k=20) >> ff(1024)) >> 6 * (sa >> ff(1024)) >> 2 * (conv(k=20) >> ff(1024))"
    first, second, *_ = run("recipe", "show", text, *SIZES).stdout.splitlines()
    assert (first, second[:3]) == (text, "id ")


def test_a_causal_recipe_does_not_see_to_the_right(run):
    lines = run("recipe", "show", "8 * conv(k=20)", *SIZES, "--causal").stdout.splitlines()
    assert next(line for line in lines if "total" in line).endswith("  152 ← · → 0  38.9 kB")
    assert "  causal, width 128, vocab 20, pre-norm, 40 tokens, batch 32, dropout 0.1" in lines


def test_the_parts_as_json_add_up_to_the_whole(run):
    arguments = ("recipe", "show", "4 * (sa + conv(k=20) >> ff(512))", *SIZES, "--json")
    whole = json.loads(run(*arguments).stdout)
    assert whole["parameters"] == sum(part["parameters"] for part in whole["parts"])
    assert whole["flops"] == sum(part["flops"] for part in whole["parts"])
    kept = sum(part["activations"] for part in whole["parts"])
    assert whole["memory"]["activations"] == pytest.approx(kept, abs=64)
    assert whole["memory"]["parameters"] == 16 * whole["parameters"]
    assert (whole["state_per_token"], whole["window"]) == (4 * 2 * 512, 4 * 19 * 128)
    assert (whole["batch"], whole["dropout"], whole["masked"], whole["causal"]) == (32, 0.1, False, False)
    assert whole["training_flops"] == 3 * whole["flops"]
    assert (whole["norm"], whole["reach"]) == ("pre", {"left": "all", "right": "all"})
    assert whole["parts"][1]["parts"][0]["parts"][1]["reach"] == {"left": 9, "right": 10}


def test_a_column_without_figures_is_left_out(run):
    output = run("recipe", "show", "ff(512)", *SIZES).stdout
    head, below, *_ = output.splitlines()[2:]
    assert head.split() == ["part", "parameters", "kFLOPs", "memory", "reach"]
    assert below.split() == ["/token"]
    assert "generation" not in output


def test_a_recipe_that_only_works_on_positions_is_causal_without_a_mask(run):
    assert "  causal, width 128, vocab 20, pre-norm," in run("recipe", "show", "ff(512)", *SIZES).stdout
    assert json.loads(run("recipe", "show", "ff(512)", *SIZES, "--json").stdout)["causal"] is True


def test_memory_is_that_of_the_batch(run):
    one, two = (
        json.loads(run("recipe", "show", "sa", *SIZES, "--json", "--batch", batch).stdout)["memory"]
        for batch in ("1", "2")
    )
    assert two["activations"] == pytest.approx(2 * one["activations"], abs=64)
    assert two["parameters"] == one["parameters"]


def test_a_whole_model_is_broken_down(run, golden):
    text = "seq2seq(gru(layers=2), gru(layers=2), attention=bahdanau)"
    result = run("recipe", "show", text, "--d-model", "64", "--length", "40", "--vocab", "100")
    assert (result.exit_code, result.stderr) == (0, "")
    golden(result.stdout)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("seq2seq(lstm, lstm, attention=luong)", ["encoder", "decoder", "luong attention", "dropout"]),
        ("seq2seq(sa >> ff(8), 2 * sa)", ["encoder", "decoder"]),
    ],
)
def test_the_parts_of_a_whole_model_as_json_add_up_to_it(run, text, labels):
    page = json.loads(run("recipe", "show", text, *SIZES, "--json").stdout)
    _, _, whole, _ = page["parts"]
    assert [part["label"] for part in whole["parts"]] == labels
    for name in ("parameters", "flops", "state_per_token", "window"):
        assert whole[name] == sum(part[name] for part in whole["parts"])
    kept = sum(part["activations"] for part in page["parts"])
    assert page["memory"]["activations"] == pytest.approx(kept, abs=64)


def test_a_pool_without_operations_says_how_far_it_sees(run):
    lines = run("recipe", "show", "mean_pool >> activation(act=tanh) >> dense", *SIZES).stdout.splitlines()
    column = lines[2].index("reach")
    assert {line.split()[0]: line[column:].partition("  ")[0] for line in lines[4:11]} == {
        "embedding": "",
        "mean_pool": "all ← · → 0",
        "activation(act=tanh)": "0",
        "dense": "0",
        "final": "",
        "output": "0",
        "total": "all ← · → 0",
    }


def test_check_says_how_many_architectures_a_space_has(run):
    space = "4 * (choice(sa, conv(k=integer(3, 40))) >> ff(512))"
    assert run("recipe", "check", space).stdout == f"{space}   id 006838f7\n39 architectures\n"


def test_a_recipe_with_a_hole_cannot_be_broken_down(run, golden):
    result = run("recipe", "show", "{mixer} >> ff(512)", *SIZES)
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)


@pytest.mark.parametrize(
    "arguments",
    [
        ("recipe", "show"),
        ("recipe", "chek", "sa"),
        ("recipe", "check", "sa", "--jsn"),
    ],
    ids=str,
)
def test_a_wrong_command_line_is_reported_in_plain_text(run, arguments, golden):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr.splitlines()[-1])
