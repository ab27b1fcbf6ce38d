"""Slow references: outputs of blocks, computed as directly as their equations read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.testing import assert_close

from ...grammar import Role, lookup, nodes
from ...grammar.vocabulary.spec import spec_of
from .fixtures import make_block, parse_block, prefix_mask, random_sequences, valid_outputs

Reference = Callable[..., Tensor]
"""`reference(block, x, *, causal, **settings)`: the outputs (length, width) of one sequence (length, width).

The settings are the block's parameters by name, defaults filled in. A pool's reference gives (width,). For a
transducer it is `reference(transducer, source, target, **settings)`, the outputs (m, outputs) of a source
(n, width) and a target (m, width).
"""

ReferenceT = TypeVar("ReferenceT", bound=Reference)

_references: dict[str, Reference] = {}


def register_reference(name: str) -> Callable[[ReferenceT], ReferenceT]:
    """Return a decorator that registers a block's reference; a second one raises ValueError."""

    def register(reference: ReferenceT) -> ReferenceT:
        taken = _references.get(name)
        if taken is not None:
            has = f"the reference of block '{name}' is already {taken.__module__}.{taken.__qualname__}"
            raise ValueError(f"{has}, got {reference.__module__}.{reference.__qualname__}")
        _references[name] = reference
        return reference

    return register


def find_reference(name: str) -> Reference:
    """Return the reference of a block; raise AssertionError with instructions if there is none."""
    assert name in _references, (
        f"block '{name}' has no reference: write its equation as plain loops over one sequence, "
        f"reference({_arguments(name)}, **settings), and decorate it with @register_reference('{name}')"
    )
    return _references[name]


def apply_reference(node: nodes.BlockNode, *arguments: nn.Module | Tensor, **keywords: bool) -> Tensor:
    """Return the result of a block's reference for its module and these sequences."""
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


def _arguments(name: str) -> str:
    spec = lookup(name)
    transduces = spec is not None and spec.role is Role.TRANSDUCER
    return "transducer, source, target" if transduces else "block, x, *, causal"
