"""Pools against plain loops, and their fast path against the modules."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.autograd.graph import saved_tensors_hooks
from torch.func import functional_call
from torch.testing import assert_close

from activemem.blocks import Context, Linear, build, build_block
from activemem.blocks.core.initialisation import initialise
from activemem.blocks.core.residual_stack import SideInputs, build_body
from activemem.blocks.layers.pooling import try_fused_pooling
from activemem.blocks.testing.fixtures import make_block, make_generator, prefix_mask, random_sequences
from activemem.blocks.testing.references import find_reference
from activemem.grammar import configure, parse
from activemem.grammar.nodes import BlockNode

ACTS = ("relu", "leaky_relu")
LENGTHS = (8, 1, 3, 7)
BATCHES = [(5, 700), (2, 1500), (1, 6001)]  # rows together, rows by themselves, one row in parts
FRAME = {"d_model": 100, "norm": "none", "residual": False, "position": "none", "dropout": 0.0, "init": "he"}
PAPER = "activation(act=leaky_relu) >> {} >> dense(act=leaky_relu)"


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.mark.parametrize("name", ["attention_pool", "mean_pool", "last"])
def test_infinite_numbers_at_padding_reach_no_pool(name):
    block, x, mask = (
        make_block(BlockNode(name), causal=False),
        random_sequences(4, 8),
        prefix_mask(LENGTHS, 8),
    )
    assert block(torch.where(mask[..., None], x, torch.inf), mask).equal(block(x, mask))


def test_the_vector_of_attention_begins_as_the_papers_program_draws_it():
    block = build_block(BlockNode("attention_pool"), Context(config=configure(d_model=10_000, dropout=0.0)))
    initialise(block, make_generator(1))
    assert block.score.weight.std().item() == pytest.approx(0.01, rel=0.05)
    assert block.score.bias.item() == 0


def parts(pool, act, dtype=torch.float64):
    """Return an input map of 2 columns and a body of width 48, with random biases."""
    context = Context(config=configure(d_model=48, dropout=0.0, norm="none", residual=False))
    body = build_body(parse(f"activation(act={act}) >> {pool} >> dense(act={act})").root, context)
    entry = Linear(2, 48, bias=True)
    for module in (entry, body):
        initialise(module, make_generator(3))
        for weights in module.parameters():
            torch.nn.init.normal_(weights, std=0.5, generator=make_generator(weights.numel()))
        module.to(dtype)
    return entry, body


def gradients(loss, *modules):
    weights = [each for module in modules for each in module.parameters()]
    return torch.autograd.grad(loss, weights)


@pytest.mark.parametrize(("batch", "length"), BATCHES)
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("pool", ["attention_pool", "mean_pool"])
@pytest.mark.parametrize("masked", [False, True], ids=["whole", "padded"])
def test_in_pieces_the_result_and_the_gradients_are_those_of_the_modules(pool, act, batch, length, masked):
    entry, body = parts(pool, act)
    x = random_sequences(batch, length, width=2)
    mask = prefix_mask([length - 7 * row - 1 for row in range(batch)], length) if masked else None
    fast, plain = try_fused_pooling(entry, body, x, mask), body(entry(x), SideInputs(mask))
    assert_close(fast, plain, rtol=1e-11, atol=1e-12)
    weighted = random_sequences(batch, 1, width=48, seed=5)
    found = gradients((fast * weighted).sum(), entry, body)
    wanted = gradients((plain * weighted).sum(), entry, body)
    assert_close(found, wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("pool", ["attention_pool", "mean_pool"])
@pytest.mark.parametrize("masked", [False, True], ids=["whole", "padded"])
def test_in_pieces_the_second_derivatives_are_those_of_the_modules(pool, act, masked):
    entry, body = parts(pool, act)
    x = random_sequences(2, 1500, width=2)
    mask = prefix_mask([1400, 3], 1500) if masked else None
    weights = [*entry.parameters(), *body.parameters()]
    found = []
    for y in (try_fused_pooling(entry, body, x, mask), body(entry(x), SideInputs(mask))):
        first = torch.autograd.grad(y.square().sum(), weights, create_graph=True)
        second = torch.autograd.grad(sum(each.square().sum() for each in first), weights)
        found.append((first, second))
    assert_close(found[0], found[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("frozen", ["entry", "score"])
def test_second_derivatives_in_pieces_leave_out_frozen_weights(frozen):
    entry, body = parts("attention_pool", "relu")
    still = entry if frozen == "entry" else body.layers[1].part.score
    still.requires_grad_(requires_grad=False)
    weights = [each for each in (*entry.parameters(), *body.parameters()) if each.requires_grad]
    x, found = random_sequences(2, 1500, width=2), []
    for y in (try_fused_pooling(entry, body, x, None), body(entry(x), SideInputs(None))):
        first = torch.autograd.grad(y.square().sum(), weights, create_graph=True)
        found.append(torch.autograd.grad(sum(each.square().sum() for each in first), weights))
    assert_close(found[0], found[1], rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("pool", ["attention_pool", "mean_pool"])
def test_a_weight_with_a_forward_derivative_is_not_pooled_in_pieces(pool):
    entry, body = parts(pool, "relu")
    x = random_sequences(2, 1500, width=2)

    class InPieces(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.entry, self.body = entry, body

        def forward(self):
            return try_fused_pooling(self.entry, self.body, x, None)

    whole, bias = InPieces(), entry.bias.detach()
    assert whole() is not None
    with forward_ad.dual_level():
        given = {"entry.bias": forward_ad.make_dual(bias, torch.ones_like(bias))}
        assert functional_call(whole, given, ()) is None


@pytest.mark.parametrize("pool", ["attention_pool", "mean_pool"])
def test_pieces_keep_their_precision_where_half_is_asked_for(pool):
    entry, body = parts(pool, "leaky_relu", torch.float32)
    x = random_sequences(5, 700, width=2, dtype=torch.float32)
    found = []
    for half in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            fast = try_fused_pooling(entry, body, x, None)
        found.append((fast, gradients(fast.float().sum(), entry, body)))
    (whole, wanted), (half, got) = found
    assert_close(half.float(), whole, rtol=0.02, atol=0.02)
    assert_close(got, wanted, rtol=0.05, atol=0.05 * max(each.abs().max() for each in wanted).item())


def test_values_at_padding_reach_no_piece():
    entry, body = parts("attention_pool", "relu")
    x, mask = random_sequences(5, 700, width=2), prefix_mask([700, 1, 350, 699, 2], 700)
    junk = torch.where(mask[..., None], x, torch.nan)
    assert try_fused_pooling(entry, body, junk, mask).equal(try_fused_pooling(entry, body, x, mask))


@pytest.mark.parametrize("pool", ["attention_pool", "mean_pool"])
def test_in_pieces_nothing_as_long_as_the_sequences_and_as_wide_as_the_model_is_kept(pool):
    entry, body = parts(pool, "leaky_relu")
    x, kept = random_sequences(5, 700, width=2), []
    with saved_tensors_hooks(lambda tensor: kept.append(tensor.numel()) or tensor, lambda tensor: tensor):
        try_fused_pooling(entry, body, x, None)
    assert kept, "expected something to be kept"
    assert max(kept) <= 5 * 700 * 3


@pytest.mark.parametrize(
    ("recipe", "changes"),
    [
        ("activation(act=gelu) >> mean_pool", {}),
        ("activation >> last", {}),
        ("dense >> mean_pool", {}),
        ("activation >> dense >> mean_pool", {}),
        ("activation >> attention_pool + mean_pool", {}),
        ("activation(act=tanh) >> mean_pool", {}),
        ("activation >> mean_pool", {"residual": True}),
        ("activation >> mean_pool", {"norm": "pre"}),
    ],
    ids=str,
)
def test_other_bodies_are_left_to_their_modules(recipe, changes):
    settings = {"dropout": 0.0, "norm": "none", "residual": False} | changes
    body = build_body(parse(recipe).root, Context(config=configure(d_model=48, **settings)))
    entry = Linear(2, 48, bias=True)
    for module in (entry, body):
        initialise(module, make_generator(3))
    assert (
        try_fused_pooling(entry, body, random_sequences(5, 700, width=2, dtype=torch.float32), None) is None
    )


def paper_model(pool):
    return build(PAPER.format(pool), columns=2, targets=1, generator=make_generator(2), **FRAME)


@pytest.mark.parametrize("pool", ["attention_pool", "mean_pool"])
def test_the_papers_model_is_what_it_says(pool):
    model, lengths = paper_model(pool).double(), [11, 4]
    x = random_sequences(2, 11, width=2)

    def leaky(x):
        return torch.where(x > 0, x, 0.01 * x)

    weights = dict(model.named_parameters())
    wanted = []
    for row, length in zip(x, lengths, strict=True):
        h = leaky(row[:length] @ weights["embedding.weight"].T + weights["embedding.bias"])
        c = find_reference(pool)(model.body.layers[1].part, h)
        dense = model.body.layers[2].part.map
        wanted.append(model.output(leaky(dense.weight @ c + dense.bias)))
    assert_close(model(x, torch.tensor(lengths)), torch.stack(wanted), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("pool", ["attention_pool", "mean_pool"])
def test_the_papers_model_takes_long_sequences_in_pieces(pool):
    model = paper_model(pool).double()
    x, lengths = random_sequences(3, 1000, width=2), torch.tensor([1000, 900, 950])
    alone = [model(row[None, :length])[0] for row, length in zip(x, lengths.tolist(), strict=True)]
    assert try_fused_pooling(model.embedding, model.body, x, None) is not None
    assert_close(model(x, lengths), torch.stack(alone), rtol=1e-11, atol=1e-12)


def test_a_recipe_with_feed_forward_layers_around_the_pool_learns():
    recipe = "ff(100, act=leaky_relu) >> attention_pool >> ff(100, act=leaky_relu)"
    model = build(recipe, d_model=16, columns=2, targets=1, dropout=0.0, generator=make_generator(2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x = random_sequences(64, 9, width=2, dtype=torch.float32)
    losses = []
    for _ in range(60):
        loss = (model(x).squeeze(-1) - x[:, 0, 0]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3


def test_a_pool_can_follow_a_mixer_and_end_a_classifier():
    model = build(
        "sa(heads=2, head_width=4) >> last", d_model=8, vocab=5, dropout=0.0, generator=make_generator(1)
    )
    tokens = torch.randint(5, (3, 7), generator=make_generator(4))
    alone = torch.stack([model(tokens[row : row + 1, :length])[0] for row, length in enumerate((7, 3, 1))])
    assert_close(model(tokens, torch.tensor([7, 3, 1])), alone, rtol=1e-5, atol=1e-6)
