"""Initial weights of a model: the standard deviation of each rule, and its dependence on depth."""

import math

import pytest
import torch

from activemem.blocks import Block, BuildError, build
from activemem.blocks.core.block import BLOCKS
from activemem.blocks.testing.fixtures import make_generator

from ...registry_entries import replace_entry

WIDTH = 16


def make_model(recipe, **settings):
    return build(recipe, d_model=WIDTH, dropout=0.0, **settings, generator=make_generator(0)).double()


@pytest.mark.parametrize(
    ("embedding", "drawn", "used"),
    [
        ("scaled", WIDTH**-0.5, 1.0),
        ("unit", 1.0, 1.0),
        ("unit_scaled", 1.0, WIDTH**0.5),
        ("uniform", 0.05 / 3**0.5, 0.05 / 3**0.5),
        ("unit_uniform", 1.7 / 3**0.5, 1.7 / 3**0.5),
    ],
)
def test_embeddings_begin_and_are_used_as_their_rule_says(embedding, drawn, used):
    settings = {"vocab": 5000, "position": "none", "embedding": embedding}
    tokens = torch.arange(5000)[None]
    model = make_model("ff(8)", **settings)
    assert model.embedding.weight.std().item() == pytest.approx(drawn, rel=0.02)
    assert model._embed(tokens, 0)[0].std().item() == pytest.approx(used, rel=0.02)
    pair = make_model("seq2seq(lstm, lstm)", **settings)
    for side in (pair.source, pair.target):
        assert side.weight.std().item() == pytest.approx(drawn, rel=0.02)
    assert pair._embed_source(tokens).std().item() == pytest.approx(used, rel=0.02)
    if embedding == "uniform":
        assert model.embedding.weight.abs().max() <= 0.05


@pytest.mark.parametrize(
    ("settings", "used"),
    [
        ({"embedding": "scaled"}, [1.0, 2 / 3**0.5, 4 / 3**0.5]),
        ({"embedding": "unit_scaled", "project_first_cluster": True}, [(64 / 3) ** 0.5] * 3),
    ],
    ids=["scaled", "unit and all projected"],
)
def test_clusters_begin_as_their_tables_and_uniform_maps_make_them(settings, used):
    settings = {"d_model": 64, "vocab": 6000, "cutoffs": (2000, 4000), "init": "uniform", **settings}
    model = build("ff(8)", **settings, position="none", generator=make_generator(0))
    x = model._embed(torch.arange(6000)[None], 0)[0][0]
    assert [each.std().item() for each in x.split(2000)] == pytest.approx(used, rel=0.05)


@pytest.mark.parametrize(
    ("init", "spread"),
    [
        ("glorot", lambda inputs, outputs: math.sqrt(2 / (inputs + outputs))),
        ("he", lambda inputs, _: math.sqrt(2 / inputs)),
        ("lecun", lambda inputs, _: math.sqrt(1 / inputs)),
        ("uniform", lambda inputs, _: math.sqrt(1 / (3 * inputs))),
    ],
)
def test_every_map_begins_by_the_rule_of_the_model(init, spread):
    recipe = "ff(300) >> sa(heads=4, head_width=50)"
    model = build(recipe, d_model=200, columns=30, vocab=400, init=init, generator=make_generator(0))
    ff, sa = (layer.part for layer in model.body.layers)
    for weight, inputs, outputs in (
        (model.embedding.weight, 30, 200),
        (ff.inner.weight, 200, 300),
        (ff.outer.weight, 300, 200),
        (sa.qkv.weight, 200, 200),
        (sa.output.weight, 200, 200),
        (model.output.weight, 200, 400),
    ):
        assert weight.std().item() == pytest.approx(spread(inputs, outputs), rel=0.03)
        assert weight.mean().item() == pytest.approx(0.0, abs=0.03 * weight.std().item())
    assert not any(bias.any() for name, bias in model.named_parameters() if name.endswith("bias"))


@pytest.mark.parametrize("sa", ["sa(heads=4, head_width=50)", "sa(heads=4, head_width=50, span=9)"])
def test_maps_of_feedforward_and_of_attention_begin_with_a_spread_of_their_own(sa):
    given = {"feedforward_std": 1.5, "attention_std": 0.1, "attention_output_std": 0.7}
    settings = {"vocab": 400, "bias_init": "glorot", **given}
    model = build(
        f"ff(300) >> {sa} >> highway_conv(k=2)", d_model=200, **settings, generator=make_generator(0)
    )
    ff, attention, conv = (layer.part for layer in model.body.layers)
    for weight, spread in (
        (ff.inner.weight, 1.5),
        (ff.outer.weight, 1.5),
        (attention.qkv.weight, 0.1),
        (attention.output.weight, 0.7),
        (model.output.weight, math.sqrt(2 / 600)),
        (conv.convolution.bias, math.sqrt(1 / 200)),
        (model.output.bias, math.sqrt(1 / 400)),
    ):
        assert weight.std().item() == pytest.approx(spread, rel=0.1)
    assert not ff.inner.bias.any()
    assert not ff.outer.bias.any()


