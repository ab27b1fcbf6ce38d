"""Optimisers and schedules conform, and checks find those that break a rule."""

import pytest
import torch

from activemem import PluginOptimizer, PluginSchedule, register_optimizer, register_schedule
from activemem.engine.trial.conformance import OPTIMIZER_CHECKS, SCHEDULE_CHECKS, trial
from activemem.studies.catalog.optimisers import OPTIMIZERS, SCHEDULES

SCHEDULE_KEYS = {
    "inverse_sqrt": {"warmup": 2},
    "milestones": {"milestones": [3]},
    "recent": {"every": 1, "patience": 1},
    "warmup_stable_decay": {"cooldown": 2, "floor": 0.1},
}


@pytest.mark.parametrize("check", OPTIMIZER_CHECKS)
@pytest.mark.parametrize("name", OPTIMIZERS.own_names())
def test_each_optimiser_conforms(check, name):
    check(trial(optimizer={"name": name, "lr": 0.01, "weight_decay": 0.1}))


@pytest.mark.parametrize("check", SCHEDULE_CHECKS)
@pytest.mark.parametrize("name", SCHEDULES.own_names())
def test_each_schedule_conforms(check, name):
    check(trial(schedule={"name": name, **SCHEDULE_KEYS.get(name, {})}))


class Flawed(torch.optim.Optimizer):
    """Gradient descent with one flaw."""

    def __init__(self, weights, lr, flaw):
        super().__init__(weights, {"lr": lr})
        self.flaw, self.steps = flaw, 0

    @torch.no_grad()
    def step(self, closure=None):
        self.steps += 1
        for group in self.param_groups:
            for weight in group["params"]:
                size = group["lr"] / self.steps if self.flaw == "hidden" else group["lr"]
                weight.mul_(0.9 if self.flaw == "decay" else 1.0).sub_(size * weight.grad)


class FlawedSettings(PluginOptimizer):
    flaw: str = ""
    """the kind of flaw"""

    def build(self, model):
        return Flawed(model.parameters(), 0.1 if self.flaw == "lr" else self.lr, self.flaw)


@pytest.fixture
def register():
    """Return a function that registers an optimiser or schedule of this file until the test ends."""
    registered = []

    def add(registry, name, decorator, settings):
        decorator(name, source="a test")(settings)
        registered.append((registry, name))

    yield add
    for registry, name in registered:
        registry.unregister(name)


@pytest.mark.parametrize(
    ("flaw", "found"),
    [
        ("", None),
        ("hidden", "a training resumed after step 2 differed"),
        ("lr", "flawed: expected other weights with half the lr"),
        ("decay", "flawed: expected no step at rate 0, but .* has moved"),
    ],
)
def test_a_flaw_of_an_optimiser_is_found_by_one_check(flaw, found, register):
    register(OPTIMIZERS, "flawed", register_optimizer, FlawedSettings)
    settings = trial(optimizer={"name": "flawed", "lr": 0.1, "flaw": flaw})
    faults = [fault for check in OPTIMIZER_CHECKS if (fault := fault_of(check, settings)) is not None]
    assert len(faults) == (found is not None)
    if found:
        with pytest.raises(AssertionError, match=found):
            raise faults[0]


class Below(PluginSchedule):
    def share(self, step, total_steps):
        return 1.0 - step / 500


def test_a_share_below_0_late_in_a_long_training_is_found(register):
    register(SCHEDULES, "below", register_schedule, Below)
    (fault,) = filter(None, (fault_of(check, trial(schedule={"name": "below"})) for check in SCHEDULE_CHECKS))
    assert str(fault).startswith("step 501 of 1000: test_conformance.py: schedule 'below': ")


def fault_of(check, settings):
    try:
        check(settings)
    except AssertionError as error:
        return error
    return None
