"""Conformance checks of loss terms, callbacks, optimisers and schedules, built-in or of plug-ins.

    load_plugin("activity.py")

    @pytest.mark.parametrize("check", LOSS_TERM_CHECKS)
    def test_activity_conforms(check):
        check(trial(loss_terms=[{"name": "activity", "weight": 0.1}]))

A check raises AssertionError if a training violates a rule. The trainings take seconds; `model` and `task`
are tables of a model and a task that the part supports.
"""

from __future__ import annotations

import io
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ...plugins import PluginError
from ...studies.catalog.train_parts import CALLBACKS
from ...studies.schema.settings import TrialSettings
from ..core.process import StoppedMidway
from .training import TOKENS_PER_S, Training, factor

EPOCHS, STEPS = 2, 3
"""The length of each training that the checks run."""

_MODEL = {"recipe": "2 * (sa(heads=2, head_width=4) >> ff(16))", "d_model": 8}
_TASK = {"name": "reverse", "vocab": 8, "dev_examples": 8}

Course = list[dict[str, float]]
"""The metrics of a training's epochs, without its speed."""


def trial(
    *,
    model: Mapping[str, Any] = _MODEL,
    task: Mapping[str, Any] = _TASK,
    loss_terms: Sequence[Mapping[str, Any]] = (),
    callbacks: Sequence[Mapping[str, Any]] = (),
    **train: object,
) -> TrialSettings:
    """Return a small trial with these loss terms and callbacks.

    It trains in seconds. `train` has more keys of [train], such as `optimizer` and `schedule`.
    """
    tables = {
        "optimizer": {"name": "adam", "lr": 0.01},
        "batch_size": 4,
        # so that a term is also checked on parts of a batch
        "accumulate": 2,
        "epochs": EPOCHS,
        "steps_per_epoch": STEPS,
        "loss_terms": list(loss_terms),
        "callbacks": list(callbacks),
        **({"lengths": [2, 5]} if task == _TASK else {}),
        **train,
    }
    return TrialSettings.model_validate({"model": model, "task": task, "train": tables})


def check_repeats(settings: TrialSettings) -> None:
    """Check that two trainings with the same settings give bit-identical results."""
    assert _course(_begin(settings)) == _course(_begin(settings)), "a trial differed on the second run"


def check_resumes(settings: TrialSettings) -> None:
    """Check that a training resumes from its checkpoint as if it had not been interrupted.

    The training is interrupted within an epoch, before the evaluation of an epoch, and between two epochs.
    """
    expected = _course(_begin(settings))
    training, found = _begin(settings), Course()
    for pieces in range(1, STEPS + 4):
        found += _advance_a_piece(training)
        if pieces not in (2, STEPS, STEPS + 1, STEPS + 3):
            continue
        saved = io.BytesIO()
        torch.save(training.state(), saved)
        saved.seek(0)
        rest = _begin(settings)
        rest.restore(torch.load(saved, weights_only=True))
        assert [*found, *_course(rest)] == expected, f"a training resumed after step {training.step} differed"


def check_moves_weights(settings: TrialSettings) -> None:
    """Check that each loss term changes the trained weights."""
    whole = _weights(settings)
    for term in settings.train.loss_terms:
        assert term.weight, f"{term.name}: expected a weight other than 0"
        terms = tuple(each for each in settings.train.loss_terms if each is not term)
        without = _weights(settings.with_train(loss_terms=terms))
        assert any(not torch.equal(whole[name], without[name]) for name in whole), (
            f"{term.name}: expected a differentiable term, got the same weights as without it"
        )


def check_reports_its_mean(settings: TrialSettings) -> None:
    """Check that every epoch reports a metric with the name of each loss term."""
    for epoch in _course(_begin(settings)):
        missing = [term.name for term in settings.train.loss_terms if term.name not in epoch]
        assert not missing, f"{missing[0]}: expected a metric of that name after each epoch"