def test_maps_and_biases_begin_within_the_bounds_of_torch():
    ends = {
        "vocab": 900,
        "cutoffs": (400, 800),
        "tied": True,
        "tied_bias": True,
        "project_first_cluster": True,
    }
    settings = {"d_model": 256, "init": "uniform", "bias_init": "uniform"}
    model = build("ff(300) >> conv(k=3)", **settings, **ends, generator=make_generator(0))
    ff, conv = (layer.part for layer in model.body.layers)
    torch.manual_seed(0)
    linear, convolution = torch.nn.Linear, torch.nn.Conv1d
    for ours, theirs in (
        (ff.inner, linear(256, 300)),
        (ff.outer, linear(300, 256)),
        (conv.convolution, convolution(256, 256, 3)),
        (model.output.words, linear(256, 400)),
        (model.output.tables[0], linear(64, 400)),
        (model.output.tables[1], linear(16, 100)),
    ):
        assert len(ours.bias) == len(theirs.bias)
        bound = theirs.weight[0].numel() ** -0.5
        for biases in (ours.bias, theirs.bias):
            assert bound * 0.95 < biases.abs().max() <= bound
            assert biases.std().item() == pytest.approx(bound / 3**0.5, rel=0.1)
        if isinstance(theirs, torch.nn.Linear) and hasattr(ours, "in_features"):
            for weight in (ours.weight, theirs.weight):
                assert bound * 0.99 < weight.abs().max() <= bound
    plain = build("ff(4)", vocab=9, **settings, generator=make_generator(0))
    for bias in (model.output.choice.bias, plain.output.bias):
        assert 0 < bias.abs().max() <= 1 / 16
    numbers = build("ff(4)", columns=25, targets=300, **settings, generator=make_generator(0))
    assert 0.19 < numbers.embedding.bias.abs().max() <= 0.2
    assert 0.06 < numbers.output.bias.abs().max() <= 1 / 16


@pytest.mark.parametrize("bias_init", ["zero", "uniform"])
def test_a_model_whose_last_maps_are_zero_begins_as_the_identity(bias_init):
    text, settings = "4 * (sa(heads=1) >> ff(8))", {"vocab": 40, "bias_init": bias_init}
    plain, zero = (make_model(text, residual_init=each, **settings) for each in ("plain", "zero"))
    x = torch.randn(2, 5, WIDTH, dtype=torch.float64)
    torch.testing.assert_close(zero.body(x), x, rtol=0.0, atol=0.0)
    for (name, one), other in zip(plain.named_parameters(), zero.parameters(), strict=True):
        last = name.startswith("body") and (".output." in name or ".outer." in name)
        torch.testing.assert_close(other, torch.zeros_like(one) if last else one, rtol=0.0, atol=0.0)


def test_without_residuals_last_maps_cannot_be_zero(golden):
    with golden.raises(BuildError):
        make_model("ff(8)", vocab=40, residual=False, residual_init="zero")


def test_last_maps_begin_smaller_in_deeper_models():
    for text, layers in (
        ("4 * (sa(heads=1) >> ff(8))", 8),
        ("tied(3 * (min_gru(channels=4) + conv(k=2)))", 3),
    ):
        plain, deep = (make_model(text, vocab=40, residual_init=each) for each in ("plain", "depth"))
        for (name, one), other in zip(plain.named_parameters(), deep.parameters(), strict=True):
            last = name.startswith("body") and name.endswith((".output.weight", ".outer.weight"))
            torch.testing.assert_close(other * layers**0.5 if last else other, one, rtol=1e-6, atol=0.0)


def test_the_generator_also_draws_the_weights_of_modules_of_torch_and_leaves_the_global_one_alone():
    class Plain(Block):
        def __init__(self):
            super().__init__()
            self.map = torch.nn.Linear(WIDTH, WIDTH)

        @classmethod
        def build(cls, settings, context):
            return cls()

        def forward(self, x, mask=None):
            return self.map(x)

    replace_entry(BLOCKS, "ff", Plain)
    before = torch.get_rng_state()
    models = [
        build("sa(heads=2) >> ff(8)", d_model=WIDTH, vocab=5, generator=make_generator(seed))
        for seed in (0, 0, 1)
    ]
    assert torch.get_rng_state().equal(before)
    first, again, other = (
        {name: each for name, each in model.state_dict().items() if ".map." in name} for model in models
    )
    assert first.keys() and all(
        first[name].equal(again[name]) and not first[name].equal(other[name]) for name in first
    )
    torch.manual_seed(0)
    drawn = [build("sa(heads=2) >> ff(8)", d_model=WIDTH, vocab=5) for _ in range(2)]
    assert not drawn[0].output.weight.equal(drawn[1].output.weight)
