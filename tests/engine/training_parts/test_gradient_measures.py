"""The norm of gradients against its definition; measuring does not change a training."""

import pytest
import torch
from torch import nn

from activemem.engine.trial.training import Training

CPU = torch.device("cpu")


def trained(settings):
    training, history = Training.begin(settings, CPU), []
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
        measured, found = trained(settings(**keys, measure=("gradient_norm",)))
    assert [each["gradient_norm"] for each in found] == pytest.approx(
        [sum(norms[:5]) / 5, sum(norms[5:]) / 5], rel=1e-5
    )
    assert [{name: each[name] for name in without[0]} for each in found] == without
    states = [training.state() for training in (plain, measured)]
    assert str(states[0]["optimizer"]) == str(states[1]["optimizer"])
    assert all(torch.equal(states[0]["model"][name], each) for name, each in states[1]["model"].items())
