"""Conformance checks of normalisations and positional encodings, both built-in and from plug-ins.

A test of a plug-in's normalisation runs all checks:

    @pytest.mark.parametrize("check", NORM_CHECKS)
    def test_my_norm_conforms(check):
        check("my_norm")

A check takes the name of a `norm_kind` or of a `position`, and raises AssertionError if its module and its
specification disagree. Checks that also run before a training raise ConformanceError, so that it differs from
an assertion in the module.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch.testing import assert_close

from ...errors import ActivememError, describe_value
from ...grammar import Norm, configure
from ...grammar.positions import POSITIONS
from ..core.block import BuildError
from ..core.initialisation import drawn_by, initialise
from ..core.positions import PositionalEncoding
from ..core.residual_stack import build_norm
from .fixtures import (
    VOCAB,
    WIDTH,
    assert_flops_counted,
    assert_memory_stated,
    assert_seed_decides,
    assert_state_dict_restores,
    build_and_analyse,
    build_small,
    make_generator,
    random_sequences,
    saved_bytes,
    seeded,
)

_RECIPE = "conv(k=3) >> ff(9)"
"""The body of the models that test norms and positions."""

_LENGTH = 40
"""The longest sequence in the checks; encodings with fewer positions are checked up to their number."""


class ConformanceError(ActivememError, AssertionError):
    """Error for a norm or positions that fail a check, as an assertion of a test does."""


def norm_keeps_shapes(name: str, width: int = WIDTH) -> None:
    """Check that the output is finite and like the input, even for an all-zero input."""
    norm = _make_norm(name, torch.float32, width)
    for batch, length in ((1, 1), (3, 11)):
        x = random_sequences(batch, length, width=width, dtype=torch.float32)
        for each, inputs in ((x, "random vectors"), (torch.zeros_like(x), "a vector of zeros")):
            y = norm(each)
            _assert_like(y, tuple(x.shape), inputs)
            _require(y.dtype == x.dtype, f"expected an output of {x.dtype}, like the input, got {y.dtype}")


def norm_sees_one_vector(name: str, width: int = WIDTH) -> None:
    """Check that a vector's output depends only on that vector, in training and evaluation."""
    for training in (False, True):
        norm = _make_norm(name, torch.float32, width).train(training)
        x = random_sequences(2, 5, width=width, dtype=torch.float32)
        other = x.clone()
        other[1, 2] += random_sequences(1, 1, width=width, seed=4, dtype=torch.float32)[0, 0]
        outputs = [seeded(norm, each) for each in (other, x)]  # so that noise is the same
        moved = ~((outputs[0] - outputs[1]).abs().amax(-1) <= 1e-5)
        moved[1, 2] = False
        _require(
            not moved.any(),
            f"in {'training' if training else 'evaluation'} mode an output depends on other vectors than its "
            "own input: a norm must map each vector alone, and keep no state between batches",
        )


def norm_gradients_are_right(name: str) -> None:
    """Check that the gradient at the input equals finite differences."""
    x = random_sequences(2, 3).requires_grad_()
    assert torch.autograd.gradcheck(_make_norm(name), (x,)), "the gradients are wrong"


def norm_has_no_products(name: str) -> None:
    """Check that a norm needs no matrix products. The analysis counts no FLOPs for norms."""
    norm, x = _make_norm(name, torch.float32), random_sequences(3, 7, dtype=torch.float32)
    assert_flops_counted(partial(norm, x), batch=3, length=7, stated=0)


def norm_in_half_precision_is_near(name: str) -> None:
    """Check that products in bf16 change outputs by at most 5 %."""
    norm, x = _make_norm(name, torch.float32), random_sequences(2, 7, dtype=torch.float32)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        near = norm(x).float()
    with torch.no_grad():
        exact = norm(x)
    off = float((near - exact).norm() / exact.norm())
    assert off <= 0.05, f"expected an error of at most 0.05 of the norm, got {off:.3f}"


def positions_are_vectors(name: str, width: int = WIDTH) -> None:
    """Check that the module of a plug-in maps positions (length,) to finite vectors (length, width)."""
    vectors, length = _make_encoding(name, width).vectors, _length(name)
    if vectors is not None:
        _assert_like(vectors(torch.arange(length)), (length, width), f"positions 0 to {length - 1}")


def positions_are_distinct(name: str) -> None:
    """Check that each position has a distinct finite vector, the same for all sequences."""
    added = _added(name, _length(name))
    assert added.isfinite().all(), "expected finite numbers"
    assert_close(added[0], added[1])
    apart = torch.cdist(added[0].double(), added[0].double()) + torch.eye(added.shape[1])
    assert (apart > 1e-6).all(), "two positions have the same vector"


def vectors_depend_on_positions_alone(name: str, width: int = WIDTH) -> None:
    """Check that position vectors depend on nothing but the positions.

    Pieces of a sequence get the same vectors, and padding has no effect.
    """
    length = _length(name)
    if not POSITIONS[name].by_length:
        whole, first = _added(name, length, width=width), length // 3
        pieces = [_added(name, first, width=width), _added(name, length - first, first, width)]
        # in single precision, products of 13 and of 40 rows round differently
        _require(
            torch.allclose(torch.cat(pieces, 1), whole, rtol=1e-4, atol=1e-4),
            "in evaluation mode a position's vector differs from call to call, or between a sequence and a "
            "piece of it: it must depend on the position alone",
        )
        return
    try:
        _added(name, 1, 1, width)
    except BuildError as error:
        assert name in str(error), f"expected {name} in the message, got {error}"
    else:
        raise AssertionError("expected no vectors for a piece of a sequence")
    x, encoding = random_sequences(2, length, width=width), _make_encoding(name, width)
    padded = encoding(x, 0, torch.tensor([length, 1]))[0]
    assert_close(padded[0], encoding(x[:1])[0][0])
    assert_close(padded[1, :1], encoding(x[1:, :1])[0][0])


