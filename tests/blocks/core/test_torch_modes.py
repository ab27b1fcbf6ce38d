"""Custom autograd functions under torch.compile, and forward derivatives through fast paths."""

from __future__ import annotations

import pytest
import torch

from activemem.blocks.testing.fixtures import make_block, parse_block, random_sequences


@pytest.mark.heavy  # loads torch's compiler
@pytest.mark.filterwarnings("ignore:.*autograd.function.Function:DeprecationWarning")  # of tracing a scan
@pytest.mark.parametrize("text", ["mamba", "min_gru", "ssd(heads=4)"])
def test_a_compiled_block_is_one_graph(text: str) -> None:
    block = make_block(parse_block(text), causal=False, width=8, dtype=torch.float32)
    x = random_sequences(2, 6, width=8, dtype=torch.float32).requires_grad_()
    torch.compiler.reset()
    found = torch.compile(block, backend="eager", fullgraph=True)(x)
    torch.testing.assert_close(*(torch.autograd.grad(each.sum(), x) for each in (found, block(x))))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("text", ["mamba", "min_gru", "sa(heads=2)", "sa(heads=2, pos=t5)", "conv(k=20)"])
def test_forward_derivatives_through_fast_paths_are_those_of_gradients(text: str) -> None:
    # 60 positions of width 64 are enough for Fourier transforms, and for a scan in several pieces
    block = make_block(parse_block(text), causal=False, width=64)
    x, change = (random_sequences(4, 60, width=64, seed=seed) for seed in (1, 2))
    _, found = torch.func.jvp(block, (x,), (change,))
    direction = random_sequences(4, 60, width=64, seed=3)
    (gradient,) = torch.autograd.grad(block(x.requires_grad_()), x, direction)
    torch.testing.assert_close((found * direction).sum(), (gradient * change).sum(), rtol=1e-9, atol=1e-9)
