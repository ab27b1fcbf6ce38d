"""A training: reproducible, interruptible anywhere, and with speed according to its lengths."""

import math
import pickle

import pytest
import torch

from activemem.engine.core.process import derive_seed
from activemem.engine.trial.evaluation import NotANumberError, Stopping
from activemem.engine.trial.training import Training

CPU = torch.device("cpu")
GPU = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))
TIMED = "tokens_per_s"


def trained(settings, epochs=None, device=CPU):
    """Return a training after its epochs, and the metrics of each without speeds."""
    training, history = Training.begin(settings, device), []
    while not training.finished and (epochs is None or training.epoch < epochs):
        history.append({name: value for name, value in training.advance().items() if name != TIMED})
    return training, history


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("device", ["cpu", GPU])
@pytest.mark.parametrize(
    "recipe", ["sa(heads=2, head_width=8) + conv(k=3) >> ff(16)", "cgru(k=3)", "tied(2 * ff(8))"]
)
def test_a_restored_state_resumes_bit_for_bit(settings, recipe, device, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)  # else convolutions add in any order
    device = torch.device(device)
    made = settings(recipe=recipe, task="reverse", schedule={"name": "cosine", "warmup": 3})
    whole, history = trained(made, device=device)
    half, first = trained(made, epochs=2, device=device)
    state = pickle.loads(pickle.dumps(half.state()))
    rest = Training.begin(made, device)
    rest.restore(state)
    second = []
    while not rest.finished:
        second.append({name: value for name, value in rest.advance().items() if name != TIMED})
    assert first + second == history
    assert same(whole.state()["model"], rest.state()["model"])


@pytest.mark.parametrize("device", [GPU])
def test_a_gpu_trains_as_the_processor_does(settings, device):
    made = settings(recipe="sa(heads=2, head_width=8) + cgru(k=3) >> ff(16)", task="reverse")
    made = made.model_copy(update={"model": made.model.model_copy(update={"dropout": 0.0})})
    (_, here), (_, there) = trained(made, epochs=1), trained(made, epochs=1, device=torch.device(device))
    assert there[0]["loss"] == pytest.approx(here[0]["loss"], rel=1e-4)


def test_two_trainings_that_take_turns_do_not_disturb_each_other(settings):
    _, alone = trained(settings())
    first, second = Training.begin(settings(), CPU), Training.begin(settings(seed=1), CPU)
    turns = []
    while not first.finished:
        turns.append({name: value for name, value in first.advance().items() if name != TIMED})
        second.advance()
    assert turns == alone


def test_a_training_leaves_the_random_stream_of_its_process_alone(settings):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    Training.begin(settings(), CPU).advance()
    assert torch.equal(torch.rand(3), expected)


def test_the_order_of_a_sum_changes_no_bit(settings):
    _, first = trained(settings(recipe="sa(heads=2, head_width=8) + conv(k=3)", task="reverse"))
    _, second = trained(settings(recipe="conv(k=3) + sa(heads=2, head_width=8)", task="reverse"))
    assert first == second


def test_cells_of_one_seed_see_the_same_data(settings):
    first, second = (
        Training.begin(settings(recipe="ff(8)"), CPU),
        Training.begin(settings(recipe="conv(k=3)"), CPU),
    )
    assert torch.equal(first.state()["objective"]["data"], second.state()["objective"]["data"])
    assert not torch.equal(
        first.state()["objective"]["data"], Training.begin(settings(seed=1), CPU).state()["objective"]["data"]
    )


def test_the_length_of_not_grows_by_one_in_every_epoch(settings):
    _, history = trained(settings(recipe="ff(32)", steps_per_epoch=60, epochs=5))
    assert [each["max_length"] for each in history] == [5.0, 6.0, 7.0, 8.0, 9.0]
    assert [each["length"] for each in history] == [5.0, 6.0, 7.0, 8.0, 9.0]


def test_a_loss_that_is_not_a_number_names_its_epoch(settings, golden):
    training = Training.begin(settings(optimizer={"name": "sgd", "lr": 1e30}), CPU)
    with golden.raises(NotANumberError):
        training.advance()


def test_a_model_that_diverges_in_its_last_step_is_found_by_its_dev_loss(settings, golden):
    last_step = {"optimizer": {"name": "sgd", "lr": 1e38}, "epochs": 1, "steps_per_epoch": 1}
    training = Training.begin(settings(task="reverse", lengths=[3, 6], curriculum=None, **last_step), CPU)
    with golden.raises(NotANumberError):
        training.advance()
    assert training.epoch == 1


def test_flops_follow_the_length_of_each_epoch(settings):
    training, history = trained(settings(recipe="ff(16)"))
    per_token = 3 * 2 * (2 * 16 * 16 + 16 * 3)  # three times the products of ff and of the output, V = 3
    assert training.work.flops == 5 * 8 * sum(each["length"] * per_token for each in history)


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd"])
def test_every_optimiser_lowers_the_loss(settings, name):
    lr = 1e-2 if name != "sgd" else 0.3
    _, history = trained(settings(optimizer={"name": name, "lr": lr}, steps_per_epoch=20, clip_norm=1.0))
    assert history[-1]["loss"] < history[0]["loss"]


def test_seeds_differ_by_purpose_and_stay_what_they_are():
    assert derive_seed(0, "data") != derive_seed(0, "dropout")
    assert derive_seed(0, "data") == 8847680504906427687
    assert math.log2(max(derive_seed(seed, "data") for seed in range(100))) < 63


def test_a_training_ends_once_its_loss_has_come_to_rest(settings):
    training, history = trained(settings(epochs=40, stop={"within": 0.02, "epochs": 3}))
    losses = [each["loss"] for each in history]
    windows = [losses[first : first + 4] for first in range(len(losses) - 3)]
    ranges = [max(window) - min(window) for window in windows]
    assert 4 <= len(losses) < 40
    assert ranges[-1] < 0.02 <= min(ranges[:-1])
    assert training.finished


def test_two_equal_losses_with_others_between_them_are_no_rest(settings):
    train = settings(epochs=9, stop={"within": 0.02, "epochs": 3}).train
    for losses, is_last in (([1.0, 1.5, 0.5, 1.0], False), ([1.0, 1.01, 1.0, 1.005], True)):
        stopping = Stopping.begin(train)
        for loss in losses:
            stopping = stopping.after_steps(loss)
        assert stopping.is_last_epoch == is_last
