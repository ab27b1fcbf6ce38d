"""Joint training equals separate training: every block, optimiser and choice of [train]."""

import copy
from weakref import ref

import pytest
import torch

from activemem.blocks.testing import example_block
from activemem.engine.core import TimeLimitPassed
from activemem.engine.packs import (
    PackError,
    StackedSteps,
    alone_reason,
    form_of,
    stacked_steps,
    stacking_fault,
)
from activemem.engine.trial import Training
from activemem.grammar import render
from activemem.studies.schema import TrainSettings

from ...blocks.example_blocks import SEQUENCE_BLOCKS

CPU = torch.device("cpu")
PROGRAM = {"optimizer": {"name": "sgd", "lr": 0.1}}


@pytest.fixture
def make(settings):
    """Return a factory of trainings with dropout, optionally in double precision."""

    def made(
        seed,
        recipe="conv(k=3) >> ff(16)",
        *,
        double=False,
        dropout=0.1,
        position="timing",
        task="reverse",
        **train,
    ):
        chosen = settings(recipe, seed=seed, task=task, **train)
        model = chosen.model.model_copy(update={"dropout": dropout, "attention_dropout": dropout})
        if position != "timing":
            model = model.model_copy(update={"position": position, "max_positions": 50})
        training = Training.begin(chosen.model_copy(update={"model": model}), CPU)
        if double:
            training.model.double()
        return training

    return made


def take_together(trainings, steps):
    """Take joint steps twice, so that weights are unstacked and stacked again."""
    for part in (1, steps - 1):
        with StackedSteps(trainings) as stacked:
            for _ in range(part):
                stacked.step()


def assert_equal(alone, packed, tolerance):
    """Assert equal states: weights and optimiser within a tolerance, random streams exactly."""
    for one, other in zip(alone, packed, strict=True):
        expected, found = one.state(), other.state()
        for name, weight in expected["model"].items():
            torch.testing.assert_close(found["model"][name], weight, atol=tolerance, rtol=0.0)
        torch.testing.assert_close(
            found["optimizer"], expected["optimizer"], atol=tolerance, rtol=tolerance, check_dtype=False
        )
        assert torch.equal(found["noise"], expected["noise"])
        assert torch.equal(found["objective"]["data"], expected["objective"]["data"])
        assert float(found["epoch"]["loss"]) == pytest.approx(float(expected["epoch"]["loss"]), rel=1e-6)


def advance_both(make, tolerance, *given, seeds=(0, 1, 2), steps=4, **options):
    """Train separately and jointly, with the last step after a restore."""
    alone = [make(seed, *given, **options) for seed in seeds]
    packed = [make(seed, *given, **options) for seed in seeds]
    for training in alone:
        for _ in range(steps):
            training.take_steps()
    take_together(packed, steps - 1)
    restored = [make(seed, *given, **options) for seed in seeds]
    for training, before in zip(restored, packed, strict=True):
        training.restore(copy.deepcopy(before.state()))
        training.take_steps()
    assert_equal(alone, restored, tolerance)
    assert [training.packed_steps for training in restored] == [steps - 1] * len(seeds)


@pytest.mark.parametrize(  # the conformance suite stacks each block as well, for one pass
    "name",
    [
        pytest.param(name, marks=[pytest.mark.heavy] * (place % 4 > 0))
        for place, name in enumerate(SEQUENCE_BLOCKS)
    ],
)
def test_every_block_trains_as_it_does_separately(make, name):
    text = render(example_block(name))
    assert stacking_fault(make(0, text).model) is None
    alone, packed = ([make(seed, text, **PROGRAM) for seed in range(3)] for _ in range(2))
    for training in alone:
        training.take_steps()
    with StackedSteps(packed) as stacked:
        stacked.step()
    assert_equal(alone, packed, 1e-6)
    advance_both(make, 1e-10, text, double=True)


@pytest.mark.parametrize(
    "optimizer",
    [
        {"name": "adamw", "lr": 1e-2, "weight_decay": 0.1, "decay_norms": False},
        {"name": "sgd", "lr": 0.1, "momentum": 0.9},
        {"name": "adagrad", "lr": 0.1},
        {"name": "lion", "lr": 1e-3},
        {"name": "adafactor", "lr": 1e-2},
        {"name": "muon", "lr": 1e-2},
    ],
    ids=lambda optimizer: optimizer["name"],
)
def test_every_optimiser_moves_as_it_does_separately(make, optimizer):
    advance_both(make, 1e-6, double=True, optimizer=optimizer)


