"""`activemem probe run`, and tables, figures and claims of its results."""

import csv
import json
import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from activemem import load_study, open_study, run_study
from activemem.engine import Machine
from activemem.engine.probes import tuning
from activemem.engine.probes.lm_evaluation import EvaluationError, evaluate_study
from activemem.storage import Store

from ...engine.probes.probe_factories import LUONG, NAIVE, STACK, make_study, store_outcomes
from ...engine.translation_factories import PLAIN, register_numbers, translation_text

SHOWN = """
[[table]]
name = "change"
rows = "model"
value = ["theta[luong]", "memory_change", "gamma[4]"]

[[curve]]
name = "changes"
kind = "box"
value = "memory_change"
x = "model"

[[curve]]
name = "decay"
kind = "line"
value = "gamma"
x = "index"
series = "model"

[[curve]]
name = "gates"
kind = "box"
value = "forget_gate"
x = "index"
panels = "model"

[[curve]]
name = "map"
kind = "heat"
value = "attention"
x = "index2"
y = "index"
select = { model = "LUONG" }

[[curve]]
name = "thetas"
kind = "bar"
value = "theta[luong]"
x = "model"

[[claim]]
name = "something moves"
holds = "memory_change[model=LUONG] < 1 and gamma[4, model=LUONG] > 0"
""".replace("LUONG", LUONG)


def a_store(*models, more="", **options):
    """Write the study and a store of untrained placeholders for its trials."""
    study, store = make_study(*models, more=more), Store("results")
    Path("memories.toml").write_text(study.document.text, encoding="utf-8")
    store_outcomes(store, study, **options)
    return study, store


def test_it_says_what_became_of_each_trial(run):
    a_store(STACK, LUONG, NAIVE, keeps_weights=lambda trial: trial.levels["model"] != NAIVE)
    result = run("probe", "run", "memories.toml", "--sequences", "20", "--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert (told["probed"], told["tuned"], told["stored"]) == (1, 0, 0)
    unkept, unfit = sorted(told["left"].values())
    assert ("not kept" in unkept, "encoder" in unfit) == (True, True)
    lines = [re.sub(r"  +", " | ", line) for line in result.stderr.splitlines()]
    change = re.search(r"Δ 0\.\d{3}$", lines[2])
    assert change
    assert lines == [
        f" | left | {STACK} | epochs=1 | seed 3 | {unfit}",
        f" | left | {NAIVE} | epochs=1 | seed 3 | {unkept}",
        f" | probed | {LUONG} | epochs=1 | seed 3 | {change.group()}",
        "memories: 1 of 3 trials probed · 2 left",
    ]


def test_without_a_trial_that_is_done_it_says_so(run, golden):
    Path("memories.toml").write_text(make_study(LUONG).document.text, encoding="utf-8")
    result = run("probe", "run", "memories.toml")
    assert (result.stdout, result.exit_code) == ("", 2)
    golden(result.stderr)


def test_without_any_weights_it_says_how_to_get_them(run, golden):
    a_store(LUONG, NAIVE, keeps_weights=lambda trial: False)
    result = run("probe", "run", "memories.toml", "--results", "./results")
    assert (result.stdout, result.exit_code) == ("", 1)
    golden(result.stderr)


def test_a_study_that_keeps_no_weights_is_reported_with_the_key_that_keeps_them(run, golden):
    study, _ = a_store(LUONG, keeps_weights=lambda trial: False)
    text = study.document.text.replace("keep_weights = true\n", "")
    Path("memories.toml").write_text(text, encoding="utf-8")
    result = run("probe", "run", "memories.toml")
    assert (result.stdout, result.exit_code) == ("", 1)
    golden(result.stderr)


def test_nothing_is_measured_where_the_store_takes_no_file(run, monkeypatch):
    _, store = a_store(LUONG)
    closed, access = store.root / "trials", os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != closed and access(path, mode))
    refused = run("probe", "run", "memories.toml")
    assert refused.exit_code == 2
    assert f"because {closed} takes no new file (Permission denied). Its owner, " in refused.stderr
    assert not list(store.root.glob("probes/*/*"))


