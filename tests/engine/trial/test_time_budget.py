"""`[train] seconds`: a training ends with the step that passes its time, and its schedule follows it."""

import pickle

import pytest
import torch

from activemem.engine.trial.training import Training

CPU = torch.device("cpu")


@pytest.fixture
def timed(settings, monkeypatch):
    """Return settings with a budget of 8 s in 2 epochs, where each step takes a second."""
    clock = iter(range(1_000_000))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))
    schedule = {"name": "linear", "floor": 0.0}
    return settings(task="reverse", schedule=schedule, epochs=2, seconds=8, steps_per_epoch=1)


def rate(training):
    return training.optimizer.param_groups[0]["lr"]


def test_each_epoch_ends_with_the_step_that_passes_its_share_of_the_time(timed):
    training = Training.begin(timed, CPU)
    assert not training.finished
    training.advance()
    assert (training.step, training.finished) == (4, False)
    training.advance()
    assert (training.step, training.finished) == (8, True)


def test_a_step_longer_than_the_time_is_the_only_one_of_its_epoch(timed):
    short = timed.model_copy(update={"train": timed.train.model_copy(update={"seconds": 0.5})})
    training = Training.begin(short, CPU)
    training.advance()
    assert training.step == 1


def test_the_schedule_is_at_the_fraction_of_the_time_that_is_spent(timed):
    training, rates = Training.begin(timed, CPU), []
    first = rate(training)
    while not training.finished:
        training.advance(lambda: rates.append(rate(training)))
    assert first == pytest.approx(1e-2)
    assert rates[:-1] == pytest.approx([1e-2 * (1 - step / 8) for step in range(2, 9)])


def test_the_spent_time_goes_through_a_checkpoint(timed):
    training = Training.begin(timed, CPU)
    training.take_steps(3)
    resumed = Training.begin(timed, CPU)
    resumed.restore(pickle.loads(pickle.dumps(training.state())))
    resumed.advance()
    assert resumed.step == 4
    resumed.advance()
    assert (resumed.step, resumed.finished) == (8, True)


def test_the_mean_loss_and_the_work_are_of_the_steps_that_were_taken(timed, settings):
    training = Training.begin(timed, CPU)
    losses = training.advance()
    counted = Training.begin(
        settings(task="reverse", epochs=2, steps_per_epoch=4, schedule={"name": "linear"}), CPU
    )
    same = counted.advance()
    assert training.work.flops == counted.work.flops
    assert losses["loss"] == pytest.approx(same["loss"], rel=0.05)
