"""Groups of weights by name patterns: as torch's groups, with errors before a run."""

import io

import pytest
import torch

from activemem import StudyError, build, load_study, run_study
from activemem.engine.core.resources import ONE_CPU
from activemem.engine.optimisers.build import ParameterGroupError, build_optimizer
from activemem.engine.trial.training import Training
from activemem.storage import Store
from activemem.studies.catalog.optimisers import OwnOptimizerSettings
from activemem.studies.resolve.trial import trial_id
from activemem.studies.schema.settings import ParameterGroupSettings, TrialSettings

from ...study_texts import study_text

RECIPE = "sa(heads=2, head_width=4) + conv(k=3) >> ff(8)"
GROUPS = [
    {"match": "*.norm.*", "weight_decay": 0.0, "lr_scale": 3.0},
    {"match": "embedding.*", "freeze": True},
    {"match": "body.*.bias", "lr_scale": 0.5},
]


def model():
    return build(RECIPE, d_model=8, vocab=5, generator=torch.Generator().manual_seed(0))


def steps(made, rule, share=(1.0, 0.5, 0.25)):
    """Return a model's weights after steps with falling rates and fixed pseudo-random gradients."""
    drawn = torch.Generator().manual_seed(7)
    schedule = torch.optim.lr_scheduler.LambdaLR(rule, lambda done: (*share, 0.0)[done])
    for _ in share:
        for weight in made.parameters():
            gradient = torch.randn(weight.shape, generator=drawn)
            weight.grad = gradient if weight.requires_grad else None
        rule.step()
        schedule.step()
    return {name: weight.detach().clone() for name, weight in made.named_parameters()}


def by_hand(made, rule):
    """Return the weights in four groups, selected by hand."""
    lr, decay = 0.1, 0.01
    norms, biases, rest = [], [], []
    for name, weight in made.named_parameters():
        if name == "embedding.weight":
            continue
        norm = ".norm." in name
        bias = name.startswith("body.") and name.endswith(".bias")
        (norms if norm else biases if bias else rest).append(weight)
    return rule(
        [
            {"params": rest},
            {"params": norms, "lr": lr * 3, "weight_decay": 0.0},
            {"params": biases, "lr": lr / 2},
        ],
        lr=lr,
        weight_decay=decay,
    )


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("adam", torch.optim.Adam),
        ("adamw", torch.optim.AdamW),
        ("adagrad", torch.optim.Adagrad),
        ("sgd", torch.optim.SGD),
        ("adafactor", torch.optim.Adafactor),
    ],
)
def test_groups_move_as_those_of_torch_made_by_hand(name, rule):
    ours, theirs = model(), model()
    settings = OwnOptimizerSettings(name=name, lr=0.1, weight_decay=0.01, eps=1e-8)
    groups = [ParameterGroupSettings(**each) for each in GROUPS]
    found = steps(ours, build_optimizer(settings, ours, groups))
    theirs.embedding.weight.requires_grad_(False)
    extra = {} if name not in ("adagrad",) else {"eps": 1e-8}
    expected = steps(theirs, by_hand(theirs, lambda *args, **keys: rule(*args, **keys, **extra)))
    for path, weight in found.items():
        torch.testing.assert_close(weight, expected[path], rtol=1e-6, atol=1e-6)
    assert torch.equal(found["embedding.weight"], model().embedding.weight)


@pytest.mark.parametrize("name", ["lion", "muon"])
def test_a_rule_of_ours_has_rates_and_decays_of_groups(name):
    settings = OwnOptimizerSettings(name=name, lr=0.1, weight_decay=0.2)
    scaled = OwnOptimizerSettings(name=name, lr=0.05, weight_decay=0.4)
    groups = [ParameterGroupSettings(match="body.*", lr_scale=0.5, weight_decay=0.4)]
    one, other, third = model(), model(), model()
    found = steps(one, build_optimizer(settings, one, groups))
    body = steps(other, build_optimizer(scaled, other))
    rest = steps(third, build_optimizer(settings, third))
    for path, weight in found.items():
        assert torch.equal(weight, (body if path.startswith("body.") else rest)[path]), path


def settings(groups, **train):
    return TrialSettings.model_validate(
        {
            "model": {"recipe": RECIPE, "d_model": 8},
            "task": {"name": "reverse", "vocab": 5},
            "train": {
                "optimizer": {"name": "adamw", "lr": 0.01, "weight_decay": 0.1},
                "groups": groups,
                "batch_size": 8,
                "epochs": 3,
                "steps_per_epoch": 5,
                "clip_norm": 1.0,
                "average": 0.9,
                "accumulate": 2,
                "measure": ["gradient_norm"],
                "curriculum": {"start": 3},
                **train,
            },
        }
    )


@pytest.mark.parametrize("name", ["adamw", "adagrad", "muon"])
def test_a_training_with_groups_resumes_bit_for_bit_and_leaves_what_is_frozen(name, tmp_path):
    trial = settings(GROUPS, optimizer={"name": name, "lr": 0.01, "weight_decay": 0.1})
    whole, half, rest = (Training.begin(trial, torch.device("cpu"), tmp_path) for _ in range(3))
    before = whole.model.embedding.weight.detach().clone()
    history = [whole.advance() for _ in range(3)]
    half.advance()
    saved = io.BytesIO()
    torch.save(half.state(), saved)
    saved.seek(0)
    rest.restore(torch.load(saved, weights_only=True))
    for metrics in history[1:]:
        assert {**rest.advance(), "tokens_per_s": 0} == {**metrics, "tokens_per_s": 0}
    assert torch.equal(whole.model.embedding.weight, before)
    assert history[-1]["loss"] < history[0]["loss"]


def test_a_trial_without_groups_keeps_its_id():
    plain = settings([])
    assert trial_id(plain) == trial_id(plain.model_copy(update={"train": plain.train.model_copy()}))
    assert '"groups"' not in plain.model_dump_json(exclude_defaults=True)
    assert trial_id(settings(GROUPS)) != trial_id(settings(GROUPS[:2])) != trial_id(plain)


def study(*groups):
    train = "".join(f"\n[[train.groups]]\n{each}\n" for each in groups)
    return study_text(factors={"mixer": ["conv(k=3)"]}, task={"name": "reverse"}) + train


@pytest.mark.parametrize(
    "groups",
    [
        ['match = "*.convolutions.*"\nlr_scale = 0.5'],
        ['match = "*"\nlr_scale = 0.5', 'match = "*.bias"\nweight_decay = 0.0'],
        ['match = "*"\nfreeze = true'],
    ],
    ids=str,
)
def test_groups_that_a_model_lacks_are_refused_before_anything_is_trained(groups, tmp_path, golden):
    store = Store(tmp_path)
    with golden.raises(ParameterGroupError):
        run_study(load_study(study(*groups)), store, ONE_CPU, local=True)
    assert store.trials().is_empty()


@pytest.mark.parametrize(
    "group",
    [
        "lr_scale = 0.5",
        'match = "*"\nlr = 0.5',
        'match = "*"\nlr_scale = 0',
        'match = "*"\nfreeze = true\nlr_scale = 2.0',
    ],
)
def test_groups_that_are_wrong_are_reported_with_the_file(group, golden):
    with golden.raises(StudyError):
        load_study(study(group))
