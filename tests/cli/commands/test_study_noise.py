"""`study noise` and `agent-guide`: guidance for programs."""

import json
import re
from pathlib import Path

from activemem import load_study
from activemem.storage import Store

from ...study_texts import study_text
from ..store_factories import store_outcome


def test_the_smallest_difference_that_the_seeds_can_show_is_printed(run, tiny):
    study = load_study(tiny)
    for place, trial in enumerate(study.trials):
        store_outcome(trial, Store("results"), value=7.0 + place)
    noise = json.loads(run("study", "noise", tiny, "--json").stdout)["noise"]
    for task in ("not", "reverse"):  # apart, as seeds vary by different amounts
        found = noise[f"max_length on {task}"]
        assert found["seeds"] == len(study.seeds)
        assert found["difference"] > found["sd"] > 0
    said = run("study", "noise", tiny).stdout
    assert max(map(len, said.splitlines())) <= 80
    assert re.search(rf"max_length on not: {len(study.seeds)} seeds .* [\d.]+ or more", said)


def test_a_difference_that_is_called_detectable_has_the_degrees_of_freedom_of_a_claim(run):
    models, rates = ["seq2seq(gru, gru)", "seq2seq(lstm, lstm)"], [1e-3, 2e-3, 4e-3, 8e-3]
    cells = [f"loss[model={model}, lr=0.001]" for model in models]
    text = study_text(
        model={"recipe": "{model}"},
        task={"name": "reverse_copy"},
        train={"curriculum": None, "optimizer": {"name": "adam", "lr": "{lr}"}},
        factors={"model": models, "lr": rates, "seed": [0, 1, 2]},
        table=[{"name": "losses", "rows": "model", "columns": "lr", "value": "loss"}],
        claim=[{"name": "they differ", "holds": " < ".join(cells)}],
    )
    Path("rates.toml").write_text(text, encoding="utf-8")
    for place, trial in enumerate(load_study("rates.toml").trials):
        store_outcome(trial, Store("results"), losses=(0.9, 0.4 + place**2 % 7 / 100))
    claim = json.loads(run("claim", "check", "rates.toml", "--json").stdout)["claims"][0]
    noise = json.loads(run("study", "noise", "rates.toml", "--json").stdout)["noise"]["loss"]
    assert noise["degrees"] == claim["findings"][0]["degrees"] == 2


def test_seeds_that_all_agree_show_no_difference_that_can_be_detected(run, tiny):
    for trial in load_study(tiny).trials:
        store_outcome(trial, Store("results"), value=7.0)
    said = run("study", "noise", tiny).stdout
    assert "unknown, as the seeds of each of 2 cells have one value" in said
    assert "detect" not in said


def test_a_seed_that_diverged_does_not_count(run):
    text = study_text(
        model={"recipe": "{model}"},
        task={"name": "reverse_copy"},
        train={"curriculum": None},
        factors={"model": ["seq2seq(gru, gru)", "seq2seq(lstm, lstm)"], "seed": [0, 1, 2]},
        table=[{"name": "losses", "rows": "model", "value": "loss"}],
    )
    Path("steep.toml").write_text(text, encoding="utf-8")
    for place, trial in enumerate(load_study("steep.toml").trials):
        losses = (0.5, 9.0) if place == 0 else (0.5, 0.4 + place / 100)
        store_outcome(trial, Store("results"), losses=losses)
    found = json.loads(run("study", "noise", "steep.toml", "--json").stdout)["noise"]["loss"]
    assert (found["cells"], found["degrees"]) == (2, 1)
    assert found["sd"] < 0.1


def test_a_study_that_compares_nothing_says_so(run, golden):
    text = study_text(task={"name": "reverse"}, factors={"mixer": ["sa"]})
    Path("none.toml").write_text(text, encoding="utf-8")
    golden(run("study", "noise", "none.toml").stdout)


def test_costs_are_left_out(run, tiny, golden):
    text = Path(tiny).read_text(encoding="utf-8").replace('"loss"', '"parameters"')
    Path(tiny).write_text(text, encoding="utf-8")
    assert list(json.loads(run("study", "noise", tiny, "--json").stdout)["noise"]) == ["max_length"]
    Path(tiny).write_text(text.replace('"max_length"', '"seconds"'), encoding="utf-8")
    said = run("study", "noise", tiny).stdout
    golden(said)


def test_without_two_seeds_of_a_cell_nothing_is_known(run, tiny):
    store_outcome(load_study(tiny).trials[0], Store("results"))
    assert "two seeds yet" in run("study", "noise", tiny).stdout


def test_the_guide_for_agents_names_commands_that_exist(run):
    guide = run("agent-guide").stdout
    commands = set(re.findall(r"^    .*?activemem ([a-z]+ [a-z]+)", guide, re.MULTILINE))
    assert {"study plan", "study run", "claim check", "study noise", "recipe check"} <= commands
    for command in commands:
        assert run(*command.split(), "--help").exit_code == 0, command
