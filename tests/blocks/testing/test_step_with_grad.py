"""A causal block that goes on from what it has kept gives what it gives for the whole sequence."""

import pytest
import torch
from torch.testing import assert_close

from activemem.blocks.testing.conformance import parse_block
from activemem.blocks.testing.fixtures import make_block, random_sequences
from activemem.grammar import render

from ..example_blocks import SEQUENCE_BLOCKS, example_block

WINDOWS = ["sa(heads=2, head_width=3, span=3)", "all_attn(N=3, span=4, heads=2, head_width=3)"]
BLOCKS = [*(render(example_block(name)) for name in SEQUENCE_BLOCKS), *WINDOWS]


@pytest.mark.parametrize("pieces", [[1] * 9, [4, 1, 3, 1], [2, 7]], ids=str)
@pytest.mark.parametrize("text", BLOCKS)
def test_a_sequence_in_pieces_is_the_sequence_at_once_and_so_are_its_gradients(text, pieces):
    block, x = make_block(parse_block(text), causal=True), random_sequences(3, 9).requires_grad_()
    kept, outputs = None, []
    for piece in x.split(pieces, 1):
        y, kept = block.step_with_grad(piece, kept)
        assert kept is None or len(kept) == 3
        outputs.append(y)
    resumed, whole = torch.cat(outputs, 1), block(x)
    assert_close(resumed, whole)
    assert_close(*(torch.autograd.grad(y[:, -1].sum(), x)[0] for y in (resumed, whole)))
