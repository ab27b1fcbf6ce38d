"""Time and saved memory of the mixers relative to `sa`, on one CPU thread.

The script prints the table of docs/reference/blocks.md.

python bench/mixers.py [--write] [ROUNDS] # --write: into docs/reference/blocks.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torch
from clock import CPU, make_clock

from activemem.blocks.core.block import Block, Context, build_block
from activemem.blocks.core.initialisation import initialise
from activemem.grammar import configure, lookup, nodes, parse
from activemem.grammar.analysis.analyse import block_memory

MIXERS = (
    "sa",
    "sa(kv_heads=1)",
    "sa(pos=rope, qk_norm=rms)",
    "sa(span=64)",
    "sa(span=64, pos=rope, kv_heads=1)",
    "fox",
    "diff_attn(heads=2)",
    "latent_attn(latent=32, rope_width=8)",
    "conv(k=4)",
    "base_conv",
    "base_conv(k=1024, filter=implicit)",
    "hyena(channels=64)",
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
    "ttt",
    "mlstm",
    "slstm",
    "min_gru(channels=64)",
    "rg_lru",
    "mamba(channels=64)",
)
WIDTH, HEADS, HEAD_WIDTH, LENGTHS, TOKENS = 64, 4, 16, (64, 256, 1024), 8192
"""The model width, heads, sequence lengths, and the number of tokens in a batch."""

DOCUMENT = Path(__file__).parents[1] / "docs" / "reference" / "blocks.md"
MARK = re.compile(r"(<!-- measured: python bench/mixers.py --write -->\n).*?(<!-- end -->)", re.DOTALL)

CONFIG = configure(d_model=WIDTH, causal=True)
NOW = make_clock(CPU)


def parse_mixer(text: str) -> nodes.BlockNode:
    """Return the block; one with heads gets the number and width of heads of this comparison."""
    block = parse(text).root
    assert isinstance(block, nodes.BlockNode), text
    spec = lookup(block.name)
    if spec is None or spec.parameter("heads") is None:
        return block
    given = {"heads": HEADS, "head_width": HEAD_WIDTH} | dict(block.arguments)
    return nodes.BlockNode(block.name, tuple(given.items()))


def step_s(block: Block, x: torch.Tensor) -> float:
    """Return the CPU time of one forward and backward pass."""
    begin = NOW()
    block(x).sum().backward()
    return NOW() - begin


def saved_numbers(node: nodes.BlockNode, length: int) -> int:
    """Return how many numbers training saves for the backward pass of a sequence."""
    return block_memory(node, CONFIG, length=length) // 4


def compare(length: int, rounds: int) -> list[tuple[float, float]]:
    """Return time and saved numbers of each mixer relative to the first, as medians over rounds.

    Every round times all mixers in turn, so that disturbances affect all alike.
    """
    parsed = [parse_mixer(text) for text in MIXERS]
    blocks = [build_block(node, Context(config=CONFIG)) for node in parsed]
    x = torch.randn(TOKENS // length, length, WIDTH, requires_grad=True)
    for block in blocks:
        initialise(block, None)
        step_s(block, x)
    times = torch.tensor([[step_s(block, x) for block in blocks] for _ in range(rounds)])
    ratios = (times / times[:, :1]).median(0).values
    saved = [saved_numbers(node, length) for node in parsed]
    return [(float(ratio), each / saved[0]) for ratio, each in zip(ratios, saved, strict=True)]


def table(rounds: int) -> str:
    """Return all mixers at all lengths as a Markdown table."""
    found = [compare(length, rounds) for length in LENGTHS]
    heads = [f"{what}, L {length:,}" for length in LENGTHS for what in ("time", "memory")]
    lines = [f"| block | {' | '.join(heads)} |", f"| :-- | {' | '.join('--:' for _ in heads)} |"]
    for place, text in enumerate(MIXERS):
        ratios = " | ".join(f"{each:.2f}" for row in found for each in row[place])
        lines.append(f"| `{text}` | {ratios} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table or write it into the document, with an optional number of rounds."""
    torch.set_num_threads(1)
    arguments = [each for each in sys.argv[1:] if each != "--write"]
    found = table(int(arguments[0]) if arguments else 9)
    if "--write" not in sys.argv:
        print(found)
        return
    text = DOCUMENT.read_text(encoding="utf-8")
    text, count = MARK.subn(lambda mark: f"{mark[1]}\n{found}\n\n{mark[2]}", text)
    if count != 1:
        sys.exit(f"expected one mark 'measured' in {DOCUMENT}, got {count}")
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
