"""Packs whose passes are recorded: the numbers of each trial alone, one recording for each shape."""

import copy
import gc
import json
import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from activemem.engine.core.resources import Machine
from activemem.engine.graphs.graphable import GraphedTrainings, make_recordings
from activemem.engine.graphs.recorded_work import WORTH, Recordings
from activemem.engine.packs.attempts import Packer
from activemem.engine.packs.gate import machine_file
from activemem.engine.packs.graphed_passes import GraphedPacks, GraphedPasses
from activemem.engine.packs.pack import Pack
from activemem.engine.packs.stacked_steps import StackedSteps
from activemem.engine.run.driver import run_study
from activemem.engine.trial.memory_retries import free_memory
from activemem.engine.trial.training import Training
from activemem.storage import Store
from activemem.studies.study import load_study

from ...study_texts import study_text
from ..graphs.recorders import NormOfSome, Recorder, refuse

CPU = torch.device("cpu")
NEEDS_A_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
RECIPES = ["2 * (sa(heads=2) >> ff(16))", "conv(k=3) >> ff(16)", "sa(heads=2, head_width=4, pos=rope)"]


@pytest.fixture
def make(settings):
    """Makes a training with dropout, in double precision on a CPU."""

    def made(seed, recipe=RECIPES[0], position="timing", device=CPU, begin=Training, **train):
        chosen = settings(recipe, seed=seed, task="reverse", **train)
        model = {"dropout": 0.2, "attention_dropout": 0.1, "position": position}
        model |= {} if position == "timing" else {"max_positions": 50}
        model = chosen.model.model_copy(update=model)
        training = begin(chosen.model_copy(update={"model": model}), device, Path("data"))
        if device is CPU:
            training.model.double()
        return training

    return made


def advance(trainings, graphs, steps=2):
    with StackedSteps(trainings, graphs.passes("form", trainings)) as stacked:
        for _ in range(steps):
            stacked.step()


def assert_equal(alone, packed, tolerance=1e-9):
    for one, other in zip(alone, packed, strict=True):
        expected, found = one.state(), other.state()
        for part in ("model", "optimizer"):
            torch.testing.assert_close(found[part], expected[part], atol=tolerance, rtol=tolerance)
        assert torch.equal(found["noise"], expected["noise"])
        assert torch.equal(found["objective"]["data"], expected["objective"]["data"])


@pytest.mark.parametrize(
    ("recipe", "position"),
    [*((recipe, "timing") for recipe in RECIPES[:2]), (RECIPES[2], "randomised_pairs")],
)
def test_recorded_packs_train_as_each_does_alone_and_any_of_the_form_take_a_place(make, recipe, position):
    alone, packed = ([make(seed, recipe, position) for seed in range(4)] for _ in range(2))
    recorder = Recorder()
    graphs = GraphedPacks(Recordings(recorder))
    for chosen in ([0, 1, 2], [1, 2, 3], [3, 0], [2, 3, 0]):
        for place in chosen:
            for _ in range(2):
                alone[place].take_step()
        advance([packed[place] for place in chosen], graphs)
    assert_equal(alone, packed)
    assert (recorder.recorded, recorder.replayed) == (2, 8)  # one of three, one of two
    assert len(graphs) == 2


def test_each_length_is_recorded_once_and_frozen_weights_have_no_gradients(make):
    groups = [{"match": "body.*", "freeze": True}]
    alone, packed = ([make(seed, groups=groups) for seed in range(2)] for _ in range(2))
    recorder = Recorder()
    graphs = GraphedPacks(Recordings(recorder))
    for length in (7, 5, 7):
        for training in (*alone, *packed):
            training.objective._curriculum.length = length
        advance(packed, graphs, 1)
        for training in alone:
            training.take_step()
    assert_equal(alone, packed)
    assert (recorder.recorded, recorder.replayed) == (2, 3)


