"""Whether a recipe of a causal task sees the future: each of its blocks is built, and its future changed."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from ..blocks.examples import made, sequences
from ..errors import ActivememError
from ..grammar import parse, render
from ..grammar.nodes import Block, walk
from ..studies.settings import Settings
from ..studies.tasks import Kind, require_task

LENGTH = 12


class LeakError(ActivememError):
    """A causal task would be given a model that sees later tokens; the message has every block that does."""


def check_leaks(asked: Iterable[Settings]) -> None:
    """Raise LeakError if any of the causal trials has a block whose outputs move with later inputs.

    Sums and series of causal blocks are causal, and so are their copies; so each block is tried by itself.
    """
    recipes = dict.fromkeys(
        settings.model.recipe for settings in asked if require_task(settings.task.name).kind is Kind.LANGUAGE
    )
    blocks = dict.fromkeys(
        block for recipe in recipes for block in walk(parse(recipe).root) if isinstance(block, Block)
    )
    if faults := [f"  {render(block)} sees later tokens" for block in blocks if leaks(block)]:
        raise LeakError("\n".join(["a causal task cannot have these blocks, whatever they state", *faults]))


@torch.no_grad()
def leaks(block: Block) -> bool:
    """Whether in a causal model a later input moves an earlier output of the block, in double precision."""
    module, x = made(block, causal=True), sequences(1, LENGTH)
    # one row for each place that is changed, and the sequence itself in front
    changed = x.repeat(LENGTH + 1, 1, 1)
    places = torch.arange(LENGTH)
    changed[places + 1, places] += 1.0
    y = module(changed)
    moved = (y[1:] != y[0]).any(-1)  # (place that is changed, position)
    return bool(moved.tril(-1).any())
