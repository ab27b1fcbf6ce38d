"""`activemem model` with the saved models of a study."""

import json

import pytest
from typer.testing import CliRunner

from activemem.cli import command_line

from ...study_texts import study_text

KEPT = ("--set", "study.keep_weights=true", "--local", "--only", "seed=0", "--only", "task=not")
TEXT = study_text(
    study={"name": "verses", "keep_weights": True},
    model={"recipe": "conv(k=3)"},
    task={"name": "language_model", "corpus": {"path": "verses.txt"}, "context": 8},
    train={"epochs": 1, "curriculum": None},
    factors={"seed": [0]},
)


@pytest.fixture
def kept(tiny, run):
    """Return the trials of two models that predict line by line."""
    assert run("study", "run", tiny, *KEPT).exit_code == 0
    return [model["trial"] for model in json.loads(run("model", "list", "--json").stdout)["models"]]


@pytest.fixture
def language_model(tmp_path, run):
    """Return the trial of a language model."""
    (tmp_path / "verses.txt").write_text("the cat sees the old dog\nand the dog sees the cat\n" * 50)
    (tmp_path / "verses.toml").write_text(TEXT)
    assert run("study", "run", "verses.toml", "--local").exit_code == 0
    (model,) = json.loads(run("model", "list", "--json").stdout)["models"]
    return model["trial"]


def test_kept_models_are_listed_with_what_they_reached(run, kept):
    heading, *lines = run("model", "list").stdout.splitlines()
    assert heading.split() == ["trial", "mixer", "task", "seed", "max_length"]
    assert sorted(line.split()[0] for line in lines) == sorted(kept)
    by_loss = run("model", "list", "--metric", "loss").stdout.splitlines()[1:]
    losses = [float(line.split()[-1]) for line in by_loss]
    assert losses == sorted(losses)
    assert "nearest: loss" in run("model", "list", "--metric", "los").stderr


def test_a_study_that_keeps_nothing_says_so(run, tiny, golden):
    assert run("study", "run", tiny, *KEPT[2:]).exit_code == 0
    result = run("model", "list")
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)


def test_a_model_is_shown_and_answers_by_the_first_digits_of_its_trial(run, kept):
    shown = run("model", "show", kept[0][:8]).stdout
    assert f"  trial        {kept[0]} of " in shown
    assert "model predict, export\n" in shown
    told = json.loads(run("model", "show", kept[0], "--json").stdout)
    assert (told["trial"], told["symbols"], told["uses"]) == (kept[0], None, ["predict", "export"])
    answered = CliRunner().invoke(command_line, ["model", "predict", kept[0]], input="0 1 1\n1\n")
    assert [len(line.split()) for line in answered.stdout.splitlines()] == [3, 1]
    told = CliRunner().invoke(command_line, ["model", "predict", kept[0], "--json"], input="0 1 1\n1\n")
    pages = [json.loads(line) for line in told.stdout.splitlines()]
    assert [page["output"] for page in pages] == answered.stdout.splitlines()
    refused = CliRunner().invoke(command_line, ["model", "predict", kept[0]], input="0\nx\n")
    assert (refused.exit_code, "line 2: expected symbol numbers" in refused.stderr) == (2, True)


def test_files_that_are_not_models_are_reported(run, kept, golden):
    golden(run("model", "show", "zz").stderr)
    golden(run("model", "show", "gone.safetensors").stderr)


def test_a_model_goes_to_a_folder_and_is_used_from_there(run, kept):
    assert run("model", "export", kept[0], "hub").stdout == "hub\n"
    assert kept[0] in run("model", "show", "hub").stdout
    told = json.loads(run("model", "export", kept[0], "second", "--json").stdout)
    assert told["folder"] == "second"


