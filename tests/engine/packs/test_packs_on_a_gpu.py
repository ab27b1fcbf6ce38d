"""Packs on a GPU: a joint step equals separate steps, for every block."""

import pytest
import torch

from activemem.blocks.testing import example_block
from activemem.engine.packs import StackedSteps
from activemem.engine.trial import Training
from activemem.grammar import render

from ...blocks.example_blocks import SEQUENCE_BLOCKS

NEEDS_A_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
GPU = torch.device("cuda")

DRAWN = [
    ("conv(k=3) >> ff(16)", "randomised"),
    ("lstm", "randomised"),
    ("sa(heads=2, pos=rope)", "randomised_pairs"),
]
"""Recipes for modules with and without a vmap, and random positions."""


@pytest.fixture
def make(settings):
    """Return a factory of trainings, optionally in double precision."""

    def made(seed, recipe, *, double=False, dropout=0.1, position="timing"):
        chosen = settings(recipe, seed=seed, task="reverse", optimizer={"name": "sgd", "lr": 0.1})
        model = {"dropout": dropout, "attention_dropout": dropout, "position": position}
        model |= {} if position == "timing" else {"max_positions": 50}
        model = chosen.model.model_copy(update=model)
        training = Training.begin(chosen.model_copy(update={"model": model}), GPU)
        if double:
            training.model.double()
        return training

    return made


def take_one_step(make, tolerance, *given, **options):
    """Take one step separately and jointly; random states must be identical, weights close."""
    alone, packed = ([make(seed, *given, **options) for seed in range(3)] for _ in range(2))
    for training in alone:
        training.take_steps()
    with StackedSteps(packed) as stacked:
        stacked.step()
    for one, other in zip(alone, packed, strict=True):
        expected, found = one.state(), other.state()
        torch.testing.assert_close(found["model"], expected["model"], atol=tolerance, rtol=0.0)
        assert torch.equal(found["noise"], expected["noise"])
        assert torch.equal(found["objective"]["data"], expected["objective"]["data"])
        assert float(found["epoch"]["loss"]) == pytest.approx(float(expected["epoch"]["loss"]), rel=tolerance)


@NEEDS_A_GPU
@pytest.mark.parametrize("name", SEQUENCE_BLOCKS)
def test_every_block_trains_as_it_does_separately(make, name):
    text = render(example_block(name))
    take_one_step(make, 1e-4, text)  # the rounding of float32: 3e-5 for ttt on an H100
    take_one_step(make, 1e-10, text, double=True)


@NEEDS_A_GPU
@pytest.mark.parametrize("dropout", [0.1, 0.0])
@pytest.mark.parametrize(("recipe", "position"), DRAWN)
def test_random_positions_are_drawn_together_as_separately(make, recipe, position, dropout):
    take_one_step(make, 1e-10, recipe, double=True, position=position, dropout=dropout)