def test_nothing_is_measured_twice(run):
    a_store(NAIVE, STACK)
    assert run("probe", "run", "memories.toml", "--sequences", "20").exit_code == 0
    result = run("probe", "run", "memories.toml", "--sequences", "20")
    assert result.stderr.splitlines()[-1] == "memories: 0 of 2 trials probed · 1 left · 1 stored before"
    assert result.exit_code == 0


def test_trials_that_wait_for_a_probe_are_reported_with_the_command(run, golden):
    a_store(LUONG, NAIVE, more=SHOWN)
    table = run("table", "render", "memories.toml").stdout
    assert table.count("activemem probe run memories") == 1
    assert [line.split()[-3:] for line in table.splitlines() if "seq2seq(" in line] == [["pending"] * 3] * 2
    assert "without" not in table
    changes, *others = json.loads(run("curve", "render", "memories.toml", "--json").stdout)["curves"]
    golden(changes["notes"])
    assert [bar["text"] for bar in others[-1]["panels"][0]["content"]["bars"]] == ["pending"] * 2
    (claim,) = json.loads(run("claim", "check", "memories.toml", "--json").stdout)["claims"]
    (gap,) = claim["findings"][0]["gaps"]
    assert gap["where"] == f"model={LUONG}"
    golden(gap["what"])


def test_a_model_without_an_encoder_waits_for_no_probe(run):
    a_store(STACK, LUONG, more=SHOWN)
    table = run("table", "render", "memories.toml", "--format", "csv").stdout
    told = [(row["row"], row["status"], row["note"]) for row in csv.DictReader(table.splitlines())]
    assert told[0][:2] == (STACK, "none")
    assert told[0][2].endswith(" theta[luong]")
    assert told[3:] == [(LUONG, "pending", "")] * 3


def test_trials_that_were_not_probed_are_reported_in_a_footnote_of_their_cell(run):
    a_store(LUONG, NAIVE)
    assert run("probe", "run", "memories.toml", "--sequences", "20").exit_code == 0
    more = "".join(SHOWN.partition("[[curve]]")[0])
    study, store = make_study(LUONG, NAIVE, more=more), Store("results")
    study = load_study(study.document.text.replace("seed = [3]", "seed = [3, 4]"))
    Path("memories.toml").write_text(study.document.text, encoding="utf-8")
    store_outcomes(store, study)
    table = run("table", "render", "memories.toml").stdout
    assert re.search(r"^  a   1 of 2 seeds .*\(activemem probe run memories\)$", table, re.MULTILINE)


def test_tables_figures_and_claims_show_what_was_measured(run, golden):
    study, store = a_store(LUONG, NAIVE, more=SHOWN)
    assert run("probe", "run", "memories.toml", "--sequences", "20").exit_code == 0
    naive = {row["name"]: row["value"] for row in store.metrics([study.trials[1].id]).to_dicts()}
    table = run("table", "render", "memories.toml", "--format", "csv").stdout
    cells = {row["column"]: row for row in csv.DictReader(table.splitlines()) if row["row"] == NAIVE}
    for name in ("theta[luong]", "memory_change", "gamma[4]"):
        assert float(cells[name]["value"]) == pytest.approx(naive[name])
    curves = json.loads(run("curve", "render", "memories.toml", "--json").stdout)["curves"]
    changes, decay, gates, attention, thetas = (each["panels"] for each in curves)
    boxes = changes[0]["content"]["boxes"]
    assert [box["n"] for box in boxes] == [200, 200]
    middle = np.median([naive[f"memory_change[{place}]"] for place in range(200)])
    assert boxes[1]["quartiles"][1] == pytest.approx(middle)
    golden(curves[0]["notes"][0])
    line = decay[0]["content"]["lines"][1]["points"]
    assert [point["y"] for point in line] == [naive[f"gamma[{step}]"] for step in range(1, len(line) + 1)]
    assert {box["n"] for box in gates[1]["content"]["boxes"]} == {20}
    assert len(gates[1]["content"]["boxes"]) == len(line)
    luong = {row["name"]: row["value"] for row in store.metrics([study.trials[0].id]).to_dicts()}
    for output, row in enumerate(attention[0]["content"]["values"], start=1):
        assert row == [luong[f"attention[{output},{place}]"] for place in range(1, len(row) + 1)]
    assert [bar["value"] for bar in thetas[0]["content"]["bars"]] == [0, naive["theta[luong]"]]
    claim = run("claim", "check", "memories.toml", "--json").stdout
    values = [each["effect"] for each in json.loads(claim)["claims"][0]["findings"]]
    assert values == pytest.approx([luong["memory_change"] - 1, luong["gamma[4]"]])
    assert run("table", "render", "--paper", "memory-degradation").exit_code == 0
    assert f"{naive['gamma[4]']:.3f}" in open_study("memories.toml").table("change")._repr_html_()


