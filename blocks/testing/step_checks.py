"""Checks of a causal block that reads a sequence in pieces; pools, and blocks that see the future, pass."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from ..core.block import BuildError
from ..core.streaming import StreamState
from .fixtures import (
    VOCAB,
    build_and_analyse,
    is_pool,
    make_block,
    make_generator,
    parse_block,
    random_sequences,
)

PIECES = ((1,) * 29, (7, 7, 7, 7, 1), (1, 2, 5, 21), (20, 6, 2, 1))
"""The lengths of the pieces of a sequence of 29 positions."""


def outputs_with_past_are_right(text: str, *, causal: bool) -> None:
    """Check that `forward_with_past` gives the whole sequence's outputs."""
    if not causal or is_pool(text):
        return
    block = make_block(parse_block(text), causal=True)
    past, x = random_sequences(2, 40), random_sequences(2, 6, seed=3)
    expected = block(torch.cat([past, x], 1))[:, 40:]
    assert_close(block.forward_with_past(x, past), expected, rtol=1e-9, atol=1e-9)
    if block.context_length is not None:
        seen = past[:, max(0, 40 - block.context_length) :]
        assert_close(block.forward_with_past(x, seen), expected, rtol=1e-9, atol=1e-9)


def steps_with_gradients_are_right(text: str, *, causal: bool) -> None:
    """Check that `step_with_grad` gives the outputs and the gradients of the whole sequence."""
    if not causal or is_pool(text):
        return
    block, x = make_block(parse_block(text), causal=True), random_sequences(3, 29).requires_grad_()
    whole = block(x)
    (expected,) = torch.autograd.grad(whole[:, -1].sum(), x)
    for pieces in PIECES:
        state, outputs = None, []
        for piece in x.split(pieces, 1):
            y, state = block.step_with_grad(piece, state)
            assert state is None or len(state) == 3, "the batch is not the first dimension of the state"
            outputs.append(y)
        found = torch.cat(outputs, 1)
        assert_close(found, whole, rtol=1e-9, atol=1e-9)
        assert_close(torch.autograd.grad(found[:, -1].sum(), x)[0], expected, rtol=1e-9, atol=1e-9)


def states_stay_small(text: str, *, causal: bool) -> None:
    """Check that the state of `step` has no gradient, and one size after `context_length` inputs."""
    if not causal or is_pool(text):
        return
    block = make_block(parse_block(text), causal=True)
    if block.context_length is None and not block.state_is_bounded:
        try:
            block.step(random_sequences(2, 3), None)
        except BuildError:
            return
        raise AssertionError("expected BuildError from the step of a block whose state grows")
    length, state, sizes = max(block.context_length or 0, 1), None, list[int]()
    for piece in (random_sequences(2, length), random_sequences(2, length), random_sequences(2, 1)):
        _, state = block.step(piece, state)
        assert state is None or not state.requires_grad, "the state of a stream has a gradient"
        sizes.append(0 if state is None else state.numel())
    assert len(set(sizes)) == 1, (
        f"expected a state of one size, got {sizes} numbers after {length} inputs each"
    )
    assert block.context_length != 0 or state is None, "the state of a block that sees no past is not None"


def stream_gives_what_one_pass_gives(text: str, *, causal: bool) -> None:
    """Check that a model of two copies reads a text in pieces as at once."""
    block = make_block(parse_block(text), causal=causal)
    if not causal or is_pool(text) or (block.context_length is None and not block.state_is_bounded):
        return
    model, _ = build_and_analyse(f"2 * ({text} >> ff(5))", causal=True, width=8, length=29)
    model, tokens = model.double().eval(), torch.randint(VOCAB, (2, 29), generator=make_generator(2))
    with torch.no_grad():
        expected = model(tokens)
        for pieces in PIECES:
            stream, outputs = StreamState(), []
            for piece in tokens.split(pieces, 1):
                y, stream = model.forward_stream(piece, stream)
                outputs.append(y)
            assert_close(torch.cat(outputs, 1), expected, rtol=1e-9, atol=1e-9)


STEP_CHECKS = (
    outputs_with_past_are_right,
    steps_with_gradients_are_right,
    states_stay_small,
    stream_gives_what_one_pass_gives,
)
"""The checks of steps; each is called as `check(text, causal=…)`."""