@pytest.mark.parametrize(
    "chosen",
    [
        {"clip_norm": 0.1},
        {"clip_norm": 1e3},
        {
            "clip_norm": 0.1,
            "groups": [{"match": "body.*", "lr_scale": 0.5}, {"match": "output.*", "freeze": True}],
        },
        {"clip_tensor_norm": 0.1},
        {"clip_step_norm": 0.1},
        {"measure": ["gradient_norm"]},
        {"schedule": {"name": "cosine", "warmup": 3}},
        {"schedule": {"name": "recent", "every": 1, "patience": 1, "decay": 0.5}},
        {"groups": [{"match": "body.*", "lr_scale": 0.5}, {"match": "output.*", "freeze": True}]},
    ],
    ids=str,
)
def test_every_choice_of_train_holds(make, chosen):
    advance_both(make, 1e-8, double=True, **chosen)


@pytest.mark.parametrize(
    ("position", "dropout"), [("learned", 0.1), ("randomised", 0.1), ("randomised", 0.0)]
)
def test_positions_are_learnt_and_drawn_together_as_separately(make, position, dropout):
    advance_both(make, 1e-8, double=True, position=position, dropout=dropout)


@pytest.mark.parametrize("pos", ["rope", "t5"])
def test_pairwise_positions_are_drawn_together_as_separately(make, pos):
    recipe = f"2 * sa(heads=2, head_width=4, pos={pos})"
    advance_both(make, 1e-8, recipe, double=True, position="randomised_pairs")


def test_each_has_its_own_average_of_weights(make):
    def with_average(seed, **options):
        return make(seed, average=(0.9, 0.5, None)[seed], **options)

    alone, packed = ([with_average(seed, **PROGRAM) for seed in range(3)] for _ in range(2))
    for training in (*alone, *alone):
        training.take_steps()
    take_together(packed, 2)
    assert_equal(alone, packed, 1e-6)
    for one, other in zip(alone, packed, strict=True):
        expected = one.state().get("average", {})
        for name, weight in other.state().get("average", {}).items():
            torch.testing.assert_close(weight, expected[name], atol=1e-6, rtol=0.0)


def test_each_has_its_own_rate_and_steps(make):
    rates = {0: 1e-2, 1: 1e-3}

    def with_rate(seed, **options):
        return make(seed, optimizer={"name": "adam", "lr": rates[seed]}, **options)

    advance_both(with_rate, 1e-10, seeds=(0, 1), double=True)
    alone, packed = ([make(seed, double=True) for seed in (0, 1)] for _ in range(2))
    for trainings in (alone, packed):
        trainings[0].take_steps()  # one is a step ahead
    for training in alone:
        training.take_steps()
    with StackedSteps(packed) as stacked:
        stacked.step()
    assert_equal(alone, packed, 1e-10)


def test_trainings_of_one_rate_may_be_at_different_steps(make):
    alone, packed = ([make(seed, double=True) for seed in (0, 1, 2)] for _ in range(2))
    for trainings in (alone, packed):
        for _ in range(2):
            trainings[0].take_steps()
        trainings[1].take_steps()  # the last one has taken no step
    for training in alone:
        for _ in range(3):
            training.take_steps()
    take_together(packed, 3)
    assert_equal(alone, packed, 1e-10)


