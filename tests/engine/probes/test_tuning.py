"""Decoding parameters are tuned on the dev split with saved weights, and outputs written once."""

import shutil
import time

import polars as pl
import pytest
import torch

from activemem import load_study, run_study, tune_study
from activemem.engine import Machine
from activemem.engine.core import process
from activemem.engine.decoding.measures import bleu
from activemem.engine.decoding.searches import Decoding
from activemem.engine.objectives import generation
from activemem.engine.objectives.generation import PairData, generate
from activemem.engine.probes import trained_models, tuning
from activemem.engine.trial import failures
from activemem.engine.trial.failures import MachineError
from activemem.storage import Store

from ..translation_factories import MARKOV, PLAIN, SEQ2SEQ, register_numbers, translation_text

DECODE = {"beam": [1, 3], "length_penalty": [0.0, 1.0], "coverage_penalty": [0.0, 0.4]}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return the corpus folder and a store with three trained models."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as monkeypatch:
        register_numbers(folder, monkeypatch)
        store = Store(folder / "results")
        study = load_study(translation_text(SEQ2SEQ, PLAIN, MARKOV))
        run_study(study, store, Machine(data=folder), local=True)
    return folder


@pytest.fixture
def store(trained, tmp_path, monkeypatch):
    """Return a separate copy of the store for each test."""
    register_numbers(tmp_path, monkeypatch)
    shutil.copytree(trained / "results", tmp_path / "results")
    return Store(tmp_path / "results")


def make_study(*models, **decode):
    return load_study(translation_text(*models, decode=decode or DECODE))


def tune(study, store):
    return list(tune_study(study, store, Machine(data=store.root.parent)))


@pytest.mark.usefixtures("store")
def test_the_table_is_no_part_of_a_trial():
    assert [trial.id for trial in make_study(SEQ2SEQ).trials] == [
        trial.id for trial in load_study(translation_text(SEQ2SEQ)).trials
    ]


def test_the_best_search_of_the_dev_split_writes_the_test_split(store):
    study = make_study(SEQ2SEQ)
    (trial,) = study.trials
    (tuned,) = tune(study, store)
    assert tuned.reason is None
    scores = {name: value for name, value in tuned.metrics.items() if name.startswith("dev_bleu[")}
    assert list(scores) == [
        "dev_bleu[1,0,0]",
        "dev_bleu[3,0,0]",
        "dev_bleu[3,0,0.4]",
        "dev_bleu[3,1,0]",
        "dev_bleu[3,1,0.4]",
    ]
    pairs = PairData(trial.settings, store.root.parent)
    model = trained_models.load_kept_model(trial.settings, store.files.weights_file(trial.id))
    for name, score in scores.items():
        beam, lengths, coverage = map(float, name.removeprefix("dev_bleu[").removesuffix("]").split(","))
        decoding = Decoding(beam=int(beam), length_penalty=lengths, coverage_penalty=coverage)
        train = trial.settings.train
        outputs = generate(
            model, pairs.dev, decoding, pairs=pairs, batch_size=train.batch_size, device=torch.device("cpu")
        )
        assert bleu(pairs.sentences(outputs), pairs.references(pairs.dev)).score == score
    best = max(scores, key=scores.__getitem__)
    chosen = [tuned.metrics[f"{name}_tuned"] for name in ("beam", "length_penalty", "coverage_penalty")]
    assert f"dev_bleu[{','.join(format(each, 'g') for each in chosen)}]" == best
    assert tuned.metrics["dev_bleu"] == scores[best]
    written = store.outputs([trial.id], tuned=True)
    assert written["line"].to_list() == list(range(1, 32))
    found = bleu(written["output"].to_list(), written["reference"].to_list()).score
    assert tuned.metrics["bleu_tuned"] == tuned.metrics["bleu_tuned[13a]"] == found
    stored = dict(store.metrics([trial.id]).select("name", "value").iter_rows())
    assert stored["bleu_tokenized[13a]"] == stored["bleu"]
    assert {name: stored[name] for name in tuned.metrics} == tuned.metrics


