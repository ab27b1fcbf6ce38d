"""Norm and noise of gradients against their definitions; measuring does not change a training."""

import pytest
import torch
from torch import nn

from activemem.engine.trial.training import Training
from activemem.engine.trial.training_parts import GradientMeasures
from activemem.studies.study import StudyError, load_study

from ...study_texts import study_text

CPU = torch.device("cpu")
BOTH = ("gradient_noise", "gradient_norm")


def test_the_noise_scale_is_the_trace_of_the_covariance_by_the_squared_gradient():
    # the gradient of a sequence is `signal` and normal noise of standard deviation `spread` at each number
    torch.manual_seed(0)
    numbers, spread, batch, parts, steps = 50, 3.0, 32, 4, 400
    signal = torch.randn(numbers)
    model = nn.Linear(numbers, 1, bias=False)
    measures = GradientMeasures(BOTH, model, batch_size=batch, parts=parts)
    for _ in range(steps):
        sequences = signal + spread * torch.randn(batch, numbers)
        model.weight.grad = None
        for part, rows in enumerate(sequences.chunk(parts)):
            share = rows.mean(0, keepdim=True) / parts
            model.weight.grad = share if part == 0 else model.weight.grad + share
            measures.after_part(part)
        measures.after_backward()
    expected = numbers * spread**2 / float(signal.square().sum())
    assert measures.metrics(steps)["gradient_noise"] == pytest.approx(expected, rel=0.05)


def trained(settings):
    training, history = Training(settings, CPU), []
    while not training.finished:
        found = training.advance()
        history.append({name: value for name, value in found.items() if name != "tokens_per_s"})
    return training, history


def test_the_norm_is_that_before_clipping_and_a_training_is_the_same_to_the_last_bit(settings):
    keys = {"accumulate": 2, "clip_norm": 0.1, "epochs": 2}
    plain, without = trained(settings(**keys))
    norms = []
    with pytest.MonkeyPatch.context() as patch:
        clip = nn.utils.clip_grad_norm_
        patch.setattr(nn.utils, "clip_grad_norm_", lambda *given: norms.append(float(clip(*given))))
        measured, found = trained(settings(**keys, measure=BOTH))
    assert [each["gradient_norm"] for each in found] == pytest.approx(
        [sum(norms[:5]) / 5, sum(norms[5:]) / 5], rel=1e-5
    )
    assert [{name: each[name] for name in without[0]} for each in found] == without
    states = [training.state() for training in (plain, measured)]
    assert str(states[0]["optimizer"]) == str(states[1]["optimizer"])
    assert all(torch.equal(states[0]["model"][name], each) for name, each in states[1]["model"].items())


def test_measures_are_one_trial_in_any_order_and_noise_needs_parts():
    keys = {"accumulate": 2, "measure": ["gradient_norm", "gradient_noise", "gradient_norm"]}
    first = load_study(study_text(task={"name": "not"}, model={"recipe": "ff(8)"}, train=keys))
    keys = {"accumulate": 2, "measure": ["gradient_noise", "gradient_norm"]}
    second = load_study(study_text(task={"name": "not"}, model={"recipe": "ff(8)"}, train=keys))
    assert first.trials[0].id == second.trials[0].id
    with pytest.raises(StudyError) as caught:
        load_study(
            study_text(task={"name": "not"}, model={"recipe": "ff(8)"}, train={"measure": ["gradient_noise"]})
        )
    assert "gradient_noise needs the gradients of parts: expected accumulate of at least 2" in str(
        caught.value
    )
