"""Short convolutions and gates of heads: first and second derivatives."""

import pytest
import torch
from torch.func import functional_call

from activemem.blocks.layers.head_parts import GATES, HeadNorm, ShortConvolution, gate_heads
from activemem.blocks.testing.fixtures import make_generator


def draw(*shape):
    numbers = torch.randn(*shape, generator=make_generator(len(shape)), dtype=torch.float64)
    return numbers.requires_grad_()


def assert_both_gradients(function, *given):
    assert torch.autograd.gradcheck(function, given, fast_mode=True)
    assert torch.autograd.gradgradcheck(function, given, fast_mode=True)


@pytest.mark.parametrize("active", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_short_convolution_has_its_gradients_whatever_is_past(length, active):
    convolution, x, weight = ShortConvolution(3, 4, active=active), draw(2, length, 3), draw(4, 3)

    def convolve(x, weight, past=None):
        return functional_call(convolution, {"weight": weight}, (x, past))

    assert_both_gradients(convolve, x, weight)
    assert_both_gradients(convolve, x, weight, draw(2, 3, 3) * 0.5)


@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_short_convolution_in_two_pieces_is_that_of_the_whole(length):
    convolution, x = ShortConvolution(3, 4).double(), draw(2, length + 3, 3)
    convolution.initialise(make_generator(0))
    y, past = convolution(x[:, :length], None)
    z, last = convolution(x[:, length:], past)
    whole, end = convolution(x, None)
    torch.testing.assert_close(torch.cat([y, z], 1), whole, rtol=1e-14, atol=1e-14)
    assert last.equal(end)
    assert past.shape == end.shape == (2, 3, 3)


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("kind", GATES)
def test_gated_heads_are_those_of_norm_and_gate_with_their_gradients(kind, normed):
    norm, y, gate, weight = HeadNorm(5), draw(2, 3, 2, 5), draw(2, 3, 10), draw(5)

    def gated(y, gate, weight):
        norm.weight = weight
        return gate_heads(y, norm if normed else None, gate, kind)

    norm.weight = torch.nn.Parameter(weight.detach())
    expected = (norm(y) if normed else y).flatten(2) * GATES[kind](gate)
    del norm.weight
    torch.testing.assert_close(gated(y, gate, weight), expected, rtol=1e-12, atol=1e-12)
    assert_both_gradients(gated, y, gate, weight)