def test_penalties_are_tried_only_where_they_change_something(store):
    plain, markov = tune(make_study(PLAIN, MARKOV), store)
    names = [[name for name in each.metrics if name.startswith("dev_bleu[")] for each in (plain, markov)]
    assert names == [
        ["dev_bleu[1,0,0]", "dev_bleu[3,0,0]", "dev_bleu[3,1,0]"],
        ["dev_bleu[1,0,0]", "dev_bleu[3,0,0]"],
    ]


@pytest.mark.heavy
def test_the_cost_of_estimating_sizes_is_reported(tmp_path, monkeypatch):
    register_numbers(tmp_path, monkeypatch, doubled=True)
    store, decode = Store(tmp_path / "results"), {"beam": [1, 2], "sizes": ["all", "estimated"]}
    run_study(make_study(MARKOV, SEQ2SEQ), store, Machine(data=tmp_path), local=True)
    told, other = tune(make_study(MARKOV, SEQ2SEQ, **decode), store)
    names = [[name for name in each.metrics if name.startswith("dev_bleu[")] for each in (told, other)]
    assert names == [
        ["dev_bleu[1,0,0]", "dev_bleu[1,0,0,estimated]", "dev_bleu[2,0,0]", "dev_bleu[2,0,0,estimated]"],
        ["dev_bleu[1,0,0]", "dev_bleu[2,0,0]"],
    ]
    assert not any(name.startswith("bleu_sizes") for name in other.metrics)
    trial, found = told.trial, told.metrics
    pairs = PairData(trial.settings, store.root.parent)
    model = trained_models.load_kept_model(trial.settings, store.files.weights_file(trial.id))
    written = {}
    for sizes in ("all", "estimated"):
        decoding = Decoding(beam=int(found["beam_tuned"]), sizes=sizes)
        train = trial.settings.train
        outputs = generate(
            model, pairs.test, decoding, pairs=pairs, batch_size=train.batch_size, device=torch.device("cpu")
        )
        written[sizes] = pairs.sentences(outputs)
        assert found[f"bleu_sizes[{sizes}]"] == bleu(written[sizes], pairs.references(pairs.test)).score
    assert written["all"] != written["estimated"]
    kept = store.outputs([trial.id], tuned=True)
    (chosen,) = kept["sizes"].unique()
    assert kept["output"].to_list() == written[chosen]
    assert found["bleu_tuned"] == found[f"bleu_sizes[{chosen}]"]
    monkeypatch.setattr(tuning, "generate", None)
    assert [each.metrics for each in tune(make_study(MARKOV, SEQ2SEQ, **decode), store)] == [{}, {}]


def test_outputs_of_earlier_versions_are_of_all_sizes(store, monkeypatch):
    tune(make_study(MARKOV, sizes=["all"]), store)
    outputs = Store.outputs

    def earlier(self, trials=None, *, tuned=False):
        return outputs(self, trials, tuned=tuned).with_columns(sizes=pl.lit(None, pl.String))

    monkeypatch.setattr(Store, "outputs", earlier)
    monkeypatch.setattr(tuning._Tuning, "_write", lambda _, split, decoding: pytest.fail(f"{decoding}"))
    (again,) = tune(make_study(MARKOV, sizes=["all"], tokenizers=["13a", "char"]), store)
    assert "bleu_tuned[char]" in again.metrics


def test_stored_outputs_are_neither_written_nor_counted_again(store, monkeypatch):
    (first,) = tune(make_study(SEQ2SEQ), store)
    monkeypatch.setattr(tuning, "generate", None)
    (again,) = tune(make_study(SEQ2SEQ), store)
    assert (again.metrics, again.reason) == ({}, None)
    (more,) = tune(make_study(SEQ2SEQ, **DECODE, tokenizers=["13a", "char", "none"]), store)
    assert first.metrics.items() <= more.metrics.items()
    written = store.outputs([more.trial.id], tuned=True)
    for tokenizer in ("char", "none"):
        score = bleu(written["output"].to_list(), written["reference"].to_list(), tokenizer=tokenizer).score
        assert more.metrics[f"bleu_tuned[{tokenizer}]"] == score
    assert more.metrics["bleu_tuned[char]"] != more.metrics["bleu_tuned[none]"]