def test_trainings_are_recorded_alone_and_together(make):
    recorder = Recorder()
    recordings = Recordings(recorder)
    alone = [make(seed) for seed in range(2)]
    packed = [make(seed, begin=GraphedTrainings(recordings)) for seed in range(2)]
    graphs = GraphedPacks(recordings)
    for together in (True, False, True, False):
        for training in (*alone, *([] if together else packed)):
            training.take_step()
        if together:
            advance(packed, graphs, 1)
    assert_equal(alone, packed)
    assert recorder.recorded == 3
    assert len(recordings) == 3


def test_a_pack_that_cannot_be_recorded_trains_without_and_its_form_is_not_tried_again(make, caplog):
    alone, packed = ([make(seed) for seed in range(3)] for _ in range(2))
    graphs = GraphedPacks(Recordings(refuse))
    with caplog.at_level(logging.WARNING):
        for chosen in (range(2), range(3), range(2)):
            for place in chosen:
                for _ in range(2):
                    alone[place].take_step()
            advance([packed[place] for place in chosen], graphs)
    assert_equal(alone, packed)
    assert graphs.passes("form", packed) is None and len(graphs) == 0
    told = "steps are not recorded as graphs: operation not permitted when stream is capturing"
    assert [record.getMessage() for record in caplog.records] == [told]


def test_a_pack_of_which_weights_have_gradients_at_some_lengths_alone_is_trained_without(make, caplog):
    alone, packed = ([make(seed) for seed in range(2)] for _ in range(2))
    for training in (*alone, *packed):
        training.model.norm = NormOfSome(training.model.norm, {7})
    recorder = Recorder()
    graphs = GraphedPacks(Recordings(recorder))
    for length in (7, 5, 7):
        for training in (*alone, *packed):
            training.objective._curriculum.length = length
        advance(packed, graphs, 1)
        for training in alone:
            training.take_step()
    assert_equal(alone, packed)
    assert (recorder.recorded, recorder.replayed, len(graphs)) == (1, 1, 0)
    told = "steps are not recorded as graphs: which weights have gradients depends on the length of a batch"
    assert [record.getMessage() for record in caplog.records] == [told]


def test_where_memory_is_short_packs_give_back_all_but_what_is_in_use(make):
    recorder, sizes = Recorder(), (4, 3, 2)  # larger batches would take the place of smaller ones

    def record(work, generators=()):
        if len(graphs) == len(sizes):  # the last has no room beside the others
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return recorder(work, generators)

    alone, packed = ([make(seed) for seed in range(4)] for _ in range(2))
    graphs = GraphedPacks(Recordings(record))
    for size in sizes:
        for training in alone[:size]:
            for _ in range(WORTH + 2):
                training.take_step()
        with graphs.lent("form", packed[:size]) as passes, StackedSteps(packed[:size], passes) as stacked:
            for _ in range(WORTH + 2):
                stacked.step()
            held = len(graphs)
    assert_equal(alone, packed)
    assert (recorder.recorded, held, passes.reason, len(passes)) == (3, 1, None, 1)
    free_memory()
    assert len(graphs) == 0


TRAIN = {"epochs": 3, "steps_per_epoch": 7, "curriculum": {"start": 3, "grow_at": 0.3}}
FACTORS = {"mixer": ["sa(heads=2)", "conv(k=3)"], "task": ["reverse", "not"], "seed": [0, 1]}


@pytest.mark.parametrize("pack", [4, "auto"])
def test_a_recorded_study_has_the_rows_of_one_that_is_not(tmp_path, notes, monkeypatch, pack):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    study = load_study(study_text(train=TRAIN, factors=FACTORS, model={"dropout": 0.1}))
    plain, graphed, recorder = Store(tmp_path / "plain"), Store(tmp_path / "graphed"), Recorder()
    run_study(study, plain, Machine(), notes, local=True)
    monkeypatch.setattr("activemem.engine.run.cohorts.make_recordings", lambda _: Recordings(recorder))
    assert run_study(study, graphed, Machine(pack=pack, graphs=True), notes, local=True).done == 8
    rows = [
        {
            (row["trial"], each["name"]): each["value"]
            for row in store.trials().to_dicts()
            for each in row["metrics"]
            if each["name"] != "tokens_per_s"
        }
        for store in (plain, graphed)
    ]
    assert rows[1] == pytest.approx(rows[0], abs=1e-6)
    assert 0 < recorder.recorded < recorder.replayed
    gc.collect()  # what stands in for a recording refers to what it records
    assert not [each for each in gc.get_objects() if isinstance(each, GraphedPasses)]


