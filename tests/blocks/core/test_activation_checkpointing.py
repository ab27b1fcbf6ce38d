"""Activation checkpointing: the saved bytes equal those of the analysis."""

import pytest
import torch

from activemem import analyse
from activemem.blocks import build
from activemem.blocks.core import outermost_stacks
from activemem.blocks.testing import count_saved_bytes, make_generator, saved_bytes, use_plain_operations

from ...quick_cases import one_in

BATCH, LENGTH, WIDTH = 3, 20, 8
RECIPES = [
    "3 * (sa(heads=2) >> ff(16))",
    "2 * (conv(k=3) + sa(heads=2) + (lstm >> ff(8)))",
    "tied(3 * (conv(k=3) >> ff(16)))",
    "conv(k=3) >> mean_pool >> ff(8)",
    "sa(heads=2, pos=t5) >> mamba",
]


def make(recipe, checkpoints=True, **settings):
    """Return a model that saves only the inputs of sub-layers, and its analysis."""
    settings = {"d_model": WIDTH, "vocab": 5, **settings}
    model = build(recipe, generator=make_generator(0), **settings)
    model = use_plain_operations(model, keeps_kernels=True).train()
    for stack in outermost_stacks(model):
        stack.checkpoints = checkpoints
    return model, analyse(recipe, length=LENGTH, activation_checkpointing=checkpoints, **settings)


@pytest.mark.parametrize(("norm", "dropout"), [("pre", 0.0), ("post", 0.1), ("none", 0.1)])
@pytest.mark.parametrize("recipe", one_in(2, RECIPES))
def test_the_inputs_of_sub_layers_are_kept_and_nothing_else_of_them(recipe, norm, dropout):
    rates = {"dropout": dropout, "embedding_dropout": dropout}
    model, analysis = make(recipe, norm=norm, **rates)
    _, plain = make(recipe, checkpoints=False, norm=norm, **rates)
    stated = analysis.memory(BATCH)
    kept = saved_bytes(model, batch=BATCH, length=LENGTH)
    assert kept == pytest.approx(stated.activations, abs=16)
    assert stated.activations < plain.memory(BATCH).activations


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_encoders_and_decoders_keep_as_little(dropout):
    recipe = "seq2seq(2 * (sa(heads=2) >> ff(16)), 2 * (sa(heads=2) + conv(k=3) >> ff(16)))"
    model, analysis = make(recipe, dropout=dropout)
    source, target = (torch.ones(BATCH, LENGTH, dtype=torch.int64) for _ in range(2))
    kept = count_saved_bytes(model, lambda: model.nll(source, target))
    assert kept == pytest.approx(analysis.memory(BATCH).activations, abs=16)


def test_a_model_in_evaluation_computes_nothing_again():
    model = build("sa(heads=2)", d_model=8, vocab=5, generator=make_generator(0)).eval()
    tokens = torch.zeros(2, 5, dtype=torch.int64)
    kept = count_saved_bytes(model, lambda: model.nll(tokens, tokens).sum())
    for stack in outermost_stacks(model):
        stack.checkpoints = True
    assert count_saved_bytes(model, lambda: model.nll(tokens, tokens).sum()) == kept