def check_leaves_training_alone(settings: TrialSettings) -> None:
    """Check that callbacks do not change the metrics and weights of a training."""
    with_them, without = _begin(settings), _begin(settings.with_train(callbacks=()))
    courses = _course(with_them), _course(without)
    for called, plain in zip(*courses, strict=True):
        assert {name: called[name] for name in plain} == plain, "a metric differs with the callbacks"
    weights = with_them.weights(), without.weights()
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[1]), "weights differ"


def check_reports_its_metrics(settings: TrialSettings) -> None:
    """Check that each metric registered by a callback is reported after some epoch."""
    reported = {name for epoch in _course(_begin(settings)) for name in epoch}
    for each in settings.train.callbacks:
        missing = sorted(CALLBACKS[each.name].metrics - reported)
        assert not missing, f"{each.name}: expected its metric {missing[0]} after some epoch"


def check_follows_lr(settings: TrialSettings) -> None:
    """Check that the optimiser gives other weights with half its `lr`."""
    optimizer = settings.train.optimizer
    half = optimizer.model_copy(update={"lr": optimizer.lr / 2})
    whole, other = _weights(settings), _weights(settings.with_train(optimizer=half))
    assert any(not torch.equal(whole[name], other[name]) for name in whole), (
        f"{optimizer.name}: expected other weights with half the lr, got the same"
    )


def check_rests_at_rate_0(settings: TrialSettings) -> None:
    """Check that a step moves no weight if `lr` is 0 in each parameter group, as a schedule may set it."""
    training = _begin(settings)
    before = {name: weight.clone() for name, weight in training.weights().items()}
    for group in training.optimizer.param_groups:
        group["lr"] = 0.0
    training.take_steps()
    moved = [name for name, weight in training.weights().items() if not torch.equal(weight, before[name])]
    assert not moved, f"{settings.train.optimizer.name}: expected no step at rate 0, but {moved[0]} has moved"


def check_gives_rates(settings: TrialSettings) -> None:
    """Check that the schedule gives a finite share of at least 0 at all steps of short and long trainings."""
    schedule = settings.train.schedule
    for steps in (1, EPOCHS * STEPS, 1000):
        for step in range(1, steps + 1):
            try:
                share = factor(schedule, step, steps)
            except PluginError as error:
                raise AssertionError(f"step {step} of {steps}: {error}") from error
            assert 0 <= share < math.inf, f"{schedule.name}: got a share of {share} at step {step} of {steps}"


Check = Callable[[TrialSettings], None]

LOSS_TERM_CHECKS: tuple[Check, ...] = (
    check_repeats,
    check_resumes,
    check_moves_weights,
    check_reports_its_mean,
)
"""The checks that a loss term must pass."""

CALLBACK_CHECKS: tuple[Check, ...] = (
    check_repeats,
    check_resumes,
    check_leaves_training_alone,
    check_reports_its_metrics,
)
"""The checks that a callback must pass."""

OPTIMIZER_CHECKS: tuple[Check, ...] = (
    check_repeats,
    check_resumes,
    check_follows_lr,
    check_rests_at_rate_0,
)
"""The checks that an optimiser must pass. A state outside of its `state_dict` shows when it resumes."""

SCHEDULE_CHECKS: tuple[Check, ...] = (check_repeats, check_resumes, check_gives_rates)
"""The checks that a schedule must pass."""


def _begin(settings: TrialSettings) -> Training:
    # the data folder, which these tasks do not read
    return Training.begin(settings, torch.device("cpu"), Path(tempfile.gettempdir()))


def _course(training: Training) -> Course:
    course = Course()
    while not training.finished:
        course.append(_without_speed(training.advance()))
    return course


def _advance_a_piece(training: Training) -> Course:
    """Take a training step, or evaluate the model after the last one of an epoch and return the metrics."""

    def leave() -> None:
        raise StoppedMidway

    try:
        return [_without_speed(training.advance(leave))]
    except StoppedMidway:
        return Course()


def _weights(settings: TrialSettings) -> Mapping[str, torch.Tensor]:
    training = _begin(settings)
    _course(training)
    return training.weights()


def _without_speed(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if name != TOKENS_PER_S}
