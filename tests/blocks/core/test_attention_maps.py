"""Attention maps of a model: the weights that multiply the values, for every block that has some."""

from __future__ import annotations

import pytest
import torch

from activemem import build
from activemem.blocks import BuildError

D = 5  # the width, the length and the width of a head, so that weights follow from outputs and values

ALONE = [
    "sa(heads=1, head_width=5)",
    "sa(heads=1, head_width=5, qk_norm=rms, logit_cap=0.5)",
    "sa(heads=1, head_width=5, temperature=0.3)",
    "sa(heads=1, head_width=5, pos=alibi)",
    "sa(heads=1, head_width=5, span=3)",
    "fox(heads=1, head_width=5)",
]

RECIPES = [
    "2 * (sa(heads=2, head_width=4, pos=rope) >> ff(16))",
    "sa(heads=4, kv_heads=2, head_width=2) + conv(k=3) >> tied(2 * diff_attn(heads=2, head_width=4))",
    "fox(heads=2, head_width=4) >> latent_attn(heads=2)",
    "all_attn(heads=2, span=3, N=4) >> attn_split(heads=2, span=2, N=3) >> head_split(heads=2, span=4, N=2)",
    "single_head(heads=2, span=2, N=3) >> ff_attn(N=4) >> sa(heads=2, span=3, head_width=4, logit_cap=5)",
    "sa(heads=2, pos=alibi) >> attention_pool",
]


def model(recipe, **settings):
    built = build(recipe, vocab=7, d_model=8, generator=torch.Generator().manual_seed(0), **settings)
    return built.double().eval()


@pytest.mark.parametrize("recipe", ALONE)
def test_weights_are_those_that_multiply_the_values(recipe):
    made = build(recipe, vocab=7, d_model=D, causal=True, norm="none", residual=False).double().eval()
    inputs = torch.tensor([[1, 2, 3, 4, 5]])
    block = next(each for each in made.modules() if hasattr(each, "qkv"))
    seen: dict[str, torch.Tensor] = {}
    hook = block.register_forward_hook(lambda _, given, y: seen.update(x=given[0][0], y=y[0]))
    made(inputs)
    hook.remove()
    values = seen["x"] @ block.qkv.weight[-D:].T
    mixed = seen["y"] @ torch.linalg.inv(block.output.weight).T
    (found,) = made.attention(inputs)
    torch.testing.assert_close(found.weights[0, 0], mixed @ torch.linalg.inv(values), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("recipe", RECIPES)
def test_maps_come_from_every_block_with_weights_and_change_no_output(recipe):
    made = model(recipe, causal="pool" not in recipe)
    inputs, lengths = torch.randint(1, 7, (2, 6)), torch.tensor([6, 4])
    before = made(inputs, lengths)
    maps = made.attention(inputs, lengths)
    assert torch.equal(made(inputs, lengths), before)
    for each in maps:
        batch, _, queries, keys = each.weights.shape
        assert (batch, queries, keys) in {(2, 6, 6 + each.persistent), (2, 6, each.persistent), (2, 1, 6)}
        within = each.weights[1, :, :4, : keys - each.persistent]
        assert not within[..., 4:].any(), "padding has no weight"
        if "pool" not in recipe:
            assert not within.triu(1).any(), "no key is in the future"
        sums = each.weights[1, :, :4].sum(-1)
        if "diff_attn" not in each.block:
            assert bool(((sums - 1).abs().lt(1e-9) | sums.eq(0)).all())
    assert [each.layer for each in maps] == sorted(each.layer for each in maps)


def test_a_tied_block_has_a_map_for_each_time_that_it_is_computed_and_two_softmaxes_share_a_layer():
    tied = model("tied(3 * sa(heads=2, head_width=4))").attention(torch.ones(1, 4, dtype=torch.long))
    assert [(each.layer, each.block) for each in tied] == [
        (n, "sa(heads=2, head_width=4)") for n in (1, 2, 3)
    ]
    split = model("attn_split(heads=2, span=2, N=3)", causal=True)
    found = split.attention(torch.ones(1, 4, dtype=torch.long))
    assert [(each.layer, each.persistent) for each in found] == [(1, 0), (1, 3)]
    assert (
        repr(found[1])
        == "AttentionMap(layer 1: attn_split(N=3, span=2, heads=2), (1, 2, 4, 3), 3 persistent)"
    )


def test_a_model_in_training_is_measured_without_dropout_and_goes_on_training():
    made = model("sa(heads=2, head_width=4)", attention_dropout=0.5, dropout=0.5).train()
    inputs = torch.ones(1, 4, dtype=torch.long)
    first, again = (made.attention(inputs)[0].weights for _ in range(2))
    assert torch.equal(first, again)
    assert made.training


def test_a_model_without_attention_says_so():
    with pytest.raises(
        BuildError, match="expected a model with attention, such as sa; no block of this one has"
    ):
        model("conv(k=3)").attention(torch.ones(1, 4, dtype=torch.long))
