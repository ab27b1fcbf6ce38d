"""What every block of the vocabulary must hold to, whoever wrote it: one suite, run for each by name."""

import math
from copy import deepcopy

import pytest
import torch
from torch.func import functional_call, stack_module_state
from torch.utils.flop_counter import FlopCounterMode

from activemem.blocks import build
from activemem.grammar import Context, Role, analyse, lookup, parse, render

from .making import SEQUENCE_BLOCKS, WIDTH, example, made, prefix_mask, seeded, sequences

pytestmark = [
    pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"]),
    pytest.mark.parametrize("name", SEQUENCE_BLOCKS),
]

LENGTHS = [8, 1, 3, 7]


def stated(name, *, causal, length, width=WIDTH):
    """The vocabulary's cost and reach of the example."""
    spec, node = lookup(name), example(name)
    where = Context(width=width, length=length, causal=causal)
    return spec.cost(spec.settings(node), where), spec.reach(spec.settings(node), where)


def moved(function, x):
    """Which outputs move when one input does: (inputs, outputs); exact, since the shapes stay the same."""
    before = function(x)
    rows = []
    for place in range(x.shape[1]):
        other = x.clone()
        other[:, place] += 1.0 + place / 7
        rows.append((function(other) != before).any(-1).any(0))
    return torch.stack(rows)


def assert_reach(touched, reach):
    """Nothing further than the reach moves an output, and the furthest position within it does."""
    length = len(touched)
    seen = {source - target for source, target in touched.nonzero().tolist()}
    left, right = (int(min(side, length - 1)) for side in (reach.left, reach.right))
    assert (min(seen), max(seen)) == (-left, right)


def test_the_shape_stays_and_every_output_is_finite(name, causal):
    block = made(example(name), causal=causal)
    for batch, length in ((1, 1), (3, 1), (1, 2), (2, 11)):
        y = block(sequences(batch, length))
        assert y.shape == (batch, length, WIDTH)
        assert y.isfinite().all()


def test_the_reach_is_exactly_what_the_vocabulary_says(name, causal):
    block = made(example(name), causal=causal)
    _, reach = stated(name, causal=causal, length=19)
    with torch.no_grad():
        touched = moved(block, sequences(1, 19))
    assert_reach(touched, reach)
    if lookup(name).role is Role.CHANNEL:
        assert touched.equal(torch.eye(19, dtype=torch.bool))


def test_the_future_moves_nothing_in_a_causal_block(name, causal):
    block = made(example(name), causal=causal)
    with torch.no_grad():
        touched = moved(block, sequences(2, 12))
    if causal:
        assert not touched.tril(-1).any()
    assert touched.diagonal().all()


def test_a_stack_reaches_exactly_what_the_analysis_says(name, causal):
    recipe = parse(f"2 * ({render(example(name))} >> ff(9))")
    sizes = {"d_model": 16, "vocab": 5, "causal": causal}
    model = build(recipe, **sizes, dropout=0.0, generator=seeded(2)).double().eval()
    tokens = torch.randint(5, (1, 31), generator=seeded(3))
    before = model(tokens)
    rows = [(model(_changed(tokens, place)) != before).any(-1).any(0) for place in range(31)]
    assert_reach(torch.stack(rows), analyse(recipe, length=31, **sizes).reach)


def _changed(tokens, place):
    other = tokens.clone()
    other[:, place] = (other[:, place] + 1) % 5
    return other


def test_a_padded_batch_gives_what_the_sequences_give_alone(name, causal):
    block = made(example(name), causal=causal)
    x, mask = sequences(4, 8), prefix_mask(LENGTHS, 8)
    y = block(x, mask)
    for row, out, length in zip(x, y, LENGTHS, strict=True):
        torch.testing.assert_close(out[:length], block(row[None, :length])[0], rtol=1e-11, atol=1e-11)


def test_what_stands_at_padding_does_not_matter_at_all(name, causal):
    block = made(example(name), causal=causal)
    x, mask = sequences(4, 8), prefix_mask(LENGTHS, 8)
    junk = torch.where(mask[..., None], x, 1e4 * sequences(4, 8, seed=9))
    assert block(x, mask)[mask].equal(block(junk, mask)[mask])


def test_a_full_mask_is_no_mask(name, causal):
    block, x = made(example(name), causal=causal), sequences(3, 6)
    torch.testing.assert_close(block(x, prefix_mask([6, 6, 6], 6)), block(x), rtol=1e-12, atol=1e-12)


def test_sequences_of_a_batch_do_not_see_each_other(name, causal):
    block, x = made(example(name), causal=causal), sequences(3, 7)
    y = block(x)
    for row, out in zip(x, y, strict=True):
        torch.testing.assert_close(out, block(row[None])[0], rtol=1e-11, atol=1e-11)
    other = torch.cat([x[:1], sequences(2, 7, seed=8)])
    assert block(other)[0].equal(y[0])


