"""The relative memory of mixers in docs/reference/blocks.md equals that of the analysis."""

import re
from pathlib import Path

import pytest

from activemem.grammar import configure, lookup, nodes, parse
from activemem.grammar.analysis.analyse import block_memory

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "blocks.md"
LENGTHS = (64, 256, 1024)


def saved(text, length):
    """Return the saved bytes of a sequence, with four heads of width 16 if the block has heads."""
    block = parse(text).root
    if lookup(block.name).parameter("heads") is not None:
        arguments = {"heads": 4, "head_width": 16} | dict(block.arguments)
        block = nodes.BlockNode(block.name, tuple(arguments.items()))
    config = configure(d_model=64, causal=True)
    return block_memory(block, config, length=length)


@pytest.mark.heavy
def test_the_memory_relative_to_attention_is_that_of_the_analysis():
    _, measured = PAGE.read_text(encoding="utf-8").split("<!-- measured: python bench/mixers.py --write -->")
    rows = re.findall(r"^\| `(.+?)` \| (.+) \|$", measured.split("<!-- end -->")[0], re.MULTILINE)
    assert len(rows) > 20
    for text, cells in rows:
        told = cells.split(" | ")[1::2]
        assert told == [f"{saved(text, each) / saved('sa', each):.2f}" for each in LENGTHS], text
