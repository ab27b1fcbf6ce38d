"""Checks of a block that need a compiler or a GPU; the conformance suite is for any machine."""

import math
from functools import partial

import torch
from torch.testing import assert_close

from activemem.blocks.testing.fixtures import (
    is_pool,
    make_block,
    parse_block,
    prefix_mask,
    random_sequences,
    valid_outputs,
)

LENGTHS = (8, 1, 3, 7)


def with_gradient(block, x):
    x = x.clone().requires_grad_()
    y = block(x)
    (gradient,) = torch.autograd.grad(y.float().sum(), x)
    return y.detach(), gradient


def compiled_is_the_same(text, *, causal):
    """Check that the compiled block gives the same outputs without graph breaks."""
    block = make_block(parse_block(text), causal=causal, dtype=torch.float32)
    x, mask = random_sequences(4, 8, dtype=torch.float32), prefix_mask(LENGTHS, 8)
    torch.compiler.reset()  # else programs compiled for earlier blocks would count
    compiled = torch.compile(block, fullgraph=True)
    found, expected = (valid_outputs(each(x, mask), mask) for each in (compiled, block))
    assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert math.isfinite(compiled(x).square().sum().item()), "expected finite numbers"


def gpu_gives_the_same(text, *, causal):
    """Check that a GPU gives the same outputs, gradients and steps as the CPU."""
    node, x, mask = parse_block(text), random_sequences(4, 8), prefix_mask(LENGTHS, 8)
    here, there = make_block(node, causal=causal), make_block(node, causal=causal).cuda()

    def valid(block, x, mask):
        return block(x) if mask is None else valid_outputs(block(x, mask), mask)

    for given in (None, mask):
        expected = with_gradient(partial(valid, here, mask=given), x)
        found = with_gradient(partial(valid, there, mask=None if given is None else given.cuda()), x.cuda())
        for one, other in zip(found, expected, strict=True):
            assert_close(one.cpu(), other, rtol=1e-9, atol=1e-9)
    if causal and not is_pool(text):
        y, state = there.step_with_grad(x[:, :5].cuda(), None)
        z, _ = there.step_with_grad(x[:, 5:].cuda(), state)
        assert_close(torch.cat([y, z], 1).cpu(), here(x), rtol=1e-9, atol=1e-9)
