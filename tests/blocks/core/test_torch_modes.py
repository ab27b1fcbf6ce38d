"""Custom autograd functions under torch.compile."""

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