@pytest.mark.parametrize("lengths", [None, [4, 2]], ids=["whole", "padded"])
def test_gradients_are_right_in_double_precision(name, causal, lengths):
    block = made(example(name), causal=causal, width=4)
    x = sequences(2, 4, width=4).requires_grad_()
    mask = None if lengths is None else prefix_mask(lengths, 4)
    names, values = zip(*block.named_parameters(), strict=True)

    def function(x, *values):
        y = functional_call(block, dict(zip(names, values, strict=True)), (x, mask))
        return y if mask is None else y[mask]

    assert torch.autograd.gradcheck(function, (x, *values))


def test_the_vocabulary_counts_the_parameters_exactly(name, causal):
    block = made(example(name), causal=causal)
    cost, _ = stated(name, causal=causal, length=9)
    counted = sum(parameter.numel() for parameter in block.parameters())
    assert counted == cost.parameters + sum(cost.shared.values())


@pytest.mark.parametrize("length", [3, 40])
def test_the_vocabulary_counts_the_flops_to_one_percent(name, causal, length):
    block = made(example(name), causal=causal, dtype=torch.float32)
    cost, _ = stated(name, causal=causal, length=length)
    batch = 200 if length == 3 else 32  # what is done once a batch must not count
    with FlopCounterMode(display=False) as counter:
        block(sequences(batch, length, dtype=torch.float32))
    assert counter.get_total_flops() == pytest.approx(batch * cost.flops, rel=0.01)


def test_the_state_dict_restores_the_block(name, causal):
    node = example(name)
    block, other, x = made(node, causal=causal), made(node, causal=causal, seed=5), sequences(2, 6)
    assert not other(x).equal(block(x))
    other.load_state_dict(block.state_dict())
    assert other(x).equal(block(x))


def test_a_copy_is_another_block_with_the_same_outputs(name, causal):
    block, x = made(example(name), causal=causal), sequences(2, 6)
    copy = deepcopy(block)
    expected = block(x)
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter.add_(1.0)
    assert block(x).equal(expected)


def test_the_same_seed_draws_the_same_weights_and_leaves_the_global_generator_alone(name, causal):
    state = torch.get_rng_state()
    one, same, other = (made(example(name), causal=causal, seed=seed) for seed in (3, 3, 4))
    assert torch.get_rng_state().equal(state)
    x = sequences(2, 6)
    assert one(x).equal(same(x))
    assert not one(x).equal(other(x))


@pytest.mark.parametrize("lengths", [None, [6, 2, 4]], ids=["whole", "padded"])
def test_stacked_weights_give_what_the_trials_give_one_by_one(name, causal, lengths):
    blocks = [made(example(name), causal=causal, seed=seed, dtype=torch.float32) for seed in range(3)]
    xs = torch.stack([sequences(3, 6, seed=seed, dtype=torch.float32) for seed in range(3)])
    mask = prefix_mask(lengths or [6, 6, 6], 6)
    given = None if lengths is None else mask
    weights, buffers = stack_module_state(blocks)
    base = deepcopy(blocks[0])

    def one(weights, x):
        return functional_call(base, (weights, buffers), (x, given))

    together = torch.vmap(one, randomness="error")(weights, xs)
    alone = torch.stack([block(x, given) for block, x in zip(blocks, xs, strict=True)])
    torch.testing.assert_close(together[:, mask], alone[:, mask], rtol=1e-5, atol=1e-5)
    together[:, mask].square().sum().backward()
    alone[:, mask].square().sum().backward()
    for path, weight in weights.items():
        expected = torch.stack([dict(block.named_parameters())[path].grad for block in blocks])
        torch.testing.assert_close(weight.grad, expected, rtol=1e-4, atol=1e-4)


def test_dropout_acts_in_training_only(name, causal):
    recipe = f"{render(example(name))} >> ff(8)"
    sizes = {"d_model": WIDTH, "vocab": 5, "causal": causal}
    dropping, plain = (build(recipe, **sizes, dropout=rate, generator=seeded(1)) for rate in (0.5, 0.0))
    tokens = torch.randint(5, (2, 7), generator=seeded(2))
    assert dropping.eval()(tokens).equal(plain.train()(tokens))
    assert not dropping.train()(tokens).equal(dropping.train()(tokens))


def test_the_order_of_a_sum_changes_no_bit(name, causal):
    text = render(example(name))
    sizes = {"d_model": WIDTH, "vocab": 5, "causal": causal, "dropout": 0.5}
    tokens = torch.randint(5, (2, 7), generator=seeded(2))
    outputs = []
    for recipe in (f"{text} + ff(3) + ff(4)", f"ff(4) + {text} + ff(3)"):
        model = build(recipe, **sizes, generator=seeded(1))
        torch.manual_seed(7)
        outputs.append(model(tokens))
    assert outputs[0].equal(outputs[1])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")  # inductor's own
def test_the_compiled_block_gives_the_same(name, causal):
    block = made(example(name), causal=causal, dtype=torch.float32)
    x, mask = sequences(4, 8, dtype=torch.float32), prefix_mask(LENGTHS, 8)
    compiled = torch.compile(block, fullgraph=True)
    torch.testing.assert_close(compiled(x, mask)[mask], block(x, mask)[mask], rtol=1e-4, atol=1e-5)
    assert math.isfinite(compiled(x).square().sum().item())
