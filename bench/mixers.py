"""Time and saved memory of the mixers beside those of `sa`, on one CPU thread: the table of docs/blocks.md.

Run: python bench/mixers.py
"""

from __future__ import annotations

import sys
import time

import torch

from activemem.blocks.core.block import Block, Context, build_block
from activemem.blocks.core.initialisation import initialise
from activemem.grammar import CostContext, ModelConfig, lookup, nodes, parse

MIXERS = (
    "sa",
    "fox",
    "lstm",
    "linear_attn",
    "retention",
    "gla",
    "ssd(state=16)",
    "delta",
    "delta(gate=true)",
    "delta(gate=true, short_conv=4, output_gate=silu)",
    "delta_product(n=2)",
    "kda",
    "rwkv7",
    "mlstm",
    "slstm",
    "min_gru(channels=64)",
    "rg_lru",
    "mamba(channels=64)",
    "sa(kv_heads=1)",
    "sa(pos=rope, qk_norm=rms)",
)
WIDTH, HEADS, HEAD_WIDTH, LENGTHS, TOKENS = 64, 4, 16, (64, 256, 1024), 8192
"""The width of the model, its heads, and how many tokens a batch has."""

CONFIG = ModelConfig(d_model=WIDTH, causal=True)


def parse_mixer(text: str) -> nodes.BlockNode:
    """The block with the heads of the comparison, if it has any."""
    block = parse(text).root
    assert isinstance(block, nodes.BlockNode), text
    spec = lookup(block.name)
    if spec is None or spec.parameter("heads") is None:
        return block
    return nodes.BlockNode(block.name, (("heads", HEADS), ("head_width", HEAD_WIDTH), *block.arguments))


def step_s(block: Block, x: torch.Tensor) -> float:
    """The wall time of one forward and backward pass."""
    begin = time.perf_counter()
    block(x).sum().backward()
    return time.perf_counter() - begin


def compare(length: int, rounds: int) -> list[tuple[float, float]]:
    """Time and saved numbers of each mixer as multiples of those of the first, by the median over rounds.

    Every round times all mixers in turn, so that what else the machine does meets all alike.
    """
    parsed = [parse_mixer(text) for text in MIXERS]
    blocks = [build_block(node, Context(config=CONFIG)) for node in parsed]
    x = torch.randn(TOKENS // length, length, WIDTH, requires_grad=True)
    for block in blocks:
        initialise(block, None)
        step_s(block, x)
    times = torch.tensor([[step_s(block, x) for block in blocks] for _ in range(rounds)])
    ratios = (times / times[:, :1]).median(0).values
    saved: list[int] = []
    for node in parsed:
        spec = lookup(node.name)
        assert spec is not None
        saved.append(spec.cost(spec.settings(node), CostContext(config=CONFIG, length=length)).saved)
    return [(float(ratio), each / saved[0]) for ratio, each in zip(ratios, saved, strict=True)]


def main() -> None:
    """The table, in Markdown; a number of rounds may be given."""
    torch.set_num_threads(1)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    found = [compare(length, rounds) for length in LENGTHS]
    heads = [f"{what}, L {length:,}" for length in LENGTHS for what in ("time", "memory")]
    print("| block |", " | ".join(heads), "|")
    print("| :-- |", " | ".join("--:" for _ in heads), "|")
    for place, text in enumerate(MIXERS):
        print(f"| `{text}` |", " | ".join(f"{each:.2f}" for row in found for each in row[place]), "|")


if __name__ == "__main__":
    main()
