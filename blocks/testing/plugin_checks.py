"""Checks of a plug-in's block, norm or positions before a training: what it sees, and what trains it.

Built-in ones are covered by tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ...grammar.canonical import render
from ...grammar.model_config import configure
from ...grammar.nodes import BlockNode
from ...grammar.norms import NORMS
from ...grammar.positions import POSITIONS
from ...grammar.vocabulary.spec import CostContext, Reach, Role, block_code, spec_of
from ...plugins import OWN, PluginError, Registry
from ..core.block import Block
from ..core.plugin_parts import ReusedModuleError
from .fixtures import WIDTH, idle_parameters, make_block, random_sequences, reach_words, seeded
from .frame_conformance import (
    ConformanceError,
    norm_keeps_shapes,
    norm_sees_one_vector,
    positions_are_vectors,
    vectors_depend_on_positions_alone,
)

ROUNDING = 1e-9
"""The largest relative change of outputs that counts as rounding in double precision."""

LENGTH, MAX_LENGTH = 40, 128
"""The length of the sequence on which a reach is checked, and its maximum for a block that states a long
reach."""


def check_plugin_block(
    node: BlockNode, *, causal: bool, width: int = WIDTH, has_padding: bool = False
) -> bool:
    """Raise PluginError with the faults of a plug-in's block. Return whether it could be checked.

    Its output must have the shape of its input, and finite numbers. In evaluation and in training mode, it
    must see no more positions than its specification states, and none later in a causal model. It must keep
    no state between batches, and process each sequence of a batch independently. All of its parameters must
    be used. If batches have padding, its content must not change an output. A block is not checked if it
    cannot run on the CPU in double precision, or has random outputs in evaluation mode.
    """
    spec, code = spec_of(node.name), block_code(node.name)
    if code is None:
        return False
    context = CostContext(config=configure(d_model=width, causal=causal), length=LENGTH)
    stated = spec.reach(spec.settings(node), context)
    sides = [side for side in (stated.left, stated.right) if math.isfinite(side)]
    # longer than the stated reach, so that a greater reach shows
    length = min(max(LENGTH, int(sum(sides)) + 9), MAX_LENGTH)
    try:
        make_block(node, causal=causal, width=width)
        block = make_block(node, causal=causal, width=width)  # refused if it reuses the first one's weights
        x = random_sequences(2, length, width=width)
        shape = tuple(block(x).shape)
        if spec.role is not Role.POOL and shape != x.shape:
            faults = [f"gives an output of shape {shape}: expected {tuple(x.shape)}, like the input"]
        elif not block(x).isfinite().all():
            faults = ["gives outputs that are NaN or infinite for random inputs, before any training"]
        elif (fault := _state_fault(block, x)) is None:
            if not torch.equal(block(x), block(x)):
                return False
            sees = None if spec.role is Role.POOL else partial(_reach_faults, stated=stated, causal=causal)
            faults = [*_batch_faults(block, x), *_gradient_faults(block, x)]
            faults += sees(_moved_outputs(block, x[:1])) if sees else []
            faults += _padding_faults(block, x) if has_padding else []
            faults = faults or list(_training_faults(block.train(), x, sees))
        else:
            faults = [fault]
    except ReusedModuleError:
        raise
    except Exception:  # noqa: BLE001 -- it may need a GPU; training reports its own error
        return False
    if faults:
        owner = code.rpartition(" ")[0]
        raise PluginError("\n".join(f"{owner}: {render(node)} {each}" for each in faults))
    return True


def check_plugin_norm(name: str, *, width: int) -> None:
    """Raise PluginError with the fault of a plug-in's norm.

    It must map each vector independently to a finite vector of equal width, and keep no state. A norm that
    cannot run on the CPU is not checked.
    """
    _check_plugin(NORMS, name, width, (norm_keeps_shapes, norm_sees_one_vector))


def check_plugin_position(name: str, *, width: int) -> None:
    """Raise PluginError with the fault of a plug-in's positions.

    Each position must have a finite vector of the model's width, which depends on nothing but the position.
    Positions that cannot be computed on the CPU are not checked.
    """
    _check_plugin(POSITIONS, name, width, (positions_are_vectors, vectors_depend_on_positions_alone))


def _check_plugin(
    registry: Registry[Any], name: str, width: int, checks: Sequence[Callable[[str, int], None]]
) -> None:
    if registry.owner(name) == OWN:
        return
    try:
        with torch.random.fork_rng(devices=[]):
            for check in checks:
                check(name, width)
    except ReusedModuleError:
        raise
    except ConformanceError as error:
        raise PluginError(f"{registry.owner(name)}: {registry.kind} '{name}': {error}") from error
    except Exception:  # noqa: BLE001 -- it may need a GPU; training reports its own error
        return


def _state_fault(block: Block, x: Tensor) -> str | None:
    if torch.allclose(seeded(block, x), seeded(block, x), rtol=0.0, atol=0.0, equal_nan=True):
        return None
    return (
        "gives other outputs when it is called again with the same input: it must keep no state, and draw "
        "random numbers only from torch's global generator"
    )


def _batch_faults(block: Block, x: Tensor) -> Iterator[str]:
    if (together := block(x)[:1]).isfinite().all() and _differ(together, block(x[:1])).any():
        yield "gives a sequence other outputs in a batch than alone: it must not mix the sequences of a batch"


def _training_faults(
    block: Block, x: Tensor, sees: Callable[[Tensor], Iterator[str]] | None
) -> Iterator[str]:
    is_random = not torch.equal(block(x), block(x))

    def one_by_one(rows: Tensor) -> Tensor:  # dropout draws the same for each row
        return torch.cat([seeded(block, row) for row in rows.split(1)])

    if (fault := _state_fault(block, x)) is not None:
        faults = [fault]
    else:
        faults = [] if is_random else list(_batch_faults(block, x))
        if sees and not faults:
            faults += sees(_moved_outputs(one_by_one if is_random else block, x[:1, :LENGTH]))
    yield from (f"in training mode {each}" for each in faults)


@torch.no_grad()
def _padding_faults(block: Block, x: Tensor) -> Iterator[str]:
    valid = x.shape[1] // 2
    mask = (torch.arange(x.shape[1]) < valid).expand(x.shape[:2])
    filled = torch.where(mask.unsqueeze(-1), x, x.flip(0) + 1.0)
    y, other = (block(each, mask) for each in (x, filled))
    y, other = (each[:, :valid] if each.dim() > 2 else each for each in (y, other))  # a pool gives vectors
    if y.isfinite().all() and _differ(y, other).any():
        yield (
            "gives other outputs if the padding has another content: it must not see positions where `mask` "
            "is false, for example by x = x.masked_fill(~mask.unsqueeze(-1), 0.0)"
        )


def _gradient_faults(block: Block, x: Tensor) -> Iterator[str]:
    if idle := ", ".join(idle_parameters(block, x)):
        yield (
            f"has parameters that get no gradient: {idle}. Use them, or make them buffers (register_buffer) "
            "if they are not to be trained"
        )


def _reach_faults(moved: Tensor, stated: Reach, *, causal: bool) -> Iterator[str]:
    inputs, outputs = moved.nonzero(as_tuple=True)
    if not len(inputs):
        return
    distances = outputs - inputs
    left, right = max(0, int(distances.max())), max(0, int(-distances.min()))
    found = f"sees {reach_words(left, right, len(moved))}"
    if causal and right > 0:
        yield f"{found}, but a causal model must not see later tokens"
    elif left > stated.left or right > stated.right:
        yield f"{found}, but its stated reach is {reach_words(stated.left, stated.right)}"


@torch.no_grad()
def _moved_outputs(block: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return which outputs change when one input of x (1, length, width) does, as (inputs, outputs).

    Changes must exceed rounding, which may differ between the rows of a batch.
    """
    length = x.shape[1]
    # the sequence, then one copy for each changed position
    changed = x.repeat(length + 1, 1, 1)
    places = torch.arange(length)
    changed[places + 1, places] += 1.0
    y = block(changed)
    return _differ(y[1:], y[0])


def _differ(y: Tensor, other: Tensor) -> Tensor:
    return ~((y - other).abs().amax(-1) <= ROUNDING * other.abs().max().clamp(min=1.0))
