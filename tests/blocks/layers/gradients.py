"""Comparison of a block with its reference on a long sequence, with gradients."""

import torch
from torch.testing import assert_close

from activemem.blocks.testing.fixtures import make_block, parse_block, random_sequences
from activemem.blocks.testing.references import apply_reference


def assert_outputs_and_gradients_are_those_of_the_reference(text, length):
    """To 1e-10 of the largest number, if above one, at the input and at every weight."""
    node = parse_block(text)
    block, x = make_block(node, causal=True), random_sequences(1, length)
    found, expected = [], []
    for into, run in (
        (found, lambda x: block(x)[0]),
        (expected, lambda x: apply_reference(node, block, x[0], causal=True)),
    ):
        row = x.clone().requires_grad_()
        y = run(row)
        into += [y, *torch.autograd.grad((y * y.detach().cos()).sum(), [row, *block.parameters()])]
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-10 * max(1.0, float(other.detach().abs().max())))
