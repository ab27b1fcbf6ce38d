"""For random recipes, the analysis equals the module: parameters, FLOPs, memory."""

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

FEW, MANY = (settings(deadline=None, max_examples=number) for number in (5, 60))
SMALL, LARGE = (closed_recipes(tuple(SEQUENCE_BLOCKS), most).map(Recipe) for most in (4, 8))
WAYS = {"causal": st.booleans(), "norm": st.sampled_from(["pre", "post"])}
SIZES = {"d_model": st.integers(1, 9), "vocab": st.integers(1, 30), **WAYS}
SETTINGS = {**WAYS, "position": st.sampled_from(["timing", "none"])}


def shape(recipe, **settings):
    """Return the model on the meta device, which costs nothing at any size."""
    with torch.device("meta"):
        return build(recipe, dropout=0.0, max_parameters=None, **settings)


@FEW
@given(SMALL, st.integers(1, 6), st.fixed_dictionaries(SIZES))
def test_parameters_and_operations_are_those_of_the_module(recipe, length, sizes):
    assert_parameters_and_operations(recipe, length, sizes)


@pytest.mark.slow  # the shapes of every step of recurrent layers, one by one
@MANY
@given(LARGE, st.integers(1, 12), st.fixed_dictionaries(SIZES))
def test_parameters_and_operations_are_those_of_a_large_module(recipe, length, sizes):
    assert_parameters_and_operations(recipe, length, sizes)


def assert_parameters_and_operations(recipe, length, sizes):
    model = shape(recipe, **sizes).eval()
    stated = analyse(recipe, length=length, **sizes)
    assert sum(parameter.numel() for parameter in model.parameters()) == stated.parameters
    few, twice = (operations(model, batch, length) for batch in (10, 20))
    assert twice - few == pytest.approx(10 * stated.flops, rel=0.01)  # without what is done once a batch


@torch.no_grad()
def operations(model, batch, length, *, sides=1):
    """Return the FLOPs of a forward pass of a batch of sequences, or of two for a model with two sides."""
    with FlopCounterMode(display=False) as counter:
        model(*[torch.zeros(batch, length, dtype=torch.int64, device="meta")] * sides)
    return counter.get_total_flops()


@pytest.mark.parametrize("length", [5, 13])
@pytest.mark.parametrize(
    "recipe",
    [
        "seq2seq(lstm, lstm)",
        "seq2seq(gru, gru, attention=bahdanau)",
        "seq2seq(gru(layers=2), gru(layers=2), attention=bahdanau, feed=true, units=12)",
        "seq2seq(conv(k=3), lstm, attention=luong)",
        "neural_gpu(layers=2)",
    ],
)
def test_the_operations_of_a_long_loop_follow_from_short_ones(recipe, length):
    model = shape(recipe, d_model=8, vocab=20).eval()
    stated = analyse(recipe, length=length, d_model=8, vocab=20)
    few, twice = (operations(model, batch, length, sides=2) for batch in (10, 20))
    assert twice - few == 10 * stated.flops


@FEW
@given(SMALL, st.integers(1, 12), st.integers(1, 40), st.fixed_dictionaries(SETTINGS))
@pytest.mark.heavy
def test_the_stated_memory_is_what_the_module_saves(recipe, length, batch, given):
    assert_kept(recipe, length, batch, given)


@pytest.mark.slow  # as above
@MANY
@given(LARGE, st.integers(1, 12), st.integers(1, 40), st.fixed_dictionaries(SETTINGS))
def test_the_stated_memory_is_what_a_large_module_saves(recipe, length, batch, given):
    assert_kept(recipe, length, batch, given)


def assert_kept(recipe, length, batch, given):
    sizes = {"d_model": 8, "vocab": 20, **given}
    model = shape(recipe, **sizes)
    stated = analyse(recipe, length=length, dropout=0.0, **sizes).memory(batch)
    measured = saved_bytes(model, batch=batch, length=length)
    assert stated.activations == pytest.approx(measured, rel=0.02)
