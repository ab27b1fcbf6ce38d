"""Optimisers: torch's unchanged, ours as in their papers, and a plug-in's."""

import pickle
from copy import deepcopy

import pytest
import torch
from pydantic import Field
from torch import nn

from activemem import PluginError, PluginOptimizer, build, register_optimizer
from activemem.engine.optimisers.build import OptimizerError, build_optimizer, muon_maps, orthogonalise
from activemem.engine.trial.training import Training
from activemem.studies.catalog.optimisers import OPTIMIZERS, OwnOptimizerSettings
from activemem.studies.schema.settings import TrainSettings, TrialSettings

RECIPE = "sa(heads=2, head_width=4) + conv(k=3) >> ff(8)"


def model():
    return build(RECIPE, d_model=8, vocab=5, generator=torch.Generator().manual_seed(0))


def steps(made, rule, count=3):
    """Return a model's weights after some steps with fixed pseudo-random gradients."""
    drawn = torch.Generator().manual_seed(7)
    for _ in range(count):
        for weight in made.parameters():
            weight.grad = torch.randn(weight.shape, generator=drawn)
        rule.step()
    return [weight.detach().clone() for weight in made.parameters()]


def assert_same(settings, expected, tolerance=1e-6):
    """Assert that our optimiser updates a model like another one."""
    ours, theirs = model(), model()
    found = steps(ours, build_optimizer(OwnOptimizerSettings(**settings), ours))
    for one, other in zip(found, steps(theirs, expected(theirs)), strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_sgd_has_the_momentum_of_torch():
    assert_same(
        {"name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.01},
        lambda made: torch.optim.SGD(made.parameters(), 0.1, momentum=0.9, weight_decay=0.01),
    )


@pytest.mark.parametrize(("name", "rule"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)])
def test_adam_is_that_of_torch_to_the_last_bit(name, rule):
    ours, theirs = model(), model()
    settings = OwnOptimizerSettings(name=name, lr=0.1, betas=(0.8, 0.95), eps=1e-7, weight_decay=0.01)
    own = build_optimizer(settings, ours)
    other = rule(theirs.parameters(), 0.1, (0.8, 0.95), 1e-7, 0.01, fused=True)
    for found, expected in zip(steps(ours, own, 5), steps(theirs, other, 5), strict=True):
        assert torch.equal(found, expected)
    own.load_state_dict(deepcopy(other.state_dict()))
    for found, expected in zip(steps(ours, own), steps(theirs, other), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_the_faster_step_of_adam_is_that_of_torch_to_the_last_bit(name):
    """Some weights get no gradient in some steps, and the weight decay differs between groups."""
    found = []
    for step in ("take_step", "step"):
        made = model()
        settings = OwnOptimizerSettings(name=name, lr=0.1, weight_decay=0.1, decay_norms=False)
        rule, drawn = build_optimizer(settings, made), torch.Generator().manual_seed(7)
        for number in range(5):
            for place, weight in enumerate(made.parameters()):
                gradient = torch.randn(weight.shape, generator=drawn)
                weight.grad = gradient if (number + place) % 4 else None
            getattr(rule, step)()
        found.append([*made.parameters(), *(each["step"] for each in rule.state.values())])
    assert all(map(torch.equal, *found))


def test_momentum_begins_with_the_first_gradient_of_each_weight():
    """Some weights get no gradient in the first steps, for example with short sequences."""
    found = []
    for make in (
        lambda made: build_optimizer(OwnOptimizerSettings(name="sgd", lr=0.1, momentum=0.9), made),
        lambda made: torch.optim.SGD(made.parameters(), 0.1, momentum=0.9, foreach=False),
    ):
        made = model()
        rule, drawn = make(made), torch.Generator().manual_seed(7)
        for step in range(5):
            for place, weight in enumerate(made.parameters()):
                gradient = torch.randn(weight.shape, generator=drawn)
                weight.grad = gradient if step >= place % 4 else None
            rule.step()
        found.append(list(made.parameters()))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


def test_adafactor_is_that_of_torch():
    assert_same(
        {"name": "adafactor", "lr": 0.1, "weight_decay": 0.01},
        lambda made: torch.optim.Adafactor(made.parameters(), 0.1, weight_decay=0.01),
    )


@pytest.mark.parametrize("name", ["adamw", "lion", "muon"])
def test_norms_and_biases_decay_unless_they_are_not_to(name):
    kept = {}
    for decay in (True, False):
        made = model()
        settings = {"name": name, "lr": 0.1, "weight_decay": 0.5, "decay_norms": decay}
        rule = build_optimizer(OwnOptimizerSettings(**settings), made)
        before = {path: weight.detach().clone() for path, weight in made.named_parameters()}
        for weight in made.parameters():
            weight.grad = torch.zeros_like(weight)
        rule.step()
        for path, weight in made.named_parameters():
            kept[decay, path] = torch.equal(weight, before[path]) or not before[path].any()
            shrunk = before[path] * (1 - 0.1 * 0.5)
            if decay or weight.dim() > 1:
                torch.testing.assert_close(weight.detach(), shrunk)
    assert all(
        kept[False, path] == (weight.dim() <= 1)
        for path, weight in model().named_parameters()
        if weight.any()
    )


@pytest.mark.parametrize("name", ["lion", "muon"])
def test_optimiser_state_is_created_only_before_the_first_step_of_a_weight(name, monkeypatch):
    made = model()
    rule = build_optimizer(OwnOptimizerSettings(name=name, lr=0.1), made)
    for weight in made.parameters():
        weight.grad = torch.ones_like(weight)
    rule.step()
    kept, made_later = rule.state_dict()["state"], []
    monkeypatch.setattr(torch, "zeros_like", made_later.append)
    rule.step()
    assert not made_later
    assert rule.state_dict()["state"].keys() == kept.keys()


def test_lion_steps_as_chen_et_al_wrote_it():
    made = nn.ParameterList([torch.tensor([1.0, -2.0])])
    rule = build_optimizer(
        OwnOptimizerSettings(name="lion", lr=0.1, betas=(0.9, 0.99), weight_decay=0.2), made
    )
    momentum, expected = torch.zeros(2), torch.tensor([1.0, -2.0])
    for gradient in ([2.0, -1.0], [-0.01, 30.0], [0.5, 0.5]):
        made[0].grad = torch.tensor(gradient)
        rule.step()
        step = torch.sign(0.9 * momentum + 0.1 * torch.tensor(gradient))
        momentum = 0.99 * momentum + 0.01 * torch.tensor(gradient)
        expected = expected - 0.1 * (step + 0.2 * expected)
    torch.testing.assert_close(made[0].detach(), expected)


def test_muon_makes_steps_orthogonal():
    for shape in ((8, 8), (4, 20), (30, 3)):
        made = orthogonalise(torch.randn(shape, generator=torch.Generator().manual_seed(1)))
        values = torch.linalg.svdvals(made)
        assert ((values > 0.5) & (values < 1.5)).all()


def test_muon_moves_maps_as_torch_does_one_by_one_and_all_else_as_adamw():
    ours, theirs = model(), model()
    settings = {"name": "muon", "lr": 0.02, "weight_decay": 0.1}
    found = steps(ours, build_optimizer(OwnOptimizerSettings(**settings), ours))
    maps = muon_maps(theirs)
    assert max(len(each.split_maps(weight)) for weight, each in maps.items()) == 3  # queries, keys, values
    parts = {
        weight: [nn.Parameter(part.detach().flatten(1).clone()) for part in each.split_maps(weight)]
        for weight, each in maps.items()
    }
    every = [part for chunks in parts.values() for part in chunks]
    rest = [weight for weight in theirs.parameters() if weight not in maps]
    orthogonal = torch.optim.Muon(every, 0.02, 0.1, 0.95, adjust_lr_fn="match_rms_adamw")
    others = torch.optim.AdamW(rest, 0.02, weight_decay=0.1)
    drawn = torch.Generator().manual_seed(7)
    for _ in range(3):
        for weight in theirs.parameters():
            weight.grad = torch.randn(weight.shape, generator=drawn)
            if weight in maps:
                for part, gradient in zip(parts[weight], maps[weight].split_maps(weight.grad), strict=True):
                    part.grad = gradient.flatten(1)
        orthogonal.step()
        others.step()
    for weight, moved in zip(theirs.parameters(), found, strict=True):
        if weight in maps:  # torch multiplies in 16 bits
            expected = torch.cat(
                [
                    part.detach().view_as(chunk)
                    for part, chunk in zip(parts[weight], maps[weight].split_maps(weight), strict=True)
                ]
            )
            torch.testing.assert_close(moved, expected, rtol=0.02, atol=0.002)
        else:
            torch.testing.assert_close(moved, weight.detach())


def settings(optimizer):
    return TrialSettings.model_validate(
        {
            "model": {"recipe": RECIPE, "d_model": 8},
            "task": {"name": "reverse", "vocab": 5},
            "train": {
                "optimizer": optimizer,
                "batch_size": 16,
                "epochs": 4,
                "steps_per_epoch": 40,
                "curriculum": {"start": 3},
            },
        }
    )


@pytest.mark.parametrize(
    "optimizer",
    [
        {"name": "adamw", "lr": 0.01, "weight_decay": 0.1, "decay_norms": False},
        {"name": "sgd", "lr": 0.1, "momentum": 0.9},
        pytest.param({"name": "lion", "lr": 0.003, "betas": [0.9, 0.99]}, marks=pytest.mark.heavy),
        {"name": "adafactor", "lr": 0.02},
        {"name": "muon", "lr": 0.01},
    ],
    ids=lambda given: given["name"],
)
def test_each_learns_and_resumes_bit_for_bit_where_it_was_interrupted(optimizer, tmp_path):
    whole, half, rest = (Training.begin(settings(optimizer), torch.device("cpu"), tmp_path) for _ in range(3))
    history = [whole.advance() for _ in range(2)]
    half.advance()
    rest.restore(pickle.loads(pickle.dumps(half.state())))
    assert {**rest.advance(), "tokens_per_s": 0} == {**history[1], "tokens_per_s": 0}
    assert history[-1]["loss"] < history[0]["loss"]


def test_a_momentum_is_for_rules_that_have_one():
    with pytest.raises(ValueError, match="adam has no momentum"):
        OwnOptimizerSettings(name="adam", lr=0.1, momentum=0.9)


class Fails(torch.optim.Optimizer):
    def step(self, closure=None):
        raise LookupError("no state")


class Signs(PluginOptimizer):
    share: float = Field(default=1.0, ge=0, le=1)
    """the fraction of each step to apply"""
    flaw: str = ""
    """the kind of flaw"""

    def build(self, model):
        weights = list(model.parameters())
        match self.flaw:
            case "left":
                weights = weights[1:]
            case "type":
                return weights
            case "closure":
                return torch.optim.LBFGS(weights, self.lr)
            case "step":
                return Fails(weights, {"lr": self.lr})
            case _:
                pass
        return torch.optim.SGD(weights, self.lr * self.share)


@pytest.fixture
def signs():
    """Register an optimiser during a test."""
    register_optimizer("signs", source="here")(Signs)
    yield
    OPTIMIZERS.unregister("signs")


def test_a_plug_ins_optimiser_has_keys_of_its_own(signs):
    train = {"batch_size": 1, "epochs": 1, "steps_per_epoch": 1}
    read = TrainSettings.model_validate({**train, "optimizer": {"name": "signs", "lr": 1.0, "share": 0.5}})
    made = build_optimizer(read.optimizer, model())
    assert made.param_groups[0]["lr"] == 0.5
    assert read.model_dump()["optimizer"] == {"name": "signs", "lr": 1.0, "share": 0.5, "flaw": ""}
    with pytest.raises(ValueError, match="unknown key 'shares'"):
        TrainSettings.model_validate({**train, "optimizer": {"name": "signs", "lr": 1.0, "shares": 0.5}})


def test_an_optimiser_that_leaves_weights_out_is_refused(signs, golden):
    with golden.raises(OptimizerError):
        build_optimizer(Signs(name="signs", lr=1.0, flaw="left"), model())
    with golden.raises(OptimizerError):
        build_optimizer(Signs(name="signs", lr=1.0, flaw="type"), model())


@pytest.mark.parametrize(
    ("flaw", "fault"),
    [
        (
            "closure",
            r"test_build.py: optimizer 'signs': TypeError: step: .*'closure'; closures are not supported",
        ),
        ("step", r"test_build.py:\d+: optimizer 'signs': LookupError: no state"),
    ],
)
def test_an_optimiser_whose_step_fails_is_named(signs, flaw, fault, tmp_path):
    given = {"name": "signs", "lr": 1.0, "flaw": flaw}
    with pytest.raises(PluginError, match=f"^{fault}$"):
        Training.begin(settings(given), torch.device("cpu"), tmp_path).take_steps()
