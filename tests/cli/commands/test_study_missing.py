"""`study missing`: missing ablations with their costs, and the study that trains them."""

import json
from pathlib import Path

import pytest

from activemem import load_study
from activemem.storage import Store

from ...study_texts import study_text
from ..store_factories import make_partial_store, store_outcome


def test_requests_are_listed_with_their_costs_and_written_as_a_study(run, tiny):
    told = run("study", "missing", tiny, "--write", "more.toml")
    assert "Parts never removed" in told.stdout
    assert "Total" in told.stdout
    assert "FLOPs" in told.stdout
    page = json.loads(run("study", "missing", tiny, "--json").stdout)
    asked = {trial for request in page["requests"] for trial in request["trials"]}
    written = load_study("more.toml")
    assert asked <= {trial.id for trial in written.trials}
    assert run("study", "plan", "more.toml").exit_code == 0
    assert page["held"] == {"task": "not"}


def test_the_seeds_of_the_study_and_of_its_requests_are_told(run):
    for seeds, told in (([0], "1 model, 1 seed; 3 seeds are requested"), ([0, 1], "1 model, 2 seeds")):
        text = study_text(factors={"mixer": ["gru"], "task": None, "seed": seeds}, task={"name": "copy"})
        Path("own.toml").write_text(text, encoding="utf-8")
        first = run("study", "missing", "own.toml").stdout.splitlines()[0]
        assert first.partition(": ")[2] == told


@pytest.mark.usefixtures("steps_of_a_second")
def test_requests_of_a_ladder_keep_their_number_of_steps(run):
    text = study_text(
        model={"recipe": "{mixer} >> ff(8)", "d_model": "{width}"},
        task={"name": "mqar", "length": 16, "pairs": 2, "vocab": 16},
        train={"curriculum": None, "steps_per_epoch": None, "epochs": 1, "batch_size": 8},
        factors={"mixer": ["gru", "lstm"], "task": None, "seed": [0]},
    )
    ladder = "\n[ladder]\nsizes = { width = [4, 8] }\ntokens_per_parameter = 400\n"
    Path("ladder.toml").write_text(text + ladder, encoding="utf-8")
    words = " ".join(run("study", "missing", "ladder.toml").stdout.split())
    assert "keeps its number of" in words


def test_long_requests_are_wrapped_below_their_own_column(run):
    recipes = [
        "delta(heads=2, head_width=4, gate=true, negative=true, short_conv=4, output_gate=silu)",
        "gla(heads=2, head_width=4, short_conv=4)",
    ]
    text = study_text(
        model={"recipe": "{mixer} >> ff(8)"}, task={"name": "copy"}, factors={"mixer": recipes, "seed": [0]}
    )
    Path("long.toml").write_text(text, encoding="utf-8")
    lines = run("study", "missing", "long.toml").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    request = next(place for place, line in enumerate(lines) if "delta(heads" in line)
    assert lines[request + 1].startswith(" " * lines[request].index("− delta("))


def test_a_file_that_exists_is_not_overwritten(run, tiny):
    Path("more.toml").write_text("mine", encoding="utf-8")
    refused = run("study", "missing", tiny, "--write", "more.toml")
    assert refused.exit_code == 2
    assert "more.toml" in refused.stderr
    assert Path("more.toml").read_text(encoding="utf-8") == "mine"


def test_the_new_file_says_how_many_of_its_trials_the_study_lacks(run, tiny):
    found = run("study", "missing", tiny, "--write", "more.toml")
    total = found.stdout.splitlines()[-1].split()[1]
    written = len(load_study("more.toml").trials)
    assert int(total) < written
    assert f", {written} trials, {total} of " in found.stderr


def test_trained_requests_are_counted_and_not_listed(run, tiny):
    run("study", "missing", tiny, "--write", "more.toml")
    store = Store("results")
    for trial in load_study("more.toml").trials:
        store_outcome(trial, store)
    told = run("study", "missing", tiny).stdout
    assert "are trained already" in told
    assert "FLOPs" not in told


def test_a_study_of_matched_sizes_says_that_changed_models_are_not_matched(run):
    Path("equal.toml").write_text(
        study_text(
            study={
                "match": "parameters",
                "baseline": {"mixer": "sa(heads=2, head_width=4)", "filter": 32},
                "tolerance": 0.05,
            },
            model={"recipe": "{mixer} >> ff({filter})", "d_model": 16},
            factors={"mixer": ["sa(heads=2, head_width=4)", "gru"], "task": None, "seed": [0]},
            task={"name": "copy"},
        ),
        encoding="utf-8",
    )
    told = run("study", "missing", "equal.toml").stdout
    assert "keeps the filter" in told


def test_a_stored_study_is_found_by_name_and_other_tasks_are_named_as_not_checked(run, tiny):
    make_partial_store(tiny)
    Path(tiny).rename("elsewhere.toml")
    found = run("study", "missing", "tiny")
    assert (found.exit_code, found.stderr) == (0, "")
    assert "task = not" in found.stdout.splitlines()[0]
    assert "not checked: reverse; " in " ".join(found.stdout.split())
