"""Activation checkpointing: identical numbers with less memory."""

import copy
import logging
from functools import partial
from pathlib import Path

import pytest
import torch

from activemem import load_study, run_study
from activemem.blocks import build
from activemem.blocks.core import outermost_stacks
from activemem.engine import Machine
from activemem.engine.core import checkpointing_fault
from activemem.engine.trial import Training
from activemem.storage import Store
from activemem.studies.schema import TrialSettings

from ...quick_cases import one_in
from . import part_examples  # noqa: F401 -- its loss terms

CPU = torch.device("cpu")
STREAM = {"name": "language_model", "corpus": "paradise-lost", "context": 16, "dev_tokens": 100}
KINDS = {
    "attention": ("2 * (sa(heads=2) >> ff(16))", {"name": "reverse"}, {}),
    "convolution": ("conv(k=3) >> lstm >> ff(16)", {"name": "sort"}, {"accumulate": 2}),
    "sum": ("2 * (conv(k=3) + sa(heads=2) + (lstm >> ff(8)))", {"name": "reverse"}, {"precision": "bf16"}),
    "tied": ("tied(3 * (sa(heads=2) >> ff(16)))", {"name": "reverse"}, {"measure": ["gradient_norm"]}),
    "pool": ("conv(k=3) >> mean_pool", {"name": "recall_addition"}, {}),
    "stream": ("2 * (sa(heads=2, span=16) >> lstm)", STREAM, {"accumulate": 2}),
    "spans": ("2 * (sa(heads=2, span=16, adaptive=true, ramp=4) >> ff(8))", STREAM, {"span_loss": 0.01}),
    "encoder and decoder": (
        "seq2seq(2 * (sa(heads=2) >> ff(16)), 2 * (sa(heads=2) + conv(k=3) >> ff(16)))",
        {"name": "reverse_copy"},
        {},
    ),
}


def settings_of(recipe, task, dropout=0.2, **train):
    position = "none" if task["name"] == "language_model" else "timing"
    model = {"recipe": recipe, "d_model": 16, "dropout": dropout, "position": position}
    if task["name"] != "recall_addition":
        model |= {"attention_dropout": 0.1, "embedding_dropout": 0.1}
    chosen = {"optimizer": {"name": "adam", "lr": 0.01}, "batch_size": 4, "epochs": 2, "steps_per_epoch": 4}
    if task["name"] in ("reverse", "sort"):
        chosen["curriculum"] = {"start": 5}
    return TrialSettings.model_validate({"model": model, "task": task, "train": {**chosen, **train}})


def take(training, steps):
    for _ in range(steps):
        training.take_steps()


def assert_same_bits(one, other):
    ours, theirs = one.state(), other.state()
    assert torch.equal(ours["noise"], theirs["noise"])
    assert torch.equal(ours["epoch"]["loss"], theirs["epoch"]["loss"])
    for part in ("model", "optimizer", "objective", "gradients"):
        torch.testing.assert_close(ours.get(part), theirs.get(part), rtol=0, atol=0, equal_nan=True)


@pytest.mark.usefixtures("bf16_at_any_size")
@pytest.mark.parametrize("kind", one_in(2, KINDS))
def test_steps_have_the_bits_that_they_have_with_all_activations_kept(kind):
    recipe, task, train = KINDS[kind]
    settings, begin = settings_of(recipe, task, **train), partial(Training.begin, recomputes=True)
    plain, found = (make(settings, CPU, Path("data")) for make in (Training.begin, begin))
    assert any(stack.checkpoints for stack in outermost_stacks(found.model))
    take(plain, 3)
    take(found, 2)
    restored = begin(settings, CPU, Path("data"))
    restored.restore(copy.deepcopy(found.state()))
    take(restored, 1)
    take(found, 1)
    assert_same_bits(plain, found)
    assert_same_bits(plain, restored)


def test_loss_terms_see_what_layers_give_once():
    recipe, task, _ = KINDS["attention"]
    settings = settings_of(recipe, task, loss_terms=[{"name": "activity_of_layers", "weight": 0.1}])
    plain, found = (
        make(settings, CPU, Path("data"))
        for make in (Training.begin, partial(Training.begin, recomputes=True))
    )
    take(plain, 2)
    take(found, 2)
    assert_same_bits(plain, found)
    assert plain.state()["terms"] == found.state()["terms"]


def test_the_reason_why_all_is_kept_is_reported_once(caplog, golden):
    begin, task = partial(Training.begin, recomputes=True), {"name": "reverse_copy"}
    recipe = "seq2seq(gru, gru)"
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            training = begin(settings_of(recipe, task, dropout=0.0), CPU, Path("data"))
    take(training, 1)
    golden(caplog.messages)
    compiled = settings_of("ff(8)", {"name": "reverse"}, compile=True)
    fault = checkpointing_fault(compiled, build("ff(8)", d_model=8, vocab=5))
    assert "([train] compile)" in fault


@pytest.mark.heavy
def test_a_study_has_the_same_rows_under_the_same_ids(tmp_path, tiny, notes):
    study, found = load_study(tiny), []
    for checkpoints in (False, True):
        store = Store(tmp_path / str(checkpoints))
        machine = Machine(gpus=0.0, activation_checkpointing=checkpoints)
        assert run_study(study, store, machine, notes, local=True).done == 8
        found.append(
            {
                (row["trial"], each["name"]): each["value"]
                for row in store.trials().to_dicts()
                for each in row["metrics"]
                if each["name"] != "tokens_per_s"
            }
        )
    assert found[0] == found[1]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("kind", ["attention", "stream", "encoder and decoder"])
def test_a_gpu_drops_the_same_again(kind):
    recipe, task, train = KINDS[kind]
    found = []
    for make in (Training.begin, partial(Training.begin, recomputes=True)):
        training = make(settings_of(recipe, task, **train), torch.device("cuda"), Path("data"))
        take(training, 3)
        found.append(training.state())
    assert torch.equal(found[0]["noise"], found[1]["noise"])
    torch.testing.assert_close(found[0]["model"], found[1]["model"], rtol=1e-3, atol=1e-5)
