"""Evidence of claims: whole-store counting, times of statements, and seals that show changes."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import fields
from pathlib import Path

import pytest

import activemem
from activemem.storage import Store
from activemem.storage.rows import TrialRow
from activemem.studies.evidence import find_evidence, seal_claims, verify_seals

TEXT = """
study = {{ name = "{name}", title = "Are two heads better than four?" }}
task = {{ name = "reverse" }}
[model]
recipe = "1 * ({{mixer}} >> ff(8))"
d_model = 8
[train]
optimizer = {{ name = "adam", lr = {lr} }}
epochs = 1
steps_per_epoch = 2
batch_size = 2
[factors]
mixer = ["sa(heads=2, head_width=4)", "conv(k=2)"]
seed = {seeds}
[[claim]]
name = "attention has the lower loss"
holds = "{holds}"
"""
HOLDS = "loss[mixer=sa(heads=2, head_width=4)] < loss[mixer=conv(k=2)]"


def load(folder, name="first", seeds=(0, 1), holds=HOLDS, lr="2e-3"):
    path = folder / f"{name}.toml"
    path.write_text(TEXT.format(name=name, seeds=list(seeds), holds=holds, lr=lr), encoding="utf-8")
    return activemem.load_study(path)


def run(folder, **changes):
    study = load(folder, **changes)
    activemem.run_study(study, folder / "results", local=True)
    return study


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a folder with two studies of the same cells and other seeds, and one of another rate."""
    folder = tmp_path_factory.mktemp("tries")
    run(folder, name="other-rate", seeds=[0], lr="1e-3")
    run(folder)
    run(folder, name="second", seeds=[5, 6, 8])
    return folder


def test_all_trials_of_equal_cells_count_as_seen_whatever_their_study(trained):
    found = find_evidence(load(trained, name="second", seeds=[5, 6, 8]), Store(trained / "results"))
    assert (len(found.trials), len(found.used)) == (10, 6)
    assert found.sentence == (
        "Stated before the first of 10 trials of these cells · uses 6 of 10, leaves out 4 (seeds 0 to 1 of "
        f"first): valid only if the seeds were chosen before any result was seen · seal {found.seal[:16]}."
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {},
            "before the first of 10 trials of these cells · uses 4 of 10, leaves out 6 (seeds 5, 6 and 8 of",
        ),
        (
            {"name": "new", "seeds": [0, 1, 5, 6, 8]},
            "before the first of 10 trials of these cells · uses all 10",
        ),
        (
            {"name": "new", "holds": f"{HOLDS} + 0.5"},
            "after results: attention has the lower",
        ),
        ({"name": "new", "lr": "5e-3"}, ""),
    ],
)
def test_a_claim_is_as_old_as_the_first_run_that_stated_it_of_the_same_cells(trained, changes, told):
    sentence = find_evidence(load(trained, **changes), Store(trained / "results")).sentence
    assert told in sentence
    assert bool(sentence) is bool(told)


def test_a_claim_that_is_changed_after_results_is_late(trained, tmp_path):
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    study = run(tmp_path, holds=f"{HOLDS} + 0.5")
    found = find_evidence(study, Store(tmp_path / "results"))
    assert [found.ended_before(each) for each in found.claims] == [10]
    assert found.sentence.startswith(
        "Stated after results: attention has the lower loss (after 10), of 10 trials"
    )


def rewrite(source: Path, target: Path, change) -> None:
    """Write the rows of a store into a new one, changed, with the same records."""
    shutil.copytree(source / "studies", target / "studies")
    store, names = Store(target), [field.name for field in fields(TrialRow)]
    store.make()
    rows = Store(source).trials().filter(study="first").select(names).to_dicts()
    for row in change(rows):
        metrics = tuple((each["name"], each["value"]) for each in row["metrics"])
        store.write(TrialRow(**{**row, "metrics": metrics}), ())


