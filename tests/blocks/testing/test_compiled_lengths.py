"""The blocks that torch compiles separately for each length are those with such a specification."""

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from activemem.blocks.testing import example_block, make_block, parse_block, random_sequences
from activemem.grammar import render
from activemem.grammar.vocabulary import spec_of

from ..example_blocks import SEQUENCE_BLOCKS

LENGTHS = (3, 7, 12, 5, 9, 10)
TEXTS = [
    *(render(example_block(name)) for name in SEQUENCE_BLOCKS if name != "ttt"),
    "sa(heads=2)",
    "sa(heads=2, pos=rope)",
    "sa(heads=2, pos=alibi)",
    "sa(heads=2, pos=t5)",
    "sa(heads=2, logit_cap=10)",
    "sa(heads=2, pos=relative, span=8)",
    "ttt(heads=2, head_width=4)",
    "base_conv(k=4, filter=implicit)",
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # which dynamo looks at
@pytest.mark.filterwarnings("ignore:.*autograd.function.Function:DeprecationWarning")  # of tracing a scan
@pytest.mark.parametrize("text", TEXTS)
@torch._dynamo.config.patch(recompile_limit=1000)
def test_blocks_are_compiled_for_each_length_or_for_most_as_they_say(text):
    node, counted = parse_block(text), CompileCounter()
    spec = spec_of(node.name)
    says = spec.compiled_for_each_length
    torch.compiler.reset()
    compiled = torch.compile(make_block(node, causal=False, dtype=torch.float32).train(), backend=counted)
    programs = []
    for length in LENGTHS:
        x = random_sequences(4, length, dtype=torch.float32).requires_grad_()
        compiled(x).sum().backward()
        programs.append(counted.frame_count)
    if says is not None and says(spec.settings(node)):
        assert programs == sorted(set(programs))
    else:
        assert programs[1:] == [programs[1]] * (len(LENGTHS) - 1)
