"""Linear maps inside `torch.vmap`, where the bias is added to the product in place."""

import torch
from torch.nn import functional

from activemem.blocks.core import linear


def test_mapped_outputs_and_gradients_are_those_of_torch():
    draw = torch.Generator().manual_seed(0)
    shapes = ((3, 8, 5), (3, 7, 5), (3, 7))
    given = [torch.randn(shape, generator=draw, requires_grad=True) for shape in shapes]
    mapped = torch.vmap(linear)(*given)
    single = torch.stack([functional.linear(*each) for each in zip(*given, strict=True)])
    torch.testing.assert_close(mapped, single)
    towards = torch.randn(mapped.shape, generator=draw)
    for found, expected in zip(
        torch.autograd.grad(mapped, given, towards), torch.autograd.grad(single, given, towards), strict=True
    ):
        torch.testing.assert_close(found, expected)
