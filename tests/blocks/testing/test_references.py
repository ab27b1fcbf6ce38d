"""Every block equals its slow reference over a grid of shapes, with and without padding."""

import re
from itertools import product

import pytest
import torch

from activemem.blocks.core.operations import saturating_sigmoid
from activemem.blocks.core.positions import sinusoidal_encoding
from activemem.blocks.testing.fixtures import make_block, prefix_mask, random_sequences
from activemem.blocks.testing.references import (
    find_reference,
    outputs_equal_the_reference,
    register_reference,
)
from activemem.grammar import lookup, parse

from ...quick_cases import one_in
from ..equations import attention as attention_references
from ..equations.common import ACTS, timing
from ..equations.common import hardsig as slow_hardsig

CONVOLUTIONS = ("conv", "persistent_conv", "highway_conv", "cgru")

RECIPES = [
    *(f"{name}(k={k})" for name in CONVOLUTIONS for k in (1, 2, 3, 4, 7)),
    *(f"{name}(k=4, act={act})" for name in ("conv", "persistent_conv") for act in ACTS),
    *(f"ff(5, act={act})" for act in ACTS),
    *(f"glu(5, act={act})" for act in lookup("glu").parameter("act").words),
    "sa(heads=1, head_width=3)",
    "sa(heads=3, head_width=2)",
    "sa(heads=3, head_width=2, temperature=0.5)",
    "ff(7, act=gelu_tanh)",
    "sa",
    "lstm",
    "lstm(layers=3)",
    "gru",
    "gru(layers=3)",
]


@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
@pytest.mark.parametrize("text", RECIPES)
def test_a_block_equals_its_reference(text, causal):
    outputs_equal_the_reference(text, causal=causal)


@pytest.mark.parametrize(("causal", "masked"), one_in(3, product((False, True), repeat=2)))
def test_attention_over_long_sequences_equals_the_reference(causal, masked):
    node = parse("sa(heads=2, head_width=3)").root
    block, settings = make_block(node, causal=causal), lookup("sa").settings(node)
    x = random_sequences(2, 70)
    y = block(x, prefix_mask([70, 66], 70) if masked else None)
    for row, out, length in zip(x, y, [70, 66 if masked else 70], strict=True):
        expected = attention_references.sa(block, row[:length], causal=causal, **settings)
        torch.testing.assert_close(out[:length], expected, rtol=1e-10, atol=1e-10)


def test_a_block_without_a_reference_is_reported_with_how_to_write_one(golden):
    with golden.raises(AssertionError):
        find_reference("unheard_of")


def test_a_block_has_one_reference():
    with pytest.raises(ValueError) as caught:
        register_reference("sa")(slow_hardsig)
    assert re.fullmatch(
        r"the reference of block 'sa' is already \S*\.attention\.sa, got \S*\.common\.hardsig",
        str(caught.value),
    )


def test_the_hard_sigmoid_equals_its_reference_and_saturates():
    x = torch.linspace(-6, 6, 49, dtype=torch.float64)
    torch.testing.assert_close(saturating_sigmoid(x), slow_hardsig(x))
    assert saturating_sigmoid(x)[0] == 0
    assert saturating_sigmoid(x)[-1] == 1


@pytest.mark.parametrize("width", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("length", [1, 5])
def test_the_timing_signal_equals_its_reference(length, width):
    signal = sinusoidal_encoding(length, width, like=torch.zeros((), dtype=torch.float64))
    torch.testing.assert_close(signal, timing(length, width))
