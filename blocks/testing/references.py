"""Slow reference implementations of blocks, which follow their equations directly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from ...grammar import Role, configure, lookup, nodes
from ...grammar.vocabulary.spec import CostContext, spec_of
from .fixtures import (
    WIDTH,
    assert_close,
    make_block,
    parse_block,
    prefix_mask,
    random_sequences,
    valid_outputs,
)

Reference = Callable[..., Tensor]
"""`reference(block, x, *, causal, **settings)`: the outputs (length, width) of one sequence (length, width).

The settings are the block's parameters by name, defaults filled in. A pool's reference gives (width,). For a
transducer it is `reference(transducer, source, target, **settings)`, the outputs (m, outputs) of a source
(n, width) and a target (m, width).
"""

ReferenceT = TypeVar("ReferenceT", bound=Reference)

_references: dict[str, Reference] = {}


def register_reference(name: str) -> Callable[[ReferenceT], ReferenceT]:
    """Return a decorator that registers a block's reference; raise ValueError if there is one already."""

    def register(reference: ReferenceT) -> ReferenceT:
        taken = _references.get(name)
        if taken is not None:
            has = f"the reference of block '{name}' is already {taken.__module__}.{taken.__qualname__}"
            raise ValueError(f"{has}, got {reference.__module__}.{reference.__qualname__}")
        _references[name] = reference
        return reference

    return register


def has_reference(name: str) -> bool:
    """Return whether a block has a reference."""
    return name in _references


def find_reference(name: str) -> Reference:
    """Return the reference of a block; raise AssertionError with instructions if there is none."""
    assert name in _references, (
        f"block '{name}' has no reference: write its equation as plain loops over one sequence, "
        f"reference({_arguments(name)}, **settings), and decorate it with @register_reference('{name}') "
        "of activemem.blocks.testing.references"
    )
    return _references[name]


def apply_reference(node: nodes.BlockNode, *arguments: nn.Module | Tensor, **keywords: bool) -> Tensor:
    """Run a block's reference with the settings of `node`, and return its outputs.

    `arguments` are the block's module and one sequence, or a transducer's module, a source and a target.
    """
    reference = find_reference(node.name)
    return reference(*arguments, **keywords, **spec_of(node.name).settings(node))


def outputs_equal_the_reference(text: str, *, causal: bool) -> None:
    """Check that the outputs of whole and padded batches equal the reference."""
    node = parse_block(text)
    block = make_block(node, causal=causal)
    for lengths in ((1, 1), (2, 2), (9, 9), (9, 1, 2, 4, 8)):
        x = random_sequences(len(lengths), max(lengths))
        mask = None if len(set(lengths)) == 1 else prefix_mask(lengths, max(lengths))
        with torch.no_grad():
            for row, y, length in zip(x, block(x, mask), lengths, strict=True):
                expected = apply_reference(node, block, row[:length], causal=causal)
                assert_close(valid_outputs(y, length), expected, rtol=1e-10, atol=1e-10)


GRADIENT_LENGTHS = (1, 2, 9, 33, 130)
"""The lengths at which gradients are compared with those of a reference."""

ALL_LENGTHS_TO, LONGER_LENGTHS = 130, (160, 257)
"""Outputs are compared with a reference at each length up to the first, and at these longer lengths.

The first is longer than two chunks of any block, the last than two pieces of window attention.
"""


def outputs_equal_the_reference_at_lengths(text: str, *, causal: bool) -> float:
    """Compare outputs with the reference at many lengths.

    The lengths are those up to ALL_LENGTHS_TO, and LONGER_LENGTHS. Return the largest difference. The
    reference of a block that sees no later input is run once, on the longest sequence, for all lengths. The
    outputs of other blocks are compared at a few lengths.
    """
    node, longest_length = parse_block(text), LONGER_LENGTHS[-1]
    block, spec = make_block(node, causal=causal), spec_of(node.name)
    context = CostContext(config=configure(d_model=WIDTH, causal=causal), length=longest_length)
    x, most = random_sequences(1, longest_length), 0.0
    hides_later = spec.role is not Role.POOL and spec.reach(spec.settings(node), context).right == 0
    shorter = range(1, ALL_LENGTHS_TO + 1) if hides_later else (*GRADIENT_LENGTHS, 17, 64, 65)
    lengths = (*shorter, *LONGER_LENGTHS)
    with torch.no_grad():
        longest = apply_reference(node, block, x[0], causal=causal) if hides_later else None
        for length in lengths:
            expected = (
                apply_reference(node, block, x[0, :length], causal=causal)
                if longest is None
                else longest[:length]
            )
            most = max(most, _assert_near(block(x[:, :length])[0], expected))
    return most


def outputs_and_gradients_equal_the_reference(text: str, length: int, *, causal: bool = True) -> float:
    """Compare outputs and all gradients with the reference. Return the largest difference."""
    node = parse_block(text)
    block, x = make_block(node, causal=causal), random_sequences(1, length)
    results: list[list[Tensor]] = []
    runs: tuple[Callable[[Tensor], Tensor], ...] = (
        lambda x: block(x)[0],
        lambda x: apply_reference(node, block, x[0], causal=causal),
    )
    for run in runs:
        row = x.clone().requires_grad_()
        y = run(row)
        loss = (y * y.detach().cos()).sum()
        gradients = torch.autograd.grad(loss, [row, *block.parameters()], allow_unused=True)
        results.append([y, *gradients])  # pyright: ignore[reportArgumentType] -- None for an unused weight
    pairs = [pair for pair in zip(*results, strict=True) if pair[1] is not None]
    return max(_assert_near(found, expected) for found, expected in pairs)


def _assert_near(found: Tensor, expected: Tensor) -> float:
    """Assert that tensors differ by at most 1e-10 of the largest number; return the largest difference."""
    scale = max(1.0, float(expected.detach().abs().max()))
    assert_close(found, expected, rtol=1e-10, atol=1e-10 * scale)
    return float((found - expected).detach().abs().max()) / scale


def _arguments(name: str) -> str:
    spec = lookup(name)
    transduces = spec is not None and spec.role is Role.TRANSDUCER
    return "transducer, source, target" if transduces else "block, x, *, causal"