RULES = [
    {"optimizer": {"name": "adam", "lr": 1e-2}},
    {"optimizer": {"name": "adam", "lr": 1e-2}},
    {"optimizer": {"name": "adam", "lr": 1e-3, "betas": [0.5, 0.9], "weight_decay": 0.1}},
    {"optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9}},
    {"optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9}},
    {"optimizer": {"name": "adafactor", "lr": 1e-2}},
    {"clip_norm": 0.1},
    {"clip_norm": 0.1},
    {"clip_tensor_norm": 0.1},
    {"clip_step_norm": 0.1},
    {"measure": ["gradient_norm"]},
    {"schedule": {"name": "cosine", "warmup": 3}},
    {"schedule": {"name": "cosine", "warmup": 3}, "epochs": 2},
    {"stop": {"within": 0.5, "epochs": 1}},
    {"early_stopping": {"metric": "dev_loss", "patience": 1}},
    {"curriculum": None, "lengths": [5, 5]},
]
"""Settings of [train] in which the trials of one pack differ."""


def test_each_trial_has_its_own_settings(make, settings):
    def with_rule(seed, **options):
        return make(seed, **RULES[seed], **options)

    assert {form_of(settings(**rule)) for rule in [*RULES, {"average": 0.9}]} == {form_of(settings())}
    assert form_of(settings()) is not None
    advance_both(with_rule, 1e-10, seeds=range(len(RULES)), double=True)


class NewerSettings(TrainSettings):
    """[train] with a key of a later version."""

    newer: float | None = None


def test_a_trial_with_a_key_that_packs_do_not_handle_trains_alone(settings):
    given = settings()

    def with_newer(value):
        return given.model_copy(update={"train": NewerSettings(**dict(given.train), newer=value)})

    assert alone_reason(with_newer(None)) is None
    assert alone_reason(with_newer(0.5)) == "packs do not handle this key ([train] newer)"
    assert form_of(with_newer(0.5)) is None


def test_trainings_continue_separately_after_a_pack_though_blocks_share_weights(make):
    alone, packed = (
        [make(seed, "2 * persistent_conv(k=3)", double=True) for seed in (0, 1)] for _ in range(2)
    )
    with StackedSteps(packed) as stacked:
        stacked.step()
    for training in (*alone, *alone, *packed):
        training.take_steps()
    assert_equal(alone, packed, 1e-10)


def test_a_nan_stays_with_its_trial(make):
    alone, packed = ([make(seed, double=True) for seed in (0, 1)] for _ in range(2))
    for trainings in (alone, packed):
        with torch.no_grad():
            next(trainings[0].model.parameters()).fill_(torch.nan)
    for training in alone:
        training.take_steps()
    with StackedSteps(packed) as stacked:
        stacked.step()
    assert packed[0].state()["epoch"]["loss"].isnan()
    assert_equal(alone[1:], packed[1:], 1e-10)


def test_batches_of_other_shapes_are_refused(make, golden):
    trainings = [make(0), make(1, curriculum={"start": 6})]
    with golden.raises(PackError), StackedSteps(trainings) as stacked:
        stacked.step()


def test_blocks_that_take_note_of_their_weights_train_separately(make):
    told = stacking_fault(make(0, "sa(heads=2, span=4, adaptive=true, ramp=2)").model)
    assert told.startswith("AdaptiveSpans ")


def test_trials_of_one_form_differ_in_what_no_shape_depends_on(settings):
    form = form_of(settings(task="addition"))
    assert form is not None
    assert form == form_of(settings(task="addition", seed=3, epochs=9, optimizer={"name": "sgd", "lr": 0.1}))
    assert form == form_of(settings(task="multiply"))  # has as many symbols
    changed = [{"batch_size": 16}, {"steps_per_epoch": 6}, {"task": "sort"}, {"recipe": "conv(k=4)"}]
    for other in (settings(**{"task": "addition"} | each) for each in changed):
        assert form_of(other) != form
    assert form_of(settings(accumulate=2)) is None
    assert alone_reason(settings(accumulate=2)).endswith("([train] accumulate)")


def storages(training):
    """Return the storages of a training's weights."""
    return [weight.data_ptr() for weight in training.model.parameters()]


def fail(*_):
    raise RuntimeError("no room")


@pytest.mark.parametrize("error", [RuntimeError, TimeLimitPassed])
def test_weights_are_back_in_their_own_memory_whatever_ends_a_pack(make, error):
    trainings = [make(seed) for seed in range(3)]
    before = [storages(training) for training in trainings]
    with pytest.raises(error), StackedSteps(trainings) as stacked:
        stacked.step()
        raise error
    assert [storages(training) for training in trainings] == before
    assert not any(training.is_stacked for training in trainings)


def test_weights_are_as_they_were_where_a_pack_cannot_begin(make, monkeypatch):
    trainings = [make(seed) for seed in range(3)]
    before = [(storages(each), copy.deepcopy(each.weights())) for each in trainings]
    monkeypatch.setattr(stacked_steps.JointAdam, "build", fail)
    with pytest.raises(RuntimeError, match="no room"), StackedSteps(trainings):
        pass
    for training, (places, weights) in zip(trainings, before, strict=True):
        assert storages(training) == places
        assert all(torch.equal(weights[name], weight) for name, weight in training.weights().items())


@pytest.mark.parametrize("optimizer", [{"name": "adam", "lr": 1e-3}, {"name": "muon", "lr": 1e-2}])
def test_no_gradient_is_held_after_a_step(make, optimizer):
    trainings = [make(seed, optimizer=optimizer) for seed in range(3)]
    gone = []
    with StackedSteps(trainings) as stacked:
        for weight in stacked.weights.values():
            weight.register_post_accumulate_grad_hook(
                lambda each: gone.append(ref(each.grad.untyped_storage()))
            )
        stacked.step()
        assert gone
        assert not any(weight.grad is not None for each in trainings for weight in each.model.parameters())
        assert not any(storage() is not None for storage in gone)
