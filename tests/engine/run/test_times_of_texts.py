"""A plan times the steps of studies that have not run, on drawn data, so that no text is read."""

import re

import pytest

from activemem import load_study
from activemem.engine import Machine
from activemem.engine.run import planning
from activemem.engine.run.planning import plan_study
from activemem.storage import Store
from activemem.studies.resolve.costs import max_training_flops
from activemem.studies.resolve.trial import settings_from_json

from ...study_texts import study_text


def planned(name, folder):
    return " ".join(str(plan_study(load_study(name), Store(folder), Machine(gpus=0.0))).split())


def test_the_steps_of_language_models_are_timed_and_scores_are_said_to_come_on_top(tmp_path, monkeypatch):
    measured = []

    def remember(_, of, measure):
        measured.append(of)
        return {"1000000000": 36_000_000_000}

    monkeypatch.setattr(planning, "remember", remember)
    text = planned("language-modelling-small", tmp_path)
    assert "core-hours of training steps; " in text
    assert all('"name":"copy"' in each for each in measured[0][1])


@pytest.mark.parametrize("name", ["memory-degradation", "feedforward-attention", "delta-product-s3"])
def test_tasks_that_draw_their_data_are_timed_with_batches_of_which_a_step_is_short(
    name, tmp_path, monkeypatch
):
    measured = []

    def remember(kind, of, measure):
        if kind != "speed":
            return {}
        measured.append(of)
        return {"1000000000": 36_000_000_000}

    monkeypatch.setattr(planning, "remember", remember)
    assert "core-hours" in planned(name, tmp_path)
    assert measured
    for step in map(settings_from_json, measured[0][1]):
        assert max_training_flops(step) / step.train.steps_per_epoch <= 1e10


def test_drawn_tasks_are_timed_beside_a_text(tmp_path):
    text = planned("which-mixer", tmp_path)
    assert re.search(r"in all about \d\S* core-hours of training steps; ", text)


PAIRS = (
    '{ label = "pairs", name = "translation", corpus = "multi30k-en-fr", tokens = "spelled", pieces = 500 }'
)


@pytest.mark.heavy
def test_tasks_without_an_estimate_are_named_beside_a_lower_bound_of_the_others(tmp_path):
    text = study_text(
        model={"recipe": "seq2seq(lstm, lstm)"},
        train={"lengths": None, "curriculum": None},
        factors={"mixer": None, "task": ["reverse_copy", "TRANSLATION"]},
    ).replace('"TRANSLATION"', PAIRS)
    found = " ".join(str(plan_study(load_study(text), Store(tmp_path), Machine(gpus=0.0))).split())
    assert re.search(r"in all at least .*\btranslation: no estimate", found)


@pytest.mark.heavy
def test_where_lengths_depend_on_the_data_they_must_be_read_first(tmp_path):
    text = planned("translation-small", tmp_path)
    assert "no estimate before" in text


@pytest.mark.parametrize(("copies", "told"), [(1, "in all at most "), (4_000, "no estimate before")])
def test_steps_on_short_files_of_labelled_sequences_are_timed(copies, told, tmp_path):
    rows = "text,label\na good day,yes\na bad day,no\n"
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.csv").write_text(rows + copies * f"{split} {'word ' * 100},yes\n")
    study = tmp_path / "mine.toml"
    text = study_text(
        model={"recipe": "{mixer} >> mean_pool"},
        task={
            "name": "sequence_classification",
            "corpus": {split: f"{split}.csv" for split in ("train", "dev", "test")},
            "tokens": "characters",
        },
        train={"curriculum": None, "epochs": 1, "steps_per_epoch": 1, "batch_size": 2},
        factors={"mixer": ["conv(k=3)"], "seed": [0]},
    )
    study.write_text(text)
    data = tmp_path / "data"
    plan = plan_study(load_study(study), Store(tmp_path / "store"), Machine(gpus=0.0, data=data))
    assert told in " ".join(str(plan).split())
    assert not data.exists()