def a_trained_translation(monkeypatch, *models):
    """Write and train the translation study, with tuning of its decoding and a table of results."""
    register_numbers(Path.cwd(), monkeypatch)
    monkeypatch.setenv("ACTIVEMEM_DATA", ".")
    table = {"name": "tuned", "rows": "model", "value": ["bleu_tuned", "beam_tuned"]}
    text = translation_text(*models, decode={"beam": [1, 3]}, table=[table])
    Path("numbers.toml").write_text(text, encoding="utf-8")
    store = Store("results")
    run_study(load_study("numbers.toml"), store, Machine(data=Path.cwd()), local=True)
    return store


def test_models_that_translate_are_tuned_and_tables_wait_for_it(run, monkeypatch):
    store = a_trained_translation(monkeypatch, PLAIN)
    table = run("table", "render", "numbers.toml").stdout
    assert re.search(r"^ *pending: .*\(activemem probe run numbers\)", table, re.MULTILINE)
    result = run("probe", "run", "numbers.toml", "--sequences", "20")
    assert result.exit_code == 0
    line, counts = result.stderr.splitlines()[-2:]
    (found,) = store.trials(["bleu_tuned", "beam_tuned"])["metrics"].to_list()
    values = {each["name"]: each["value"] for each in found}
    headline = f"BLEU {values['bleu_tuned']:.1f} with a beam of {values['beam_tuned']:.0f}"
    assert re.sub(r"  +", " | ", line) == f" | tuned | {PLAIN} | seed 0 | {headline}"
    assert counts == "numbers: 1 of 1 trial tuned"
    again = run("probe", "run", "numbers.toml", "--sequences", "20").stderr
    assert again.splitlines()[-1] == "numbers: 0 of 1 trial tuned · 1 stored before"
    table = run("table", "render", "numbers.toml", "--format", "csv").stdout
    shown = {row["column"]: float(row["value"]) for row in csv.DictReader(table.splitlines())}
    assert shown == pytest.approx({name: values[name] for name in shown})


def test_a_sigterm_ends_decoding_as_ctrl_c_does(run, monkeypatch):
    a_trained_translation(monkeypatch, PLAIN)

    def decode(*_, **__):
        os.kill(os.getpid(), signal.SIGTERM)
        while True:
            time.sleep(0.01)

    monkeypatch.setattr(tuning, "generate", decode)
    result = run("probe", "run", "numbers.toml")
    assert result.exit_code == 130
    assert "Continue: activemem probe run numbers.toml" in result.stderr.splitlines()[-1]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_folder_of_tasks_that_is_missing_is_named(tmp_path, golden):
    study, folder = load_study("quickstart-text"), tmp_path / "nofolder"
    with golden.raises(EvaluationError):
        next(evaluate_study(study, Store(tmp_path), ["small"], folder))
