"""Whole models: counts, wiring against plain references, sharing, padding, weights and errors."""

import math
import tracemalloc
from functools import partial

import pytest
import torch

from activemem import register_block
from activemem.blocks import BuildError, Model, build
from activemem.blocks.core.block import BLOCKS
from activemem.blocks.layers.feedforward import FeedForward
from activemem.blocks.models.model import InputError
from activemem.blocks.testing.fixtures import count_flops, make_generator, use_plain_operations
from activemem.grammar import Reach, RecipeError, Role, Spec, analyse, parse, register
from activemem.grammar.vocabulary.spec import SPECS

from ..equations import attention as attention_references
from ..equations import common as references

SIZES = {"d_model": 8, "vocab": 7}

RECIPES = [
    "sa",
    "ff(5)",
    "sa + conv(k=4)",
    "conv(k=1) >> persistent_conv(k=1)",
    "4 * (sa(heads=2) + highway_conv(k=5) >> ff(16))",
    "2 * (conv(k=20) >> ff(12)) >> 3 * (sa(heads=1, head_width=3) >> ff(4, act=gelu))",
    "persistent_conv(k=6) >> ff(3) >> persistent_conv(k=6)",
    "3 * (persistent_conv(k=6) + persistent_conv(k=3) + persistent_conv(k=6))",
    "tied(4 * (sa(heads=2) >> ff(9)))",
    "tied(2 * (cgru(k=3) >> tied(2 * ff(5)))) >> ff(5)",
    "tied(2 * persistent_conv(k=4)) >> persistent_conv(k=4)",
    "(conv(k=3) >> ff(4)) + sa(heads=1) >> ff(6)",
    "2 * ((2 * (conv(k=3) + sa(heads=1) >> ff(4)) >> ff(2)) + tied(2 * highway_conv(k=2)))",
]


def made(recipe, *, seed=0, dtype=torch.float64, **settings):
    return (
        build(recipe, **SIZES, **{"dropout": 0.0, **settings}, generator=make_generator(seed))
        .to(dtype)
        .eval()
    )


def tokens(batch, length, seed=1):
    return torch.randint(SIZES["vocab"], (batch, length), generator=make_generator(seed))


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
@pytest.mark.parametrize("text", RECIPES)
def test_the_analysis_counts_the_parameters_exactly(text, causal, norm):
    model = build(text, **SIZES, causal=causal, norm=norm)
    stated = analyse(parse(text), **SIZES, length=9, causal=causal, norm=norm)
    assert sum(parameter.numel() for parameter in model.parameters()) == stated.parameters


@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
@pytest.mark.parametrize("text", RECIPES)
def test_the_analysis_counts_the_flops_to_one_percent(text, causal):
    sizes = {"d_model": 16, "vocab": 11, "causal": causal}
    model = use_plain_operations(build(text, **sizes)).eval()
    counted = count_flops(lambda: model(torch.zeros(32, 40, dtype=torch.int64)))
    stated = analyse(parse(text), **sizes, length=40)
    assert counted == pytest.approx(32 * stated.flops, rel=0.01)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
@pytest.mark.parametrize("text", RECIPES)
def test_a_padded_batch_gives_what_the_sequences_give_separately(text, causal, norm):
    model, lengths = made(text, causal=causal, norm=norm), torch.tensor([9, 1, 4])
    inputs = tokens(3, 9)
    outputs = model(inputs, lengths)
    for row, out, length in zip(inputs, outputs, lengths.tolist(), strict=True):
        torch.testing.assert_close(out[:length], model(row[None, :length])[0], rtol=1e-10, atol=1e-10)


