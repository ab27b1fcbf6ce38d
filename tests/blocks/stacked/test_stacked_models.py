"""Models that are computed as one give what each gives alone, with as many symbols as each has."""

import pytest
import torch

from activemem.blocks import Model, build
from activemem.blocks.core.dropout import draw_dropout, given_dropout, noting_dropout
from activemem.blocks.stacked import StackedModels, can_be_stacked, part_of

RECIPES = [
    "2 * (sa(heads=2) >> ff(12))",
    "2 * (sa(heads=2, kv_heads=1, qk_norm=rms, pos=rope, logit_cap=5) >> glu(12))",
    "tied(2 * (conv(k=4) >> ff(12)))",
    "2 * persistent_conv(k=4)",
    "persistent_conv(k=1) >> persistent_conv(k=9)",
    "highway_conv(k=3) + sa(heads=2) >> dense",
    "cgru(k=3) >> activation",
]
CONFIGS = [
    {},
    {"norm_kind": "rms_norm", "norm": "post", "residual": False, "position": "none"},
    {"tied": True, "tied_bias": True, "embedding_dropout": 0.2, "input_dropout": 0.2},
    {"tied": True, "causal": True, "mup": 4, "embedding": "unit"},
    {"output_bias": False, "attention_dropout": 0.2, "feedforward_dropout": 0.2},
]
SYMBOLS = (3, 9, 5)


def models_of(recipe, symbols, **config):
    return [
        build(
            recipe,
            d_model=8,
            vocab=vocab,
            generator=torch.Generator().manual_seed(place),
            **{"dropout": 0.1, **config},
        ).double()
        for place, vocab in enumerate(symbols)
    ]


def draw_inputs(symbols, length):
    generator = torch.Generator().manual_seed(0)
    return torch.stack([torch.randint(vocab, (4, length), generator=generator) for vocab in symbols])


@pytest.mark.parametrize("length", [1, 3, 7, 20])
@pytest.mark.parametrize("recipe", RECIPES)
def test_each_gives_what_it_gives_alone(recipe, length):
    models, inputs = models_of(recipe, SYMBOLS), draw_inputs(SYMBOLS, length)
    found = StackedModels(models).eval()(inputs)
    for model, rows, mine, vocab in zip(models, inputs, found, SYMBOLS, strict=True):
        torch.testing.assert_close(mine[..., :vocab], model.eval()(rows), atol=1e-12, rtol=0.0)
        assert (mine[..., vocab:] == -torch.inf).all()


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("recipe", ["sa(heads=2) >> ff(12)", "conv(k=3) >> ff(12)"])
def test_each_has_the_gradients_and_the_dropout_that_it_has_alone(recipe, config):
    models, inputs = models_of(recipe, SYMBOLS, **config), draw_inputs(SYMBOLS, 6)
    stacked = StackedModels(models)
    with torch.no_grad(), noting_dropout() as calls:
        models[0](inputs[0])
    noises = [torch.Generator().manual_seed(each) for each in (5, 6, 7)]
    factors = draw_dropout(calls, noises, torch.device("cpu"))
    with given_dropout([each.flatten(0, 1) for each in factors]):
        log_likelihoods = stacked(inputs).log_softmax(-1)
    log_likelihoods[..., 0].sum().backward()
    for place, (model, rows) in enumerate(zip(models, inputs, strict=True)):
        with given_dropout([each[place] for each in factors]):
            model(rows).log_softmax(-1)[..., 0].sum().backward()
        for name, weight in model.named_parameters():
            gradient = stacked.weights[name].grad
            assert gradient is not None and gradient.isfinite().all()
            torch.testing.assert_close(part_of(gradient, place, weight), weight.grad, atol=1e-11, rtol=0.0)
            assert (gradient[place, len(weight) :] == 0.0).all()


@pytest.mark.parametrize(
    ("recipe", "config"),
    [
        ("lstm", {}),
        ("sa(heads=2, pos=t5)", {}),
        ("sa(heads=2, span=4)", {}),
        ("conv(k=3) >> mean_pool", {}),
        ("sa(heads=2, pos=rope)", {"position": "randomised_pairs", "max_positions": 50}),
        ("conv(k=3)", {"position": "learned", "max_positions": 50}),
        ("conv(k=3)", {"logit_cap": 5.0}),
    ],
)
def test_others_are_told_apart(recipe, config):
    model = build(recipe, d_model=8, vocab=5, **config)
    assert isinstance(model, Model) and not can_be_stacked(model)


def test_what_the_paper_compares_can_be_stacked():
    assert all(can_be_stacked(model) for recipe in RECIPES for model in models_of(recipe, (3,)))