def positions_have_an_end(name: str) -> None:
    """Check that a sequence with too many positions raises a BuildError that states the maximum."""
    longest = POSITIONS[name].longest
    if longest is None:
        return
    try:
        _added(name, longest + 1)
    except BuildError as error:
        assert str(longest) in str(error), f"expected {longest} in the message, got {error}"
    else:
        raise AssertionError(f"expected no vectors beyond {longest} positions")


def positions_have_no_products(name: str) -> None:
    """Check that an encoding needs no matrix products. The analysis counts no FLOPs for it."""
    encoding, x = _make_encoding(name), random_sequences(3, 7)
    assert_flops_counted(partial(encoding, x), batch=3, length=7, stated=0)


def parameters_are_counted(setting: str, name: str) -> None:
    """Check that a model with this norm or position has as many parameters as its analysis states."""
    settings: dict[str, Any] = {setting: name}
    model, analysis = build_and_analyse(_RECIPE, d_model=WIDTH, length=5, **settings)
    counted = sum(parameter.numel() for parameter in model.parameters())
    assert counted == analysis.parameters, f"expected {analysis.parameters}, got {counted}"


def memory_is_stated(setting: str, name: str) -> None:
    """Check that the analysis states the training memory, of pre-norm and post-norm, within one percent."""
    longest, norms = _length(name) if setting == "position" else _LENGTH, tuple[Norm, ...](("pre", "post"))
    settings: dict[str, Any] = {setting: name}
    for norm, dropout, length in product(norms, (0.0, 0.1), (1, longest)):
        model, analysis = build_and_analyse(
            _RECIPE, d_model=8, length=length, norm=norm, dropout=dropout, **settings
        )
        saved = saved_bytes(model, batch=3, length=length)
        assert_memory_stated(saved, length=length, stated=analysis.memory(3).activations)


def weights_restore(setting: str, name: str) -> None:
    """Check that a state dict restores a model, and that a deep copy shares no weights with it."""
    assert_state_dict_restores(partial(_make_model, setting, name), _tokens())


def seed_decides(setting: str, name: str) -> None:
    """Check that the weights depend on the seed, and on nothing else."""
    assert_seed_decides(partial(_make_model, setting, name), _tokens())


_MODEL_CHECKS = (
    parameters_are_counted,
    memory_is_stated,
    weights_restore,
    seed_decides,
)

NORM_CHECKS: tuple[Callable[[str], None], ...] = (
    norm_keeps_shapes,
    norm_sees_one_vector,
    norm_gradients_are_right,
    norm_has_no_products,
    norm_in_half_precision_is_near,
    *(partial(check, "norm_kind") for check in _MODEL_CHECKS),
)
"""All checks of a norm, called as `check(name)`."""

POSITION_CHECKS: tuple[Callable[[str], None], ...] = (
    positions_are_vectors,
    positions_are_distinct,
    vectors_depend_on_positions_alone,
    positions_have_an_end,
    positions_have_no_products,
    *(partial(check, "position") for check in _MODEL_CHECKS),
)
"""All checks of a positional encoding, called as `check(name)`."""


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ConformanceError(message)


def _assert_like(found: object, shape: tuple[int, ...], inputs: str) -> None:
    if not isinstance(found, Tensor):
        raise ConformanceError(f"expected a tensor of shape {shape}, got {describe_value(found)}")
    _require(found.shape == shape, f"expected an output of shape {shape}, got {tuple(found.shape)}")
    _require(found.isfinite().all(), f"expected finite numbers for {inputs}")


def _make_norm(name: str, dtype: torch.dtype = torch.float64, width: int = WIDTH) -> nn.Module:
    generator = make_generator(0)
    with drawn_by(generator):
        norm = build_norm(configure(d_model=width, norm_kind=name))
    initialise(norm, generator)
    with torch.no_grad():
        for parameter in norm.parameters():
            parameter.add_(0.5 * torch.rand(parameter.shape, generator=generator))
    return norm.to(dtype).eval()


def _make_encoding(name: str, width: int = WIDTH) -> PositionalEncoding:
    with drawn_by(make_generator(0)):
        encoding = PositionalEncoding(configure(d_model=width, position=name))
    initialise(encoding, make_generator(0))
    return encoding.eval()


def _added(name: str, length: int, start: int = 0, width: int = WIDTH) -> Tensor:
    return _make_encoding(name, width)(torch.zeros(2, length, width), start)[0].detach()


def _length(name: str) -> int:
    return min(POSITIONS[name].longest or _LENGTH, _LENGTH)


def _make_model(setting: str, name: str, seed: int) -> nn.Module:
    settings: dict[str, Any] = {setting: name}
    return build_small(_RECIPE, d_model=WIDTH, dropout=0.0, seed=seed, **settings).eval()


def _tokens() -> Tensor:
    return torch.randint(VOCAB, (2, 6), generator=make_generator(2))