def logits(model, tokens, apply, *, pre, mixes, timed=True):
    """Return a whole model's logits for one sequence; `apply[i]` is sub-layer i, timed if `mixes[i]`."""
    width = model.embedding.embedding_dim
    signal = references.timing(len(tokens), width) * timed
    x = model.embedding.weight[tokens] * math.sqrt(width) + signal
    for layer, part, mixing in zip(model.body.layers, apply, mixes, strict=True):
        x = x + signal * mixing
        x = (
            x + part(layer.part, references.norm(layer.norm, x))
            if pre
            else references.norm(layer.norm, x + part(layer.part, x))
        )
    x = references.norm(model.norm, x) if pre else x
    return x @ model.output.weight.T + model.output.bias


@pytest.mark.parametrize("position", ["timing", "none"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_wiring_equals_the_plain_reference(norm, position):
    model = made("conv(k=4) + sa(heads=2, head_width=3) >> ff(5) >> cgru(k=3)", norm=norm, position=position)
    causal = {"causal": False}

    def both(part, x):
        conv, sa = part.parts
        return references.conv(conv, x, **causal) + attention_references.sa(
            sa, x, **causal, heads=2, head_width=3
        )

    apply = [both, references.ff, partial(references.cgru, **causal)]
    inputs = tokens(1, 6)
    with torch.no_grad():
        expected = logits(
            model, inputs[0], apply, pre=norm == "pre", mixes=[True, False, True], timed=position == "timing"
        )
    torch.testing.assert_close(model(inputs)[0], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("text", "by_hand"),
    [
        ("2 * (sa(heads=2) >> ff(9))", "sa(heads=2) >> ff(9) >> sa(heads=2) >> ff(9)"),
        ("2 * (2 * conv(k=3) >> ff(9))", "2 * conv(k=3) >> ff(9) >> conv(k=3) >> conv(k=3) >> ff(9)"),
        ("2 * (sa(heads=1) + conv(k=3))", "sa(heads=1) + conv(k=3) >> conv(k=3) + sa(heads=1)"),
    ],
)
def test_unrolling_a_repeat_by_hand_changes_nothing(text, by_hand):
    assert made(text)(tokens(2, 7)).equal(made(by_hand)(tokens(2, 7)))


def test_tied_applies_the_same_weights_again():
    tied, free = made("tied(3 * (conv(k=3) >> ff(9)))"), made("3 * (conv(k=3) >> ff(9))")
    weights = tied.state_dict()
    copies = {f"body.layers.{place}.": f"body.layers.{place % 2}." for place in range(6)}
    for name in free.state_dict():
        place = next((prefix for prefix in copies if name.startswith(prefix)), None)
        if place is not None:
            weights[name] = tied.state_dict()[copies[place] + name.removeprefix(place)]
    free.load_state_dict(weights)
    assert tied(tokens(2, 7)).equal(free(tokens(2, 7)))


def test_all_persistent_convolutions_of_one_kernel_share_one_padding():
    model = made("2 * persistent_conv(k=6) >> persistent_conv(k=3)")
    first, second, third = (layer.part.padding for layer in model.body.layers)
    assert first is second
    assert first is not third
    assert (len(first.left), len(first.right)) == (2, 3)
    causal = made("persistent_conv(k=6)", causal=True).body.layers[0].part.padding
    assert len(causal.left) == 5
    assert causal.right is None


@pytest.mark.parametrize("text", RECIPES)
def test_the_state_dict_and_the_text_restore_the_model(text, tmp_path):
    model = made(text, seed=3)
    torch.save({"recipe": repr(model), "weights": model.state_dict()}, tmp_path / "model.pt")
    kept = torch.load(tmp_path / "model.pt", weights_only=True)
    other = made(kept["recipe"], seed=4)
    other.load_state_dict(kept["weights"])
    assert other(tokens(2, 7)).equal(model(tokens(2, 7)))


def test_the_representation_of_a_model_is_its_recipe():
    assert repr(build("4*(sa+conv(k=20)>>ff( 512 ))", **SIZES)) == "4 * (sa + conv(k=20) >> ff(512))"


def test_the_order_of_a_sum_changes_neither_weights_nor_outputs():
    one, other = (
        made("conv(k=3) + sa(heads=1) >> ff(4) + (ff(2) >> ff(3))"),
        made("sa(heads=1) + conv(k=3) >> (ff(2) >> ff(3)) + ff(4)"),
    )
    assert list(one.state_dict()) == list(other.state_dict())
    assert one(tokens(2, 7)).equal(other(tokens(2, 7)))


def test_weights_begin_as_documented():
    torch.manual_seed(5)
    state = torch.get_rng_state()
    recipe = "sa(heads=2, head_width=16) >> highway_conv(k=5) >> persistent_conv(k=9) >> ff(256)"
    model = build(recipe, d_model=64, vocab=500, generator=make_generator(0))
    assert torch.get_rng_state().equal(state)
    sa, highway, persistent, ff = (layer.part for layer in model.body.layers)
    assert model.embedding.weight.std().item() == pytest.approx(64**-0.5, rel=0.02)
    for weight, inputs, outputs in (
        (sa.qkv.weight, 64, 32),
        (sa.output.weight, 32, 64),
        (highway.convolution.weight, 5 * 64, 5 * 64),
        (persistent.padding.left, 4, 64),
        (ff.inner.weight, 64, 256),
        (ff.outer.weight, 256, 64),
        (model.output.weight, 64, 500),
    ):
        bound = math.sqrt(6 / (inputs + outputs))
        assert 0.98 * bound < weight.abs().max().item() <= bound
        assert weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.06)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any()
        elif "norm" in name:
            assert (parameter == 1).all()


def test_without_a_generator_weights_come_from_the_global_one():
    torch.manual_seed(5)
    first = build("ff(4)", **SIZES)
    torch.manual_seed(5)
    same, other = build("ff(4)", **SIZES), build("ff(4)", **SIZES)
    assert isinstance(first, Model)
    assert first.output.weight.equal(same.output.weight)
    assert not first.output.weight.equal(other.output.weight)


@pytest.fixture
def without_module():
    def near(*_):
        return Reach(left=0, right=0)

    name = "only_said"
    register(Spec(name=name, role=Role.CHANNEL, summary="", equation="", source="", reach=near))
    yield name
    SPECS.unregister(name)


def test_models_that_cannot_be_built_are_reported_with_all_reasons(without_module, golden):
    recipe = f"{{mixer}} + conv(k=integer(1, 3)) >> {without_module}"
    with golden.raises(BuildError):
        build(recipe, d_model=0, vocab=0, norm="both", position="learnt", dropout=1.0)
    assert without_module not in BLOCKS


def test_a_model_over_the_limit_is_refused_before_anything_is_allocated(golden):
    tracemalloc.start()
    with pytest.raises(BuildError) as caught:
        build("10000 * conv(k=1024)", d_model=65_536, vocab=10)
    assert tracemalloc.get_traced_memory()[1] < 2**28  # first imports included
    tracemalloc.stop()
    golden(str(caught.value))


@pytest.mark.parametrize("lengths", [[-1, 9], [True, False]])
def test_lengths_are_no_negative_numbers_and_no_mask(lengths):
    with pytest.raises(InputError, match="a whole number from 0 to 9 for each sequence"):
        build("sa", **SIZES)(torch.ones(2, 9, dtype=torch.int64), torch.tensor(lengths))


@pytest.mark.parametrize("lengths", [[9], [[9, 9]], [9.0, 1.0], [9, 10], [9] * 30], ids=str)
def test_lengths_are_one_integer_for_each_sequence_within_it(lengths, golden):
    with golden.raises(InputError):
        build("sa", **SIZES)(torch.ones(2, 9, dtype=torch.int64), torch.tensor(lengths))


@pytest.mark.heavy  # torch's compiler is loaded for seconds
def test_a_model_compiles_as_one_graph_with_lengths():
    model, inputs, lengths = made("sa >> ff(5)", dtype=torch.float32), tokens(3, 9), torch.tensor([9, 1, 4])
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(inputs, lengths), model(inputs, lengths))