def altered(rows):
    rows[0]["metrics"] = [{**each, "value": each["value"] + 1} for each in rows[0]["metrics"]]
    return rows


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (list, []),
        (lambda rows: rows[1:], [" was dropped: seed "]),
        (
            lambda rows: [*rows, {**rows[0], "trial": "0" * 16, "seed": 7}],
            ["trial 0000000000000000 was added: seed 7"],
        ),
        (altered, [" was changed: values was {"]),
    ],
)
def test_a_seal_names_rows_that_were_dropped_added_or_altered(tmp_path, change, told):
    run(tmp_path)
    rewrite(tmp_path / "results", tmp_path / "copy", change)
    (found,) = verify_seals(Store(tmp_path / "copy"))
    assert (found.study, found.trials, found.claims) == ("first", 4, 1)
    assert len(found.changes) == len(told)
    assert all(part in text for part, text in zip(told, found.changes, strict=True))


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda record: record.update(text=f"# another comment\n{record['text']}"), []),
        (
            lambda record: record.update(text=record["text"].replace("] < loss", "] > loss")),
            ["claim attention"],
        ),
        (
            lambda record: record["stated"].clear(),
            ["claim attention has the lower loss was changed: stated was"],
        ),
        (
            lambda record: record["seal"]["trials"].pop(),
            ["the list of claims and trials", " was added: seed"],
        ),
    ],
)
def test_a_seal_names_a_claim_that_was_reworded_or_dated_anew(tmp_path, edit, told):
    run(tmp_path)
    store = Store(tmp_path / "results")
    record = json.loads(json.dumps(store.records.load("first")))
    edit(record)
    store.records.save("first", record)
    (found,) = verify_seals(store)
    assert [any(part in text for text in found.changes) for part in told] == [True] * len(told)
    assert bool(found.changes) is bool(told)


def test_trials_that_are_forgotten_after_a_seal_stay_among_those_that_were_seen(tmp_path):
    study = run(tmp_path, seeds=[0, 1, 2])
    store = Store(tmp_path / "results")
    bad = [trial.id for trial in study.trials if trial.seed == 2]
    store.upkeep.forget("first", bad)
    (found,) = verify_seals(store)
    assert len(found.changes) == 2 and all("was dropped: seed 2" in each for each in found.changes)
    study = run(tmp_path, seeds=[0, 1])
    found = find_evidence(study, store)
    assert "uses 4 of 6, leaves out 2 (seed 2 of first; 2 removed or replaced since)" in found.sentence
    assert [each.changes for each in verify_seals(store)] == [()], "the new seal says what is gone"
    renamed = find_evidence(run(tmp_path, name="second", seeds=[0, 1]), store)
    assert "leaves out 2 (seed 2 of first; 2 removed" in renamed.sentence


def test_a_value_that_is_altered_and_sealed_again_is_still_seen_beside_the_old_one(tmp_path):
    study = run(tmp_path)
    rewrite(tmp_path / "results", tmp_path / "copy", altered)
    seal_claims(study, Store(tmp_path / "copy"))
    found = find_evidence(study, Store(tmp_path / "copy"))
    assert "uses 4 of 5, leaves out 1" in found.sentence and "1 removed or replaced since" in found.sentence


def test_trials_of_other_settings_under_the_same_name_are_counted_beside_the_verdict(tmp_path):
    run(tmp_path)
    study = run(tmp_path, lr="2.0000001e-3")
    found = find_evidence(study, Store(tmp_path / "results"))
    assert "uses all 4 · 4 trials of other settings under this name · seal" in found.sentence


def test_a_study_that_cannot_be_read_here_is_named_and_a_value_that_is_no_number_equals_itself(tmp_path):
    study = run(tmp_path)
    rewrite(tmp_path / "results", tmp_path / "copy", without_numbers)
    store = Store(tmp_path / "copy")
    seal_claims(study, store)
    assert [each.changes for each in verify_seals(store)] == [()]
    record = store.records.load("first")
    store.records.save("first", {**record, "text": record["text"].replace("conv(k=2)", "unknown_block")})
    (found,) = verify_seals(store)
    assert found.changes[0].startswith("it cannot be read here: ") and "unknown_block" in found.changes[0]


def without_numbers(rows):
    return [
        {**row, "metrics": [{"name": each["name"], "value": math.nan} for each in row["metrics"]]}
        for row in rows
    ]


@pytest.mark.parametrize(
    "seal", [{"seal": 3}, {"seal": "x", "claims": [], "trials": [{"trial": "y"}]}, [], "x"]
)
def test_a_record_whose_seal_has_another_shape_is_damaged_and_hides_nothing_else(tmp_path, seal):
    study = run(tmp_path)
    store = Store(tmp_path / "results")
    store.records.save("other", {"text": "x", "seal": seal})
    assert "uses all 4" in find_evidence(study, store).sentence
    assert store.records.find_damaged("other") is not None
