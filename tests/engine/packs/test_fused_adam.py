"""Steps of Adam by its kernel are those of the optimiser, whichever weights have gradients."""

import copy

import pytest
import torch

from activemem.engine.packs.fused_adam import FusedAdam
from activemem.engine.packs.stacked_optimiser import StackedOptimisers
from activemem.engine.trial.training import Training

RULES = {
    "adam": lambda groups: torch.optim.Adam(groups, lr=1e-2, weight_decay=0.1, fused=True),
    "adamw": lambda groups: torch.optim.AdamW(groups, lr=1e-2, betas=(0.5, 0.9), eps=1e-6, fused=True),
}


def made(rule):
    """An optimiser of three weights in two groups that has taken a step."""
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(2, 3, size, generator=generator) for size in (1, 4, 5)]
    optimizer = rule([{"params": weights[:2]}, {"params": weights[2:], "lr": 0.1, "weight_decay": 0.0}])
    give(optimizer, 0)
    optimizer.step()
    return optimizer


def weights_of(optimizer):
    return [weight for group in optimizer.param_groups for weight in group["params"]]


def give(optimizer, seed):
    """Each weight its gradient; by weight."""
    generator = torch.Generator().manual_seed(seed)
    for weight in weights_of(optimizer):
        weight.grad = torch.randn(weight.shape, generator=generator)
    return {weight: weight.grad for weight in weights_of(optimizer)}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_its_steps_are_those_of_the_optimiser_to_the_bit(rule):
    expected, optimizer = made(rule), made(rule)
    kernel = FusedAdam.of(optimizer)
    for step in range(1, 5):
        for one in (expected, optimizer):
            one.param_groups[0]["lr"] = 0.01 * step  # a rate that changes
        give(expected, step)
        expected.step()
        kernel.step(give(optimizer, step))
    assert all(one.equal(other) for one, other in zip(*map(weights_of, (optimizer, expected)), strict=True))
    kernel.end()
    give(expected, 9)
    give(optimizer, 9)
    expected.step()
    optimizer.step()
    for one, other in zip(
        *(each.state_dict()["state"].values() for each in (optimizer, expected)), strict=True
    ):
        assert all(one[key].equal(other[key]) for key in other)


def test_other_rules_and_weights_with_other_counts_of_steps_have_none():
    optimizer = made(RULES["adam"])
    assert FusedAdam.of(optimizer) is not None
    weights = weights_of(optimizer)
    assert FusedAdam.of(torch.optim.SGD(weights, lr=0.1)) is None
    assert FusedAdam.of(torch.optim.Adam(weights, lr=0.1, fused=True)) is None  # no step was taken
    assert (
        FusedAdam.of(made(lambda groups: torch.optim.Adam(groups, lr=0.1, amsgrad=True, fused=True))) is None
    )
    assert FusedAdam.of(made(lambda groups: torch.optim.Adam(groups, lr=0.1))) is None
    kept = optimizer.state[weights[1]]
    kept["step"] = kept["step"] + 1
    assert FusedAdam.of(optimizer) is None


@pytest.mark.parametrize("missing", [0, 2, 4])
def test_a_weight_may_have_no_gradient_in_some_step(settings, missing):
    trainings = [Training(settings("conv(k=3)", seed=seed), torch.device("cpu")) for seed in (0, 1)]
    alone = copy.deepcopy([training.optimizer for training in trainings])
    own = [dict(training.model.named_parameters()) for training in trainings]
    stacked = {name: torch.stack([each[name].detach() for each in own]) for name in own[0]}
    for place, each in enumerate(own):
        for name, weight in each.items():
            weight.data = stacked[name][place]
    together = StackedOptimisers(trainings, own, stacked)
    generator, names = torch.Generator().manual_seed(0), list(stacked)
    for step in range(6):
        for name, weight in stacked.items():
            weight.grad = torch.randn(weight.shape, generator=generator)
            if step == missing and name == names[1]:
                weight.grad = None
        for place, optimizer in enumerate(alone):
            for name, weight in zip(names, weights_of(optimizer), strict=True):
                weight.grad = None if stacked[name].grad is None else stacked[name].grad[place].clone()
            optimizer.step()
        together.step()
    together.unstack()
    for optimizer, training in zip(alone, trainings, strict=True):
        for one, other in zip(weights_of(optimizer), weights_of(training.optimizer), strict=True):
            torch.testing.assert_close(other, one, atol=1e-6, rtol=0.0)
            for key, value in optimizer.state[one].items():
                torch.testing.assert_close(training.optimizer.state[other][key], value, atol=1e-6, rtol=1e-6)