@pytest.mark.parametrize(
    "inputs", [torch.ones(9), torch.ones(2, 9, 3), [[1, 2]]], ids=["one row", "too deep", "a list"]
)
def test_inputs_of_another_shape_are_named(inputs, golden):
    with golden.raises(InputError):
        build("sa", **SIZES)(inputs)
    with golden.raises(InputError):
        build("sa", d_model=8, columns=4, targets=1)(inputs)
    with golden.raises(InputError):
        build("seq2seq(lstm, lstm)", **SIZES)(inputs, inputs)


def test_the_limit_of_parameters_is_the_callers(golden):
    parameters = analyse(parse("ff(5)"), **SIZES, length=1).parameters
    build("ff(5)", **SIZES, max_parameters=parameters)
    with golden.raises(BuildError):
        build("ff(5)", **SIZES, max_parameters=parameters - 1)
    with torch.device("meta"):
        assert build("ff(10000)", d_model=65_536, vocab=2, max_parameters=None).output.weight.is_meta


def test_a_wrong_text_raises_the_recipe_error():
    with pytest.raises(RecipeError):
        build("conv(k=0)", **SIZES)


def test_a_second_module_for_a_block_says_who_defines_it(golden):
    with golden.raises(ValueError):
        register_block("conv")(FeedForward)