def test_the_gate_times_no_step_that_is_recorded(tmp_path, notes, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    factors = {"mixer": ["conv(k=3)"], "task": ["reverse"], "seed": [0, 1, 2]}
    study, recorder = load_study(study_text(train=TRAIN, factors=factors)), Recorder()
    monkeypatch.setattr("activemem.engine.run.cohorts.make_recordings", lambda _: Recordings(recorder))
    monkeypatch.setattr(Pack, "_now", lambda _: 1000.0 * recorder.recorded + recorder.replayed)
    run_study(study, Store(tmp_path / "results"), Machine(pack="auto", graphs=True), notes, local=True)
    measured = [json.loads(line) for line in machine_file().read_text(encoding="utf-8").splitlines()]
    assert measured and all(each["ratio"] == each["trials"] for each in measured)


@NEEDS_A_GPU
@pytest.mark.parametrize("recipe", RECIPES)
def test_packs_on_a_gpu_train_as_each_does_alone_recorded_or_not(make, recipe):
    device = torch.device("cuda")
    rule = {"optimizer": {"name": "sgd", "lr": 0.1}}
    alone, packed, graphed = ([make(seed, recipe, device=device, **rule) for seed in range(3)] for _ in "abc")
    graphs, before = GraphedPacks(make_recordings(device)), torch.cuda.get_rng_state()
    for part in (3, 2):
        with StackedSteps(packed) as stacked:
            for _ in range(part):
                stacked.step()
        advance(graphed, graphs, part)
        for training in alone:
            for _ in range(part):
                training.take_step()
    assert torch.equal(torch.cuda.get_rng_state(), before)
    assert len(graphs.passes("form", graphed)) == 1
    assert_equal(packed, graphed, 1e-5)
    assert_equal(alone, packed, 1e-4)


@NEEDS_A_GPU
def test_a_pack_is_gone_on_with_from_a_state_of_before_its_recording(make):
    device = torch.device("cuda")
    trainings = [make(seed, device=device) for seed in range(2)]
    graphs = GraphedPacks(make_recordings(device))
    advance(trainings, graphs)
    states = [copy.deepcopy(training.state()) for training in trainings]
    recordings = len(graphs.passes("form", trainings))
    advance(trainings, graphs)
    expected = [copy.deepcopy(training.state()["model"]) for training in trainings]
    for training, state in zip(trainings, states, strict=True):
        training.restore(state)
    advance(trainings, graphs)
    assert recordings == len(graphs.passes("form", trainings)) == 1
    for training, model in zip(trainings, expected, strict=True):
        torch.testing.assert_close(training.state()["model"], model, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("recorded", [False, True])
def test_passes_that_are_recorded_come_in_few_orders_of_symbols(settings, recorded):
    curriculum = {"start": 4, "end": 4}
    trainings = [
        Training(settings(task=task, optimizer={"name": "adam", "lr": lr}, curriculum=curriculum), CPU)
        for lr in (0.01, 0.02)
        for task in ("reverse", "not")
    ]
    packer = Packer(16, None, Recordings(Recorder()) if recorded else None)
    ((_, members),) = packer._groups([SimpleNamespace(packable=training) for training in trainings])
    symbols = [training.num_symbols for _, training in members]
    rates = [training.settings.train.optimizer.lr for _, training in members]
    assert (symbols == sorted(symbols), rates == sorted(rates)) == (recorded, not recorded)