def test_another_deciding_tokenizer_scores_the_dev_split_again(store):
    (first,) = tune(make_study(SEQ2SEQ), store)
    (other,) = tune(make_study(SEQ2SEQ, **DECODE, tokenizers=["char"]), store)
    assert other.metrics["dev_bleu[1,0,0]"] != first.metrics["dev_bleu[1,0,0]"]
    held = store.metrics([other.trial.id])["name"].to_list()
    assert [name for name in held if name.startswith("bleu_tuned[")] == ["bleu_tuned[char]"]


def test_without_candidates_the_search_of_the_task_stays(store):
    (tuned,) = tune(make_study(SEQ2SEQ, tokenizers=["intl"]), store)
    assert tuned.metrics["beam_tuned"] == 2
    assert tuned.metrics["bleu_tuned"] == tuned.metrics["bleu_tokenized[intl]"]


def test_models_that_cannot_be_tuned_are_reported_and_the_others_are_tuned(store, golden):
    study = make_study(SEQ2SEQ, PLAIN, MARKOV)
    store.files.weights_file(study.trials[0].id).unlink()
    store.files.weights_file(study.trials[1].id).write_bytes(b"no weights")
    *reasons, tuned = [each.reason for each in tune(study, store)]
    golden(reasons)
    assert tuned is None


def test_decoding_that_does_not_end_is_left_soon_after_the_time_limit(store, monkeypatch):
    study, machine = make_study(SEQ2SEQ), Machine(data=store.root.parent, time_limit_s=0.1)
    monkeypatch.setattr(process, "GRACE_S", 0.1)
    monkeypatch.setattr(tuning, "generate", lambda *_, **__: [time.sleep(0.01) for _ in iter(int, 1)])
    (left,) = tune_study(study, store, machine)
    assert ("0.1 s" in left.reason, left.metrics) == (True, {})


@pytest.mark.usefixtures("store")
def test_a_study_that_keeps_no_weights_has_nothing_to_decode_with(golden):
    text = translation_text(SEQ2SEQ, keep_weights=False, decode=DECODE)
    with golden.raises(ValueError):
        load_study(text)


@pytest.mark.usefixtures("store")
def test_a_table_of_a_tuning_needs_something_to_try(golden):
    table = {"name": "tuned", "rows": "model", "value": ["bleu", "bleu_tuned"]}
    with golden.raises(ValueError):
        load_study(translation_text(SEQ2SEQ, table=[table]))
    assert load_study(translation_text(SEQ2SEQ, table=[table], decode=DECODE)).decode is not None


@pytest.mark.parametrize("room", [pytest.param(3, marks=pytest.mark.heavy), 0])
def test_where_a_device_has_no_memory_for_a_batch_it_is_searched_in_parts(store, monkeypatch, room):
    other, most = Store(shutil.copytree(store.root, store.root.parent / "other")), list[int]()
    expected = tune(make_study(SEQ2SEQ), other) if room else []
    search = generation.search_outputs

    def short(model, sources, *args, **kwargs):
        most.append(len(sources))
        if len(sources) > room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")
        return search(model, sources, *args, **kwargs)

    monkeypatch.setattr(generation, "search_outputs", short)
    (found,) = tune(make_study(SEQ2SEQ), store)
    if room:
        assert found.metrics == expected[0].metrics and found.metrics
        assert max(most) > room >= most[-1]
    else:
        assert (found.reason, found.metrics) == ("out of memory", {})


def test_a_machine_failure_is_not_recorded_as_a_models_reason(store, monkeypatch, golden):
    def fail(*args, **kwargs):
        raise RuntimeError("No CUDA GPUs are available")

    monkeypatch.setattr(generation, "search_outputs", fail)
    with golden.raises(MachineError):
        tune(make_study(SEQ2SEQ), store)


def test_a_gpu_that_cuda_fails_with_is_reported_and_no_cpu_decodes(store, monkeypatch, golden):
    monkeypatch.setattr(failures, "gpu_fault", lambda: "Error 805")
    with golden.raises(MachineError):
        next(tune_study(make_study(SEQ2SEQ), store, Machine(gpus="auto", data=store.root.parent)))