def test_a_new_block_needs_parameters(golden):
    with golden.raises(ValueError):
        register_block("unheard_of")


@pytest.mark.parametrize("length", [5, 70])
@pytest.mark.parametrize(
    "recipe",
    [
        "sa(heads=2, head_width=4)",
        "sa(heads=2, head_width=4, pos=t5)",
        "diff_attn(heads=2, head_width=2)",
        "latent_attn(heads=2, head_width=3, latent=4)",
        "conv(k=3) >> mean_pool",
        "conv(k=3) >> attention_pool",
        "lstm >> last",
    ],
)
def test_an_empty_sequence_leaves_all_gradients_finite(recipe, length):
    model = build(recipe, **SIZES).train()
    outputs = model(tokens(3, length), torch.tensor([length, 3, 0]))
    outputs.square().mean().backward()
    assert outputs.isfinite().all()
    assert all(each.grad is None or each.grad.isfinite().all() for each in model.parameters())


def test_an_empty_sequence_moves_no_loss_of_the_others():
    model, inputs = made("sa(heads=2, head_width=4)"), tokens(3, 5)
    together = model.nll(inputs, inputs, torch.tensor([5, 3, 0]))
    alone = model.nll(inputs[:2], inputs[:2], torch.tensor([5, 3]))
    torch.testing.assert_close(together[:2], alone)
    assert not together[2].any()


@pytest.mark.parametrize("length", [5, 90, 600])
@pytest.mark.parametrize(
    "text",
    [
        "sa(heads=2) + conv(k=3) >> ff(8)",
        "sa(span=4, heads=2)",
        "all_attn(3, heads=2, span=4)",
        "sa(heads=2, pos=relative, span=700)",
        "ff_attn(2)",
    ],
)
def test_an_empty_batch_passes_forward_and_backward(text, length):
    model = build(text, **SIZES, causal=True).train()
    y = model(torch.zeros(0, length, dtype=torch.int64))
    y.sum().backward()
    assert y.shape[:2] == (0, length)


@pytest.mark.parametrize("text", ["lstm", "conv(k=3)", "mamba", "sa(heads=2)", "lstm >> last"])
def test_sequences_without_positions_are_refused_whatever_reads_them(text):
    with pytest.raises(BuildError, match=r"at least 1 position, got \(2, 0\)"):
        build(text, **SIZES, causal=True)(torch.zeros(2, 0, dtype=torch.int64))


def test_a_dropout_that_would_keep_nothing_cannot_be(golden):
    assert (
        build("ff(4)", **SIZES, dropout=0.9999).train()(torch.zeros(1, 3, dtype=torch.int64)).isfinite().all()
    )
    with golden.raises(BuildError):
        build("ff(4)", **SIZES, dropout=0.9999999)