def test_a_language_model_continues_a_text_and_scores_a_text(run, language_model, tmp_path, golden):
    generated = run("model", "generate", language_model, "the ", "--length", "9", "--temperature", "0")
    assert generated.stdout.startswith("the ")
    assert len(generated.stdout) == len("the ") + 9 + 1
    told = json.loads(
        run(
            "model", "generate", language_model, "the ", "--length", "9", "--temperature", "0", "--json"
        ).stdout
    )
    assert told["beginning"] + told["text"] + "\n" == generated.stdout
    (tmp_path / "new.txt").write_text("the dog sees\n")
    lines = run("model", "score", language_model, "new.txt").stdout.splitlines()
    assert lines[0] == "12 tokens, 3 words"
    scored = json.loads(run("model", "score", language_model, "new.txt", "--json").stdout)
    assert lines[1].split()[:2] == ["loss", f"{scored['loss']:.4f}"]
    golden(run("model", "predict", language_model).stderr)
    golden(run("model", "generate", language_model, "--length", "0").stderr)


LABELLED = """
[study]
name = "labelled"
title = "Labels of one's own"
keep_weights = true
[model]
recipe = "conv(k=3) >> ff(8)"
d_model = 8
[task]
name = "token_classification"
corpus = { path = "tagged.jsonl" }
longest = 4
[train]
optimizer = { name = "adam", lr = 1e-2 }
batch_size = 4
epochs = 1
steps_per_epoch = 5
[factors]
seed = [0]
"""


@pytest.mark.parametrize(
    ("task", "recipe", "labels", "quoted"),
    [
        ("token_classification", "conv(k=3) >> ff(8)", ["two\nlines", "a b", "c"], True),
        ("token_classification", "conv(k=3) >> ff(8)", ["A", "B", "C"], False),
        (
            "sequence_classification",
            "conv(k=3) >> mean_pool",
            ["two\nlines", "more\u2028lines", "so\x85on"],
            True,
        ),
    ],
)
def test_answers_are_printed_line_by_line_next_to_the_inputs(
    run, tmp_path, task, recipe, labels, quoted, golden
):
    of_tokens = task == "token_classification"
    rows = [
        {
            "text": [f"w{at % 7}", f"w{at // 7 % 7}", f"y{at}"],
            "label": labels if of_tokens else labels[at % 3],
        }
        for at in range(60)
    ]
    (tmp_path / "tagged.jsonl").write_text("\n".join(map(json.dumps, rows)))
    text = LABELLED.replace("token_classification", task).replace("conv(k=3) >> ff(8)", recipe)
    if not of_tokens:
        text = text.replace("longest = 4", 'longest = 4\ntokens = "symbols"')
    (tmp_path / "labelled.toml").write_text(text)
    done = run("study", "run", "labelled.toml", "--local")
    assert done.exit_code == 0, done.stderr
    (model,) = json.loads(run("model", "list", "--json").stdout)["models"]
    asked = b"w1 new w2\n\nw1 w2 w3 w4 w5 w6\n"
    answered = CliRunner().invoke(command_line, ["model", "predict", model["trial"]], input=asked)
    lines = answered.stdout.split("\n")
    assert (len(lines), lines[1], lines[3]) == (4, "", "")
    golden(answered.stderr)
    told = CliRunner().invoke(command_line, ["model", "predict", model["trial"], "--json"], input=asked)
    first, empty, last = map(json.loads, told.stdout.splitlines())
    assert (first["unknown"], empty["output"], last["unread"]) == (["new"], "", 2)
    shown = [json.loads(line) if quoted else line.split() for line in (lines[0], lines[2])]
    if of_tokens and not quoted:
        assert shown[1] == [label or "–" for label in last["output"]]
    else:
        assert shown == [first["output"], last["output"]]
    if of_tokens:
        assert last["output"][4:] == [None, None]
        assert [max(each, key=each.get) for each in last["probabilities"]] == last["output"][:4]
    else:
        assert max(first["probabilities"], key=first["probabilities"].get) == first["output"]


def test_bytes_that_are_no_text_are_named_by_file_and_place(run, language_model, tmp_path, golden):
    (tmp_path / "latin.txt").write_bytes(b"the dog\nsees caf\xe9\n")
    scored = run("model", "score", language_model, "latin.txt")
    assert scored.exit_code == 2
    golden(scored.stderr)
    piped = CliRunner().invoke(command_line, ["model", "score", language_model, "-"], input=b"\xff")
    assert piped.exit_code == 2
    golden(piped.stderr)
    begun = run("model", "generate", language_model, "the \udce9")
    assert begun.exit_code == 2
    golden(begun.stderr)
