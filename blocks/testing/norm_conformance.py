"""Checks that every normalisation must pass, in this package or another.

    @pytest.mark.parametrize("check", CHECKS)
    def test_my_norm_conforms(check):
        check("my_norm")

A check takes the name of a `norm_kind` and raises AssertionError where the norm, its module and its
specification do not agree.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import torch
from torch import nn
from torch.testing import assert_close

from ...grammar import ModelConfig, Norm
from ..core.initialisation import initialise
from ..core.normalisation import build_norm
from .fixtures import VOCAB, WIDTH, build_and_analyse, make_generator, random_sequences, saved_bytes
from .module_checks import (
    assert_flops_counted,
    assert_memory_stated,
    assert_seed_decides,
    assert_state_dict_restores,
    run_stacked,
)

_RECIPE = "conv(k=3) >> ff(9)"
"""What stands around a norm where a whole model is looked at."""


def norm_keeps_shapes(name: str) -> None:
    """Check that the output is finite and has the shape of the input, even where that is zero throughout."""
    norm = _make_norm(name)
    for batch, length in ((1, 1), (3, 11)):
        for x in (random_sequences(batch, length), torch.zeros(batch, length, WIDTH, dtype=torch.float64)):
            y = norm(x)
            assert y.shape == x.shape, f"expected {tuple(x.shape)}, got {tuple(y.shape)}"
            assert y.isfinite().all(), "expected finite numbers"


def norm_sees_one_vector(name: str) -> None:
    """Check that a vector's output moves with that vector alone, in training as in evaluation."""
    for training in (True, False):
        norm, x = _make_norm(name).train(training), random_sequences(2, 5)
        other = x.clone()
        other[1, 2] += random_sequences(1, 1, seed=4)[0, 0]
        moved = (norm(other) != norm(x)).any(-1)
        expected = torch.zeros(2, 5, dtype=torch.bool)
        expected[1, 2] = True
        assert moved.equal(expected), "an output moves with another vector than its own"


def norm_gradients_are_right(name: str) -> None:
    """Check that the gradient at the input equals finite differences."""
    x = random_sequences(2, 3).requires_grad_()
    assert torch.autograd.gradcheck(_make_norm(name), (x,)), "the gradients are wrong"


def norm_parameters_are_counted(name: str) -> None:
    """Check that a model with this norm has the parameters that its analysis states."""
    model, analysis = build_and_analyse(_RECIPE, causal=False, width=WIDTH, length=5, norm_kind=name)
    assert _count(model) == analysis.parameters, f"expected {analysis.parameters}, got {_count(model)}"


def norm_has_no_products(name: str) -> None:
    """Check that nothing is multiplied but number by number, since no operations are counted."""
    norm, x = _make_norm(name, torch.float32), random_sequences(3, 7, dtype=torch.float32)
    assert_flops_counted(partial(norm, x), batch=3, length=7, stated=0)


def norm_memory_is_stated(name: str) -> None:
    """Check that what training keeps is stated to one percent, wherever the norm stands."""
    norms: tuple[Norm, ...] = ("pre", "post")
    for norm, dropout, length in product(norms, (0.0, 0.1), (1, 40)):
        model, analysis = build_and_analyse(
            _RECIPE, causal=False, width=8, length=length, norm=norm, norm_kind=name, dropout=dropout
        )
        saved = saved_bytes(model, batch=3, length=length)
        assert_memory_stated(saved, length=length, stated=analysis.memory(3).activations)


def norm_weights_restore(name: str) -> None:
    """Check that a state dict makes another model the same, and a copy is a model of its own."""
    assert_state_dict_restores(partial(_make_model, name), _tokens())


def norm_seed_decides(name: str) -> None:
    """Check that the same seed draws the same weights, and the global generator is left alone."""
    assert_seed_decides(partial(_make_model, name), _tokens())


def norm_weights_can_be_stacked(name: str) -> None:
    """Check that three trials as one batched computation give the outputs of each alone."""
    norms = [_make_norm(name, torch.float32) for _ in range(3)]
    x = random_sequences(3, 4, dtype=torch.float32)
    together, _ = run_stacked(norms, (torch.stack([x] * 3),), ())
    assert_close(together[0], norms[0](x), rtol=1e-5, atol=1e-5)


def norm_in_half_precision_is_near(name: str) -> None:
    """Check that with products in bf16 outputs are those in full precision within 5 %."""
    norm, x = _make_norm(name, torch.float32), random_sequences(2, 7, dtype=torch.float32)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        near = norm(x).float()
    with torch.no_grad():
        exact = norm(x)
    off = float((near - exact).norm() / exact.norm())
    assert off <= 0.05, f"expected at most 0.05 of the norm off, got {off:.3f}"


CHECKS: tuple[Callable[[str], None], ...] = (
    norm_keeps_shapes,
    norm_sees_one_vector,
    norm_gradients_are_right,
    norm_parameters_are_counted,
    norm_has_no_products,
    norm_memory_is_stated,
    norm_weights_restore,
    norm_seed_decides,
    norm_weights_can_be_stacked,
    norm_in_half_precision_is_near,
)
"""Every check; each is called as `check(name)`."""


def _make_norm(name: str, dtype: torch.dtype = torch.float64) -> nn.Module:
    norm = build_norm(ModelConfig(d_model=WIDTH, norm_kind=name))
    generator = make_generator(0)
    initialise(norm, generator)
    with torch.no_grad():
        for parameter in norm.parameters():
            parameter.add_(0.5 * torch.rand(parameter.shape, generator=generator))
    return norm.to(dtype).eval()


def _make_model(name: str, seed: int) -> nn.Module:
    return build_and_analyse(_RECIPE, causal=False, width=WIDTH, length=6, norm_kind=name, seed=seed)[
        0
    ].eval()


def _tokens() -> torch.Tensor:
    return torch.randint(VOCAB, (2, 6), generator=make_generator(2))


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
