"""Model settings around the body: each against a plain reference, with exact costs."""

import math
from itertools import product

import pytest
import torch
from torch.nn import functional

from activemem.blocks import BuildError, TransductionModel, build
from activemem.blocks.core.block import StreamState
from activemem.blocks.models.model import PAD
from activemem.blocks.testing.fixtures import count_flops, make_generator, saved_bytes
from activemem.grammar import analyse

from ...quick_cases import one_in
from ..equations import common as references

WIDTH, LENGTH, VOCAB = 16, 11, 40
CUTS = (10, 20)
FRAMES = {
    "symbols": {"vocab": VOCAB},
    "unit and dropped": {"vocab": VOCAB, "embedding": "unit", "embedding_dropout": 0.2},
    "tied": {"vocab": VOCAB, "tied": True, "init": "he"},
    "columns to symbols": {"columns": 3, "vocab": VOCAB},
    "symbols to targets": {"vocab": VOCAB, "targets": 1},
    "columns to targets": {"columns": 2, "targets": 3, "embedding_dropout": 0.1, "init": "uniform"},
    "symbols to classes": {"vocab": VOCAB, "classes": 3},
    "columns to classes": {"columns": 2, "classes": 7, "output_bias": False},
    "columns to activations": {"columns": 2, "targets": 3, "input_dropout": 0.1, "output_act": "leaky_relu"},
    "symbols without biases": {"vocab": VOCAB, "output_bias": False},
    "targets without biases": {"vocab": VOCAB, "targets": 2, "output_bias": False},
    "clusters without biases": {"vocab": VOCAB, "cutoffs": CUTS, "output_bias": False},
    "clusters": {"vocab": VOCAB, "cutoffs": CUTS},
    "tied clusters": {"vocab": VOCAB, "cutoffs": CUTS, "tied": True, "embedding_dropout": 0.1},
    "tied with biases": {"vocab": VOCAB, "tied": True, "tied_bias": True},
    "projected clusters": {"vocab": VOCAB, "cutoffs": CUTS, "project_first_cluster": True},
    "tied projected clusters with biases": {
        "vocab": VOCAB,
        "cutoffs": CUTS,
        "tied": True,
        "tied_bias": True,
        "project_first_cluster": True,
        "embedding": "unit_scaled",
    },
}
RECIPES = [
    "sa(heads=2, head_width=4) >> ff(5)",
    "2 * (conv(k=3) + sa(heads=1) >> ff(4))",
    "conv(k=3) >> 2 * dense(act=tanh) >> conv(k=2)",
    "(conv(k=3) >> dense) + highway_conv(k=2)",
    "ff(6) >> attention_pool >> ff(4)",
    "activation >> mean_pool >> 2 * dense",
    "(dense >> last) + attention_pool",
]
STEPS = list(product(["pre", "post", "none"], [True, False]))
ENDS = [(name, text) for name, text in product(FRAMES, RECIPES) if name == "symbols" or text in RECIPES[2::2]]


def made(recipe, *, seed=0, dtype=torch.float64, **settings):
    settings = {"d_model": WIDTH, "dropout": 0.0, **settings}
    return build(recipe, **settings, generator=make_generator(seed)).to(dtype).eval()


def inputs_of(model, batch=2, length=LENGTH, dtype=torch.float64):
    columns = model.config.interface.columns
    if columns is not None:
        return torch.randn(batch, length, columns, generator=make_generator(1), dtype=dtype)
    return torch.randint(model.config.interface.vocab, (batch, length), generator=make_generator(1))


