"""Outputs of seq2seq models are stored with their weights, whatever interrupts the end."""

import json
from dataclasses import replace

import pytest
import torch

from activemem.engine.decoding.measures import bleu
from activemem.engine.trial.outcome import Job
from activemem.engine.trial.resumable_attempt import Attempt
from activemem.storage import Store
from activemem.studies import Trial
from activemem.studies.catalog.tasks import TASKS, require_task

from ...registry_entries import replace_entry
from ..translation_factories import MARKOV, SEQ2SEQ, register_numbers, translation_study

CPU = torch.device("cpu")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def finish(attempt):
    while not attempt.ended:
        attempt.advance()


def make_job(study):
    (trial,) = study.trials
    return Job(trial=trial, attempt=0, run="run", keep_weights=study.header.keep_weights)


def final(store):
    return {each["name"]: each["value"] for each in store.trials()["metrics"].to_list()[0]}


def test_outputs_are_those_that_the_stored_bleu_is_of(store, tmp_path, monkeypatch):
    register_numbers(tmp_path, monkeypatch)
    finish(Attempt(make_job(translation_study(SEQ2SEQ)), store, CPU, data=tmp_path))
    kept = store.outputs()
    assert store.trials()["reason"].to_list() == [None]
    assert kept["source"][0] == "one one, two dogs."
    assert kept["line"].to_list() == list(range(1, 32))
    assert kept.select("beam", "length_penalty", "coverage_penalty").unique().rows() == [(2, 0.0, 0.0)]
    score = bleu(kept["output"].to_list(), kept["reference"].to_list()).score
    assert score == final(store)["bleu"]
    assert json.loads(store.trials()["settings"][0])["task"]["beam"] == 2


@pytest.mark.parametrize(
    ("recipe", "sizes"),
    [(SEQ2SEQ, "all"), pytest.param(MARKOV, "estimated", marks=pytest.mark.heavy)],
)
def test_a_worker_that_dies_after_the_last_epoch_loses_no_output(recipe, sizes, store, tmp_path, monkeypatch):
    register_numbers(tmp_path, monkeypatch, doubled=sizes == "estimated")
    study, whole = translation_study(recipe, epochs=2, task={"sizes": sizes}), Store(tmp_path / "whole")
    job = make_job(study)
    finish(Attempt(job, whole, CPU, data=tmp_path))
    first = Attempt(job, store, CPU, data=tmp_path)
    while first.training is None or not first.training.finished:
        first.advance()  # all epochs are over; then it is forgotten, as by a kill
    assert store.outputs().is_empty()
    finish(Attempt(replace(job, run="later", gone=0), store, CPU, data=tmp_path))
    assert store.outputs().height == 31
    assert store.outputs().drop("attempt").equals(whole.outputs().drop("attempt"))


def test_a_study_that_keeps_no_weights_keeps_no_outputs(store, tmp_path, monkeypatch):
    register_numbers(tmp_path, monkeypatch)
    finish(Attempt(make_job(translation_study(SEQ2SEQ, keep_weights=False)), store, CPU, data=tmp_path))
    assert store.trials()["status"].to_list() == ["done"]
    assert store.outputs().is_empty()


def test_a_task_without_text_keeps_the_numbers_of_its_symbols(store, settings, monkeypatch):
    few = replace(require_task("reverse_copy"), sequences=400, test_sequences=40)
    replace_entry(TASKS, "reverse_copy", few)
    drawn = settings(SEQ2SEQ, "reverse_copy", curriculum=None, epochs=1)
    trial = Trial(study="copies", levels={"seed": 0}, settings=drawn)
    finish(Attempt(Job(trial=trial, attempt=0, run="run", keep_weights=True), store, CPU))
    kept = store.outputs()
    assert kept.height == 40
    source, reference = (list(map(int, kept[name][0].split())) for name in ("source", "reference"))
    assert source[::-1] == reference
    exact = (kept["output"] == kept["reference"]).mean()
    assert exact == final(store)["test_exact"]


def test_exact_translations_are_the_outputs_that_equal_their_references(store, tmp_path, monkeypatch):
    register_numbers(tmp_path, monkeypatch, shuffled=True)
    finish(Attempt(make_job(translation_study(SEQ2SEQ, steps=100)), store, CPU, data=tmp_path))
    kept = store.outputs()
    exact = (kept["output"] == kept["reference"]).mean()
    assert 0 < exact < 1
    assert final(store)["test_exact"] == exact
