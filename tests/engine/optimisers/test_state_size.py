"""The optimiser memory in a plan equals the allocated memory to the byte."""

import pytest
import torch

from activemem.engine.core import build_model
from activemem.engine.optimisers import build_optimizer, weight_state
from activemem.studies.planning import step_memory
from activemem.studies.schema import TrialSettings

GROUPS = [
    {"match": "embedding.*", "freeze": True},
    {"match": "*.qkv.*", "freeze": True},
    {"match": "*.bias", "lr_scale": 2.0},
]


def settings(optimizer, groups=(), recipe="sa(heads=2, head_width=4) + conv(k=3) >> lstm >> ff(12)", **task):
    return TrialSettings.model_validate(
        {
            "model": {"recipe": recipe, "d_model": 8},
            "task": {"name": "reverse", "vocab": 5, **task},
            "train": {
                "optimizer": {"lr": 0.01, **optimizer},
                "groups": groups,
                "batch_size": 4,
                "epochs": 1,
                "steps_per_epoch": 1,
                **({} if task else {"curriculum": {"start": 3}}),
            },
        }
    )


def allocated(trial):
    """Return the bytes of state tensors after a step, without step counters, and of the gradients."""
    model = build_model(trial, torch.Generator().manual_seed(0))
    optimizer = build_optimizer(trial.train.optimizer, model, trial.train.groups)
    for weight in model.parameters():
        if weight.requires_grad:
            weight.grad = torch.ones_like(weight)
    optimizer.step()
    kept = [
        (name, each)
        for state in optimizer.state.values()
        for name, each in state.items()
        if isinstance(each, torch.Tensor)
    ]
    counters = [each.nbytes for name, each in kept if name == "step"]
    assert set(counters) <= {4}
    gradients = sum(weight.grad.nbytes for weight in model.parameters() if weight.grad is not None)
    return sum(each.nbytes for _, each in kept) - sum(counters), gradients


RULES = [
    {"name": "adam"},
    {"name": "adamw", "decay_norms": False},
    {"name": "adagrad"},
    {"name": "sgd"},
    {"name": "sgd", "momentum": 0.9},
    {"name": "lion"},
    {"name": "adafactor"},
    {"name": "muon"},
]


@pytest.mark.parametrize("groups", [(), GROUPS], ids=["all", "groups"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: "-".join(map(str, rule.values())))
def test_a_plan_has_the_bytes_that_are_allocated(rule, groups):
    trial = settings(rule, groups)
    state, gradients = allocated(trial)
    needs_shapes = groups or rule["name"] in ("muon", "adafactor")
    assert trial.train.optimizer.state_depends_on_shapes == (rule["name"] in ("muon", "adafactor"))
    counted = weight_state(trial)
    held = step_memory(trial, state=counted if needs_shapes else None)
    assert (held.optimizer, held.gradients) == (state, gradients)
    assert counted.bytes == state


def test_without_shapes_no_less_is_counted_than_is_allocated():
    for rule in RULES:
        trial = settings(rule)
        assert step_memory(trial).optimizer >= allocated(trial)[0]
