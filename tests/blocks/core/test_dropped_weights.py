"""Weights that are dropped have the bits of any dropout, and keep a byte for each."""

import pytest
import torch
from torch.autograd import forward_ad

from activemem.blocks import build
from activemem.blocks.core.dropout import Dropout, draw_dropout, drop_weights, given_dropout, noting_dropout
from activemem.blocks.layers import all_attention, attention, attention_variants


def by_any_dropout(weights, dropout):
    """Weights by factors, which are kept."""
    return dropout(weights)


def with_gradients(drop, dtype, rate):
    """What is left of weights, its gradient, and the gradient of that along a direction."""
    torch.manual_seed(4)
    weights = torch.rand(2, 3, 7, 9, dtype=dtype, requires_grad=True)
    left = drop(weights, Dropout(rate))
    towards = torch.randn_like(left, requires_grad=True)
    (gradient,) = torch.autograd.grad(left, weights, towards, create_graph=True)
    (second,) = torch.autograd.grad(gradient.square().sum(), towards)
    return left.detach(), gradient.detach(), second


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_what_is_left_and_its_gradients_have_the_bits_of_any_dropout(dtype, rate):
    every = zip(
        with_gradients(drop_weights, dtype, rate), with_gradients(by_any_dropout, dtype, rate), strict=True
    )
    assert all(one.equal(other) for one, other in every)


@pytest.mark.parametrize(
    "recipe",
    [
        "2 * (sa(heads=2) >> ff(8))",
        "2 * (fox(heads=2) >> ff(8))",
        "2 * (diff_attn(heads=2) >> ff(8))",
        "all_attn(N=5, heads=2, span=9) >> attn_split(N=5, heads=2, span=9)",
    ],
)
def test_a_step_moves_weights_as_it_did_with_factors(recipe, monkeypatch):
    model = build(recipe, d_model=16, vocab=9, causal=True, dropout=0.1, attention_dropout=0.2).train()
    tokens = torch.randint(9, (3, 21), generator=torch.Generator().manual_seed(1))

    def gradients():
        torch.manual_seed(2)
        loss = model.nll(tokens, tokens)
        return [loss.detach(), *torch.autograd.grad(loss.mean(), list(model.parameters()), allow_unused=True)]

    found = gradients()
    for place in (attention, all_attention, attention_variants):
        monkeypatch.setattr(place, "drop_weights", by_any_dropout)
    for one, other in zip(found, gradients(), strict=True):
        assert one is other is None or one.equal(other)


def test_a_byte_is_kept_for_each_weight():
    saved, weights = [], torch.rand(3, 50, 50, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda each: saved.append(each.nbytes) or each, lambda each: each
    ):
        drop_weights(weights, Dropout(0.1))
    assert saved == [weights.numel()]


def test_what_is_given_or_noted_is_taken_and_nothing_drops_outside_of_training():
    weights, layer = torch.rand(4, 6, 6), Dropout(0.3)
    with noting_dropout() as calls:
        assert drop_weights(weights, layer) is weights
    (factors,) = draw_dropout(calls, [torch.Generator().manual_seed(7)], torch.device("cpu"))
    with given_dropout([factors[0]]):
        assert drop_weights(weights, layer).equal(weights * factors[0])
    assert drop_weights(weights, layer.eval()) is weights


def test_stacked_weights_drop_each_for_itself():
    weights, layer = torch.ones(3, 40, 40), Dropout(0.5)
    left = torch.vmap(lambda each: drop_weights(each, layer), randomness="different")(weights)
    assert not left[0].equal(left[1])
    assert left.unique().tolist() == [0.0, 2.0]


@pytest.mark.filterwarnings(
    "ignore:.torch.jit.script. is deprecated:DeprecationWarning"
)  # torch's own use of it
def test_changes_of_weights_go_forward_by_the_same_factors():
    weights, change = torch.rand(2, 3, 7, 9), torch.randn(2, 3, 7, 9)
    with forward_ad.dual_level():
        left = forward_ad.unpack_dual(drop_weights(forward_ad.make_dual(weights, change), Dropout(0.3)))
    torch.testing.assert_close(left.tangent * weights, left.primal * change)
    assert (left.primal == 0.0).any()
