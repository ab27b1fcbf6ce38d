"""Check of a plug-in block's stated reach against its module."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..grammar.canonical import render
from ..grammar.model_config import ModelConfig
from ..grammar.nodes import BlockNode
from ..grammar.vocabulary.spec import CostContext, Reach, Role, block_code, spec_of
from ..plugins import PluginError
from .core.block import Block
from .testing.fixtures import WIDTH, make_block, random_sequences

ROUNDING = 1e-9
"""The largest relative change of outputs that counts as rounding in double precision."""

LENGTH, MAX_LENGTH = 40, 128
"""The sequence length for trying a block, and the maximum for a long stated reach."""


@torch.no_grad()
def moved_outputs(block: Block, *, length: int = LENGTH, width: int = WIDTH) -> Tensor:
    """Return which outputs of a block in double precision change with which input, (inputs, outputs).

    Changes must exceed rounding: products may differ in another row of a batch.
    """
    x = random_sequences(1, length, width=width)
    # one row for each place that is changed, and the sequence itself in front
    changed = x.repeat(length + 1, 1, 1)
    places = torch.arange(length)
    changed[places + 1, places] += 1.0
    y = block(changed)
    distance = (y[1:] - y[0]).abs().amax(-1)
    return ~(distance <= ROUNDING * y[0].abs().max().clamp(min=1.0))


@torch.no_grad()
def check_reach(node: BlockNode, *, causal: bool, width: int = WIDTH) -> None:
    """Raise PluginError if a plug-in's block exceeds its stated reach, or sees later inputs if causal.

    Built-in blocks are covered by tests. Pools have no reach. A block is not checked if it cannot run on the
    CPU in double precision, or has random outputs.
    """
    spec, code = spec_of(node.name), block_code(node.name)
    if code is None or spec.role is Role.POOL:
        return
    context = CostContext(config=ModelConfig(d_model=width, causal=causal), length=LENGTH)
    stated = spec.reach(spec.settings(node), context)
    sides = [side for side in (stated.left, stated.right) if math.isfinite(side)]
    length = min(max(LENGTH, int(sum(sides)) + 9), MAX_LENGTH)
    try:
        block = make_block(node, causal=causal, width=width)
        x = random_sequences(1, length, width=width)
        if not torch.equal(block(x), block(x)):
            return
        moved = moved_outputs(block, length=length, width=width)
    except Exception:  # noqa: BLE001 -- it may need a GPU; where it is trained, it says itself what it lacks
        return
    inputs, outputs = moved.nonzero(as_tuple=True)
    if not len(inputs):
        return
    distances = outputs - inputs
    found = Reach(left=max(0, int(distances.max())), right=max(0, int(-distances.min())))
    is_leak = causal and found.right > 0
    if is_leak or found.left > stated.left or found.right > stated.right:
        what = "in a causal model, which has none to the right" if is_leak else f"but states {_words(stated)}"
        owner = code.rpartition(" ")[0]
        raise PluginError(f"{owner}: {render(node)} sees {_words(found)}, {what}")


def _words(reach: Reach) -> str:
    left, right = ("all" if math.isinf(side) else f"{side:g}" for side in (reach.left, reach.right))
    return f"{left} to the left and {right} to the right"