def every_symbol():
    return torch.arange(VOCAB).view(2, VOCAB // 2)


@pytest.mark.parametrize(("name", "text"), one_in(3, ENDS))
def test_every_frame_costs_what_its_analysis_says(name, text):
    frame, ways = FRAMES[name], list(product(STEPS, [("timing", 0.1), ("none", 0.0)]))
    for (norm, residual), (position, dropout) in ways if name == "symbols" else ways[::5]:
        settings = {"d_model": WIDTH, "norm": norm, "residual": residual, "position": position, **frame}
        model = build(text, **settings, dropout=dropout)
        stated = analyse(text, **settings, dropout=dropout, length=LENGTH)
        assert sum(parameter.numel() for parameter in model.parameters()) == stated.parameters
        kept = saved_bytes(model, batch=3, length=LENGTH)
        assert stated.memory(3).activations == pytest.approx(kept, rel=0.005, abs=12)


@pytest.mark.parametrize(("name", "text"), ENDS)
def test_every_frame_computes_what_its_analysis_says(name, text):
    frame = FRAMES[name]
    model = made(text, **frame, dtype=torch.float32)
    inputs, batch = inputs_of(model, 64, dtype=torch.float32), 64
    places = (batch,) if model.pooled else (batch, LENGTH)
    targets = torch.zeros(places, dtype=torch.int64)
    predicts_symbols = model.config.interface.targets is None
    counted = count_flops(lambda: model.nll(inputs, targets) if predicts_symbols else model(inputs))
    stated = analyse(text, d_model=WIDTH, length=LENGTH, dropout=0.0, **frame)
    assert counted == pytest.approx(batch * stated.flops, rel=0.01)


@pytest.mark.parametrize(("name", "text"), one_in(3, ENDS))
def test_outputs_are_a_distribution_or_numbers_of_each_position_or_of_a_sequence(name, text):
    frame = FRAMES[name]
    model = made(text, **frame)
    outputs = model(inputs_of(model))
    count = frame.get("targets") or frame.get("classes") or VOCAB
    assert outputs.shape == ((2, count) if model.pooled else (2, LENGTH, count))


@pytest.mark.parametrize(("norm", "residual"), STEPS)
def test_a_padded_batch_gives_what_its_sequences_give_separately(norm, residual):
    for frame, text in product(FRAMES.values(), ("conv(k=3) >> sa(heads=1)", "ff(6) >> attention_pool")):
        model = made(text, norm=norm, residual=residual, **frame)
        inputs, lengths = inputs_of(model, 3, 7), torch.tensor([7, 1, 4])
        outputs = model(inputs, lengths)
        for row, out, length in zip(inputs, outputs, lengths.tolist(), strict=True):
            alone = model(row[None, :length])[0]
            torch.testing.assert_close(out if model.pooled else out[:length], alone, rtol=1e-10, atol=1e-10)


def test_without_norms_and_residuals_a_step_is_its_part():
    model = made("conv(k=4) >> ff(5)", norm="none", residual=False, vocab=VOCAB)
    tokens = inputs_of(model, 1)
    first, second = (layer.part for layer in model.body.layers)
    with torch.no_grad():
        x = model.embedding.weight[tokens[0]] * math.sqrt(WIDTH)
        signal = references.timing(LENGTH, WIDTH)
        x = references.ff(second, references.conv(first, x + signal + signal, causal=False))
        expected = x @ model.output.weight.T + model.output.bias
    torch.testing.assert_close(model(tokens)[0], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_without_residuals_a_norm_is_in_front_of_a_part_or_after_it(norm):
    model = made("ff(5)", norm=norm, residual=False, position="none", vocab=VOCAB)
    (layer,) = model.body.layers
    tokens = inputs_of(model, 1)
    with torch.no_grad():
        x = model.embedding.weight[tokens[0]] * math.sqrt(WIDTH)
        if norm == "pre":
            x = references.norm(model.norm, references.ff(layer.part, references.norm(layer.norm, x)))
        else:
            x = references.norm(layer.norm, references.ff(layer.part, x))
        expected = x @ model.output.weight.T + model.output.bias
    torch.testing.assert_close(model(tokens)[0], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("output_act", ["none", "leaky_relu"])
def test_the_feedforward_attention_model_is_the_papers(output_act):
    model = made(
        "activation(act=leaky_relu) >> attention_pool >> dense(act=leaky_relu)",
        columns=2,
        targets=1,
        norm="none",
        residual=False,
        init="he",
        position="none",
        output_act=output_act,
    )
    numbers = inputs_of(model, 1)[0]
    _, pool, dense = (layer.part for layer in model.body.layers)
    with torch.no_grad():
        hidden = functional.leaky_relu(numbers @ model.embedding.weight.T + model.embedding.bias)
        scores = torch.tanh(hidden @ pool.score.weight[0] + pool.score.bias)
        weights = scores.exp() / scores.exp().sum()
        context = sum(weight * row for weight, row in zip(weights, hidden, strict=True))
        context = functional.leaky_relu(dense.map.weight @ context + dense.map.bias)
        expected = model.output.weight @ context + model.output.bias
        expected = functional.leaky_relu(expected) if output_act == "leaky_relu" else expected
    torch.testing.assert_close(model(numbers[None])[0], expected, rtol=1e-9, atol=1e-9)


def test_a_norm_adds_what_the_model_says_to_the_variance():
    models = [made("ff(5) >> dense", norm=norm, norm_eps=0.25, vocab=VOCAB) for norm in ("pre", "post")]
    norms = [one for model in models for one in model.modules() if isinstance(one, torch.nn.LayerNorm)]
    assert [one.eps for one in norms] == [0.25] * 5


def test_inputs_of_the_body_are_dropped_with_their_positions():
    model = build("ff(5)", d_model=1000, vocab=VOCAB, dropout=0.0, input_dropout=0.4)
    tokens = torch.zeros(1, 1, dtype=torch.int64)
    x, signal = model._embed(tokens, 0)
    assert (x == 0).double().mean().item() == pytest.approx(0.4, abs=0.06)
    assert signal is not None
    model.eval()
    torch.testing.assert_close(x[x != 0] * 0.6, model._embed(tokens, 0)[0][x != 0], rtol=1e-4, atol=1e-6)


def test_embeddings_and_what_enters_the_output_are_dropped():
    settings = {"d_model": 1000, "vocab": VOCAB, "dropout": 0.0, "embedding_dropout": 0.4}
    model = build("activation(act=tanh)", position="none", norm="none", residual=False, **settings)
    tokens = torch.zeros(1, 1, dtype=torch.int64)
    for trained, share in ((True, 0.4), (False, 0.0)):
        model.train(trained)
        assert (model._embed(tokens, 0)[0] == 0).double().mean().item() == pytest.approx(share, abs=0.06)
        twice = 1 - (1 - share) ** 2
        assert (model._hidden(tokens, None) == 0).double().mean().item() == pytest.approx(twice, abs=0.06)


def test_tied_weights_are_one_tensor_and_learn_from_both_ends():
    model = made("ff(5)", vocab=VOCAB, tied=True)
    assert model.output.weight is model.embedding.weight
    assert model.output.weight.std().item() == pytest.approx(WIDTH**-0.5, rel=0.1)
    tokens = torch.zeros(1, 1, dtype=torch.int64)
    model.nll(tokens, tokens).sum().backward()
    assert (model.embedding.weight.grad.abs().sum(1) > 0).all()  # of every symbol, through the softmax
    fresh = made("ff(5)", vocab=VOCAB, tied=True, seed=1)
    fresh.load_state_dict(model.state_dict())
    assert fresh.output.weight is fresh.embedding.weight
    assert fresh(tokens).equal(model(tokens))


@pytest.mark.parametrize("name", ["symbols", "tied", "clusters", "tied clusters", "columns to symbols"])
def test_the_loss_of_a_model_is_that_of_its_outputs_and_nothing_at_padding(name):
    model = made("conv(k=3) >> ff(5)", **FRAMES[name])
    inputs, targets = inputs_of(model, 2, VOCAB // 2), every_symbol()
    expected = -functional.log_softmax(model(inputs), -1).gather(-1, targets[..., None])[..., 0]
    torch.testing.assert_close(model.nll(inputs, targets), expected, rtol=1e-10, atol=1e-12)
    lengths = torch.tensor([VOCAB // 2, 3])
    padded = model.nll(inputs, targets, lengths)
    torch.testing.assert_close(padded[1, :3], model.nll(inputs[1:, :3], targets[1:, :3])[0])
    assert not padded[1, 3:].any()
    every = -functional.log_softmax(model(inputs, lengths), -1).gather(-1, targets[..., None])[..., 0]
    masked = torch.where(torch.arange(VOCAB // 2) < lengths[:, None], every, 0.0)
    grads = [torch.autograd.grad(lost.sum(), list(model.parameters())) for lost in (padded, masked)]
    torch.testing.assert_close(*grads, rtol=1e-9, atol=1e-11)


def test_no_output_is_computed_at_padding():
    sizes = []
    lines = made("conv(k=3) >> ff(5)", vocab=VOCAB)
    pairs = made("seq2seq(lstm, lstm)", vocab=VOCAB, position="none")
    for model in (lines, pairs):
        model.output.register_forward_hook(lambda _model, inputs, _output: sizes.append(inputs[0].shape[:-1]))
    inputs = inputs_of(lines)
    lines.nll(inputs, inputs, torch.tensor([LENGTH, 3]))
    targets = torch.tensor([[3, 1, 4, 1], [5, 9, PAD, PAD]])
    lost = pairs.nll(targets, targets)
    assert sizes == [(LENGTH + 3,), (6,)]
    scores = pairs(targets, targets).log_softmax(-1).gather(-1, targets[..., None])[..., 0]
    torch.testing.assert_close(lost, torch.where(targets == PAD, 0.0, -scores))


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_every_frame_works_in_half_the_bits(frame):
    model = made("conv(k=3) >> ff(5)", dtype=torch.float32, **frame)
    inputs = inputs_of(model, 2, VOCAB // 2, dtype=torch.float32)
    whole = model(inputs)
    with torch.autocast("cpu", torch.bfloat16):
        half = model(inputs)
        symbols = every_symbol() % (model.config.interface.classes or VOCAB)
        lost = half.float().square() if model.config.interface.targets else model.nll(inputs, symbols)
    torch.testing.assert_close(half.float(), whole, rtol=0.05, atol=0.1)
    assert lost.dtype == torch.float32
    lost.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_after_a_pool_the_loss_is_one_of_each_sequence():
    model = made("ff(5) >> mean_pool", **FRAMES["clusters"])
    inputs, targets = inputs_of(model), torch.tensor([3, 30])
    expected = -model(inputs).gather(-1, targets[:, None])[:, 0]
    torch.testing.assert_close(model.nll(inputs, targets, torch.tensor([11, 11])), expected)


def test_a_model_of_numbers_has_no_likelihood(golden):
    model = made("ff(5)", columns=2, targets=3)
    with golden.raises(BuildError):
        model.nll(inputs_of(model), torch.zeros(2, LENGTH, dtype=torch.int64))


@pytest.mark.parametrize("frame", [FRAMES["symbols"], FRAMES["tied clusters"]], ids=["plain", "clusters"])
@pytest.mark.parametrize("position", ["timing", "none"])
def test_a_stream_in_pieces_gives_the_results_of_one_pass(position, frame):
    settings = {"causal": True, "position": position, **frame}
    model = made("2 * (conv(k=3) + highway_conv(k=4) >> ff(5))", **settings)
    inputs, targets = inputs_of(model, 2, VOCAB // 2), every_symbol()
    outputs, lost = model(inputs), model.nll(inputs, targets)
    stream, scored = StreamState(), StreamState()
    for start, end in ((0, 1), (1, 3), (3, 12), (12, 20)):
        found, stream = model.forward_stream(inputs[:, start:end], stream)
        torch.testing.assert_close(found, outputs[:, start:end], rtol=1e-10, atol=1e-10)
        found, scored = model.nll_stream(inputs[:, start:end], targets[:, start:end], scored)
        torch.testing.assert_close(found, lost[:, start:end], rtol=1e-10, atol=1e-10)
        assert stream.past_length == scored.past_length == end


def test_a_model_that_sees_the_future_reads_no_stream(golden):
    model = made("conv(k=3)", vocab=VOCAB)
    with golden.raises(BuildError):
        model.forward_stream(inputs_of(model), StreamState())


def test_a_recipe_of_two_sequences_builds_a_model_of_both():
    model = build(
        "seq2seq(lstm, lstm, attention=luong)", d_model=WIDTH, vocab=VOCAB, generator=make_generator(0)
    )
    stated = analyse("seq2seq(lstm, lstm, attention=luong)", d_model=WIDTH, vocab=VOCAB, length=5)
    assert isinstance(model, TransductionModel)
    assert model(every_symbol(), every_symbol()[:, :7]).shape == (2, 7, VOCAB)
    assert sum(parameter.numel() for parameter in model.parameters()) == stated.parameters
    assert [part.label for part in stated.tree.parts] == [
        "source embedding",
        "target embedding",
        "seq2seq(lstm, lstm, attention=luong)",
        "output",
    ]


def test_weights_that_are_loaded_are_noted_by_every_block():
    recipe = "2 * all_attn(N=3, span=128, heads=2, head_width=4, adaptive=true, ramp=8)"
    model, other = (made(recipe, vocab=VOCAB, causal=True, seed=seed) for seed in (0, 1))
    assert [layer.part.context_length for layer in model.body.layers] == [64, 64]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("spans.z"):
                parameter.fill_(2.0)
    model.after_optimiser_step()
    other.load_state_dict(model.state_dict())
    assert [layer.part.context_length for layer in other.body.layers] == [128, 128]
    assert model.penalty().item() == pytest.approx(2 * 128)
    assert made("ff(5)", vocab=VOCAB).penalty() is None


@pytest.mark.parametrize(
    ("position", "message"),
    [
        ("rope", "unknown position 'rope'; write it in the recipe, as in sa(pos=rope)"),
        ("ALiBi", "unknown position 'ALiBi'; write it in the recipe, as in sa(pos=alibi)"),
        ("rotary", "unknown position 'rotary'; write it in the recipe, as in sa(pos=rope)"),
        ("learn", "unknown position 'learn'; nearest: learned"),
    ],
)
def test_a_position_that_is_an_argument_of_a_block_is_told_as_one(position, message):
    with pytest.raises(BuildError) as error:
        build("sa >> ff(8)", d_model=8, vocab=20, position=position)
    assert str(error.value).endswith(f"position: {message}")


def test_impossible_values_are_reported_together(golden):
    with golden.raises(BuildError):
        build(
            "ff(8)",
            d_model=3,
            vocab=20,
            columns=0,
            targets=0,
            norm="off",
            position="learnt",
            attention_dropout=-0.5,
            embedding_dropout=1.0,
            embedding="large",
            init="zero",
            residual_init="deep",
            norm_eps=0.0,
            attention_std=-1.0,
            bias_init="ones",
            output_act="sine",
        )


def test_contradictory_settings_are_reported_together(golden):
    with golden.raises(BuildError):
        build(
            "ff(8)",
            d_model=3,
            vocab=20,
            targets=1,
            residual=False,
            residual_init="zero",
            tied=True,
            cutoffs=(10, 10),
        )


@pytest.mark.parametrize(("inside", "around"), [(0.4, 0.0), (0.0, 0.4), (None, 0.4), (0.3, 0.4)])
def test_feedforward_blocks_may_have_a_dropout_rate_of_their_own(inside, around):
    sizes = {"d_model": 8, "vocab": VOCAB, "dropout": around, "feedforward_dropout": inside}
    model = build("ff(12)", **sizes)
    sublayer = model.body.layers[0]
    assert (sublayer.part.dropout.rate, sublayer.dropout.rate) == (
        around if inside is None else inside,
        around,
    )
    stated = analyse("ff(12)", length=20, **sizes).memory(2).activations
    assert stated == pytest.approx(saved_bytes(model, batch=2, length=20), rel=0.01, abs=8)
