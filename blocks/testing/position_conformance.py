"""Checks that every positional encoding must pass, in this package or another.

    @pytest.mark.parametrize("check", CHECKS)
    def test_my_positions_conform(check):
        check("my_positions")

A check takes the name of a `position` and raises AssertionError where the encoding, its module and its
specification do not agree.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import torch
from torch import Tensor, nn
from torch.testing import assert_close

from ...grammar import ModelConfig
from ...grammar.positions import POSITIONS
from ..core.block import BuildError
from ..core.initialisation import initialise
from ..core.positional_encoding import PositionalEncoding
from .fixtures import VOCAB, WIDTH, build_and_analyse, make_generator, random_sequences, saved_bytes
from .module_checks import (
    assert_flops_counted,
    assert_memory_stated,
    assert_seed_decides,
    assert_state_dict_restores,
    run_stacked,
)

_RECIPE = "conv(k=3) >> ff(9)"
"""What stands behind positions where a whole model is looked at."""

_LENGTH = 40
"""The longest sequence that is looked at, if there are vectors for so many."""


def positions_are_told_apart(name: str) -> None:
    """Check that each position has a vector of its own, finite, the same for all sequences."""
    added = _added(name, _length(name))
    assert added.isfinite().all(), "expected finite numbers"
    assert_close(added[0], added[1])
    apart = torch.cdist(added[0], added[0]) + torch.eye(added.shape[1])
    assert (apart > 1e-6).all(), "two positions have the same vector"


def vectors_depend_on_positions_alone(name: str) -> None:
    """Check that a text in pieces gets the vectors of the whole, or is refused."""
    length = _length(name)
    if POSITIONS[name].by_length:
        _assert_pieces_are_told(name, length)
        return
    whole, first = _added(name, length), length // 3
    pieces = torch.cat([_added(name, first), _added(name, length - first, start=first)], 1)
    assert_close(pieces, whole, rtol=1e-11, atol=1e-11)


def positions_have_an_end(name: str) -> None:
    """Check that a sequence longer than the encoding is refused, with both lengths."""
    longest = POSITIONS[name].longest
    if longest is None:
        return
    try:
        _added(name, longest + 1)
    except BuildError as error:
        assert str(longest) in str(error), f"expected {longest} in the message, got {error}"
    else:
        raise AssertionError(f"expected no vectors beyond {longest} positions")


def position_parameters_are_counted(name: str) -> None:
    """Check that a model with this encoding has the parameters that its analysis states."""
    model, analysis = build_and_analyse(_RECIPE, causal=False, width=WIDTH, length=5, position=name)
    assert _count(model) == analysis.parameters, f"expected {analysis.parameters}, got {_count(model)}"


def positions_have_no_products(name: str) -> None:
    """Check that nothing is multiplied but number by number, since no operations are counted."""
    encoding, x = _make_encoding(name), random_sequences(3, 7)
    assert_flops_counted(partial(encoding, x), batch=3, length=7, stated=0)


def position_memory_is_stated(name: str) -> None:
    """Check that what training keeps for the backward pass is stated to one percent."""
    for dropout, length in product((0.0, 0.1), (1, _length(name))):
        model, analysis = build_and_analyse(
            _RECIPE, causal=False, width=8, length=length, position=name, dropout=dropout
        )
        saved = saved_bytes(model, batch=3, length=length)
        assert_memory_stated(saved, length=length, stated=analysis.memory(3).activations)


def position_weights_restore(name: str) -> None:
    """Check that a state dict makes another model the same, and a copy is a model of its own."""
    assert_state_dict_restores(partial(_make_model, name), _tokens())


def position_seed_decides(name: str) -> None:
    """Check that the same seed draws the same weights, and the global generator is left alone."""
    assert_seed_decides(partial(_make_model, name), _tokens())


def position_weights_can_be_stacked(name: str) -> None:
    """Check that three trials as one batched computation give the outputs of each alone."""
    models = [_make_model(name, seed) for seed in range(3)]
    together, _ = run_stacked(models, (torch.stack([_tokens()] * 3),), ())
    for model, found in zip(models, together, strict=True):
        assert_close(found, model(_tokens()), rtol=1e-4, atol=1e-4)


CHECKS: tuple[Callable[[str], None], ...] = (
    positions_are_told_apart,
    vectors_depend_on_positions_alone,
    positions_have_an_end,
    position_parameters_are_counted,
    positions_have_no_products,
    position_memory_is_stated,
    position_weights_restore,
    position_seed_decides,
    position_weights_can_be_stacked,
)
"""Every check; each is called as `check(name)`."""


def _length(name: str) -> int:
    return min(POSITIONS[name].longest or _LENGTH, _LENGTH)


def _assert_pieces_are_told(name: str, length: int) -> None:
    """Check that a piece from the middle is refused, and that padding moves no vector."""
    try:
        _added(name, 1, start=1)
    except BuildError as error:
        assert name in str(error), f"expected {name} in the message, got {error}"
    else:
        raise AssertionError("expected no vectors for a piece of a sequence")
    x, encoding = random_sequences(2, length), _make_encoding(name)
    padded = encoding(x, 0, torch.tensor([length, 1]))[0]
    assert_close(padded[0], encoding(x[:1])[0][0])
    assert_close(padded[1, :1], encoding(x[1:, :1])[0][0])


def _make_encoding(name: str) -> PositionalEncoding:
    encoding = PositionalEncoding(ModelConfig(d_model=WIDTH, position=name))
    initialise(encoding, make_generator(0))
    return encoding.double().eval()


def _added(name: str, length: int, start: int = 0) -> Tensor:
    """Return what is added to two sequences that begin at a position, (2, length, width)."""
    x = random_sequences(2, length)
    return (_make_encoding(name)(x, start)[0] - x).detach()


def _make_model(name: str, seed: int) -> nn.Module:
    return build_and_analyse(_RECIPE, causal=False, width=WIDTH, length=6, position=name, seed=seed)[0].eval()


def _tokens() -> Tensor:
    return torch.randint(VOCAB, (2, 6), generator=make_generator(2))


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
