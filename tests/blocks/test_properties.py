"""What the analysis says of any recipe at all is what its module does: parameters, operations, memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from activemem.blocks import build
from activemem.blocks.testing.fixtures import saved_bytes
from activemem.grammar import Recipe, analyse

from ..grammar.strategies import closed_recipes
from .example_blocks import SEQUENCE_BLOCKS

QUICK = settings(deadline=None, max_examples=20)
RECIPES = closed_recipes(tuple(SEQUENCE_BLOCKS)).map(Recipe)
NORMS, POSITIONS = st.sampled_from(["pre", "post"]), st.sampled_from(["timing", "none"])
LENGTHS = st.integers(1, 12)


def shape(recipe, **settings):
    """The model without numbers: of any size, at no cost."""
    with torch.device("meta"):
        return build(recipe, dropout=0.0, max_parameters=None, **settings)


@QUICK
@given(RECIPES, st.integers(1, 9), st.integers(1, 30), LENGTHS, st.booleans(), NORMS)
def test_parameters_and_operations_are_those_of_the_module(recipe, d_model, vocab, length, causal, norm):
    sizes = {"d_model": d_model, "vocab": vocab, "causal": causal, "norm": norm}
    model, batch = shape(recipe, **sizes), 10**6  # what is done once a batch must not count
    with FlopCounterMode(display=False) as counter:
        model.eval()(torch.zeros(batch, length, dtype=torch.int64, device="meta"))
    stated = analyse(recipe, length=length, **sizes)
    assert sum(parameter.numel() for parameter in model.parameters()) == stated.parameters
    assert counter.get_total_flops() == pytest.approx(batch * stated.flops, rel=0.01)


@QUICK
@given(RECIPES, LENGTHS, st.integers(1, 40), st.booleans(), NORMS, POSITIONS)
def test_what_training_keeps_is_what_the_module_saves(recipe, length, batch, causal, norm, position):
    sizes = {"d_model": 8, "vocab": 20, "causal": causal, "norm": norm, "position": position}
    model = shape(recipe, **sizes)
    stated = analyse(recipe, length=length, dropout=0.0, **sizes).memory(batch)
    measured = saved_bytes(model, batch=batch, length=length)
    assert stated.activations == pytest.approx(measured, rel=0.02)
