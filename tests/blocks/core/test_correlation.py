"""Correlation along sequences: FFTs give the result of the definition, for the cases that use them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from activemem.blocks.core import correlation
from activemem.blocks.core.correlation import WHOLE, choose_tile, correlate
from activemem.blocks.layers.convolutions import Convolution

SEQUENCES, LENGTH, WIDTH, OUTPUTS, TAPS = 32, 20, 32, 48, 10
"""Sizes that are large enough for the FFT."""

SIZES = [
    (20, 10, 4, 5),  # length, taps, zeros before and after: as a convolution has them
    (7, 13, 6, 6),
    (9, 2, 0, 1),
    (8, 5, 4, 0),
    (9, 4, 0, 0),  # as behind learnt padding
    (5, 3, 4, 7),
    (6, 1, 0, 0),
    (1, 1, 0, 0),
]


@pytest.fixture(autouse=True)
def _one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the FFT at the same sizes on every processor."""
    monkeypatch.setattr(correlation, "onednn_has_wider_vectors", lambda: False)


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return random normal numbers with requires_grad."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype).requires_grad_()


def large(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    """Return inputs, weights of the usual initial scale for these sizes, and biases."""
    x = draw(SEQUENCES, LENGTH, WIDTH, dtype=dtype)
    weight = draw(OUTPUTS, TAPS, WIDTH, seed=1, dtype=dtype).detach() / math.sqrt(TAPS * WIDTH)
    return x, weight.requires_grad_(), draw(OUTPUTS, seed=2, dtype=dtype)


def by_definition(x: Tensor, weight: Tensor, bias: Tensor, left: int, right: int) -> Tensor:
    """Compute each output by its definition, with plain loops over positions and taps."""
    outputs, taps, _ = weight.shape
    positions: list[Tensor] = []
    for place in range(left + x.shape[1] + right - taps + 1):
        y = bias.expand(len(x), outputs)
        for tap in range(taps):
            if 0 <= (seen := place + tap - left) < x.shape[1]:
                y = y + x[:, seen] @ weight[:, tap].T
        positions.append(y)
    return torch.stack(positions, 1)


@pytest.mark.parametrize("form", ["positions", "whole", "tiles"])
@pytest.mark.parametrize(("length", "taps", "left", "right"), SIZES)
def test_outputs_and_gradients_are_those_of_the_definition(
    length: int,
    taps: int,
    left: int,
    right: int,
    form: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tile = {"positions": None, "whole": WHOLE, "tiles": max(3, taps - 1)}[form]
    monkeypatch.setattr(correlation, "choose_tile", lambda *_: tile)
    given = [draw(2, length, 3), draw(4, taps, 3, seed=1), draw(4, seed=2)]
    y = correlate(*given, left=left, right=right, by_frequencies=True)
    expected = by_definition(*given, left, right)
    torch.testing.assert_close(y, expected, rtol=0.0, atol=1e-13)
    towards = draw(*y.shape, seed=3).detach()
    found = torch.autograd.grad(y, given, towards)
    for each, other in zip(found, torch.autograd.grad(expected, given, towards), strict=True):
        torch.testing.assert_close(each, other, rtol=0.0, atol=1e-12)


def test_gradients_have_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlation, "choose_tile", lambda *_: WHOLE)
    given = (draw(2, 5, 2), draw(3, 3, 2, seed=1), draw(3, seed=2))

    def slide(x: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
        return correlate(x, weights, biases, left=1, right=1, by_frequencies=True).tanh()

    assert torch.autograd.gradcheck(slide, given)
    assert torch.autograd.gradgradcheck(slide, given)


def test_gradients_have_gradients_where_inputs_are_of_the_same_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, weights = draw(4, 5, 2), draw(2, 3, 2, seed=1)

    def second(tile: int | None) -> tuple[Tensor, ...]:
        monkeypatch.setattr(correlation, "choose_tile", lambda *_: tile)
        y = x
        for _ in range(2):
            y = correlate(y, weights, left=1, right=1, by_frequencies=True).tanh()
        (first,) = torch.autograd.grad(y.square().sum(), [weights], create_graph=True)
        return torch.autograd.grad(first.square().sum(), [x, weights])

    for found, expected in zip(second(2), second(None), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_frozen_inputs_get_no_gradient() -> None:
    x, weights, biases = large()
    y = correlate(x.detach(), weights, biases.detach(), left=4, right=5, by_frequencies=True)
    y.sum().backward()
    assert weights.grad is not None
    assert biases.grad is None


def test_long_sequences_are_cut_into_tiles() -> None:
    x = draw(2, 256, 128, dtype=torch.float32).detach()
    weight = draw(128, 20, 128, dtype=torch.float32, seed=1).detach()
    assert choose_tile(x, weight, left=9, right=10) in correlation.TILES
    y = correlate(x, weight, left=9, right=10, by_frequencies=True)
    exact = correlate(x.double(), weight.double(), left=9, right=10, by_frequencies=False)
    assert float((y - exact).abs().max()) < 5e-6 * float(exact.abs().max())


def test_single_precision_is_no_worse_than_position_by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    given = large()
    assert choose_tile(*given[:2], left=4, right=5) == WHOLE
    exact = tuple(each.detach().double().requires_grad_() for each in given)

    def pass_both_ways(x: Tensor, weights: Tensor, biases: Tensor) -> tuple[Tensor, ...]:
        y = correlate(x, weights, biases, left=4, right=5, by_frequencies=True)
        towards = draw(*y.shape, seed=3).detach().to(y.dtype)
        return y.detach(), *torch.autograd.grad(y, [x, weights, biases], towards)

    found = pass_both_ways(*given)
    monkeypatch.setattr(correlation, "choose_tile", lambda *_: None)
    for each, plain, truth in zip(found, pass_both_ways(*given), pass_both_ways(*exact), strict=True):
        size = float(truth.abs().max())
        error, of_plain = (float((other.double() - truth).abs().max()) for other in (each, plain))
        assert error <= max(1.5 * of_plain, 5e-7 * size)


def test_a_causal_convolution_sees_no_later_position_when_evaluated() -> None:
    layer = Convolution(width=WIDTH, k=TAPS, causal=True, bias_init="zero").eval()
    layer.initialise(torch.Generator().manual_seed(0))
    x = large()[0].detach()
    changed = x.clone()
    changed[:, 12:] = 1e6
    torch.testing.assert_close(layer(changed)[:, :12], layer(x)[:, :12], rtol=0.0, atol=0.0)


def test_a_causal_convolution_uses_tiles_in_training_alone() -> None:
    layer = Convolution(width=128, k=20, causal=True, bias_init="zero")
    layer.initialise(torch.Generator().manual_seed(0))
    x = draw(2, 256, 128, dtype=torch.float32, seed=1).detach()
    assert choose_tile(x, layer.weight, left=19, right=0) in correlation.TILES
    trained, evaluated = layer.train()(x), layer.eval()(x)
    torch.testing.assert_close(trained, evaluated, rtol=0.0, atol=2e-5)
    assert not torch.equal(trained, evaluated)
    direct = correlate(x, layer.weight, layer.bias, left=19, by_frequencies=False)
    torch.testing.assert_close(evaluated, direct, rtol=0.0, atol=0.0)


def test_groups_of_tiles_have_the_gradients_of_the_direct_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlation, "LEAST_TILES", 3)
    monkeypatch.setattr(correlation, "GROUP_NUMBERS", 1)
    monkeypatch.setattr(correlation, "choose_tile", lambda *_: 32)
    given = draw(2, 150, 24), draw(40, 20, 24, seed=1), draw(40, seed=2)
    towards = draw(2, 150, 40, seed=3).detach()

    def pass_both_ways(dtype: torch.dtype, *, by_frequencies: bool) -> tuple[Tensor, ...]:
        leaves = [each.detach().to(dtype).requires_grad_() for each in given]
        y = correlate(*leaves, left=9, right=10, by_frequencies=by_frequencies)
        return y.detach(), *torch.autograd.grad(y, leaves, towards.to(dtype))

    found = pass_both_ways(torch.float32, by_frequencies=True)
    expected = pass_both_ways(torch.float64, by_frequencies=False)
    for each, exact in zip(found, expected, strict=True):
        assert float((each - exact).abs().max()) < 2e-6 * float(exact.abs().max())


def test_masked_positions_are_not_seen() -> None:
    x, weights, biases = large()
    assert choose_tile(x, weights, left=4, right=5) == WHOLE
    short = x.detach().clone()
    short[:, 12:] = 0.0
    whole = correlate(short, weights, biases, left=4, right=5, by_frequencies=True)[:, :12]
    alone = correlate(short[:, :12], weights, biases, left=4, right=5, by_frequencies=True)
    torch.testing.assert_close(whole, alone, rtol=0.0, atol=2e-6)


def test_a_failure_stays_with_its_sequence() -> None:
    x, weight, bias = (each.detach() for each in large())
    x[3, 2, 1] = torch.nan
    y = correlate(x, weight, bias, left=4, right=5, by_frequencies=True)
    assert [*y.isnan().any(2).any(1).nonzero()] == [3]


@pytest.mark.parametrize(
    "given",
    [
        lambda x, weights: (x[:1], weights),  # of one sequence all weights would be transformed
        lambda x, weights: (x[:, :4], weights[:, :3]),
        lambda x, weights: (x[..., :2], weights[:2, :, :2]),
        lambda x, weights: (x.to("meta"), weights.to("meta")),
        lambda x, weights: (x.half(), weights.half()),
        lambda x, weights: (x.double(), weights),
    ],
    ids=["one sequence", "few taps", "narrow", "no processor's", "half precision", "mixed"],
)
def test_positions_are_taken_one_by_one_where_frequencies_gain_nothing(
    given: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
) -> None:
    x, weights = given(*large()[:2])
    taps = weights.shape[1]
    assert choose_tile(x, weights, left=(taps - 1) // 2, right=taps // 2) is None


def test_wider_vectors_of_convolutions_and_large_sizes_speak_against_frequencies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, weights = large()[0][:, :10], large()[1]
    assert choose_tile(x, weights[:16], left=4, right=5) == WHOLE
    with monkeypatch.context() as patch:
        patch.setattr(correlation, "onednn_has_wider_vectors", lambda: True)
        assert choose_tile(x, weights[:16], left=4, right=5) is None
    for bound in ("MOST_NUMBERS", "MOST_FACTORS"):
        with monkeypatch.context() as patch:
            patch.setattr(correlation, bound, 500)
            assert choose_tile(x, weights[:16], left=4, right=5) is None


@pytest.mark.parametrize("form", ["whole", "tiles"])
@pytest.mark.parametrize(("length", "taps", "left", "right"), SIZES)
def test_under_autocast_errors_are_near_those_of_a_convolution_in_bf16(
    length: int, taps: int, left: int, right: int, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, weight, bias = draw(8, length, 64), draw(48, taps, 64, seed=1), draw(48, seed=2)
    expected = by_definition(x, weight, bias, left, right)
    towards = draw(*expected.shape, seed=3).detach()
    exact = (expected.detach(), *torch.autograd.grad(expected, [x, weight, bias], towards))

    def errors(tile: int | None) -> list[float]:
        """Return the relative errors of outputs and gradients, in root mean squares."""
        monkeypatch.setattr(correlation, "choose_tile", lambda *_: tile)
        given = [each.detach().float().requires_grad_() for each in (x, weight, bias)]
        with torch.autocast("cpu", torch.bfloat16):
            y = correlate(*given, left=left, right=right, by_frequencies=True)
        assert y.dtype == torch.bfloat16
        found = (y.detach(), *torch.autograd.grad(y, given, towards.bfloat16()))
        return [
            float((each.double() - other).norm() / other.norm())
            for each, other in zip(found, exact, strict=True)
        ]

    of_convolution = errors(None)
    for error, usual in zip(
        errors(WHOLE if form == "whole" else max(3, taps - 1)), of_convolution, strict=True
    ):
        assert error < 2.5 * usual


def test_under_autocast_large_correlations_use_frequencies_and_small_ones_torch_s_convolution() -> None:
    x, weight, bias = (each.detach() for each in large())
    short, few = x[:, :4].bfloat16(), weight[:, :3].bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        assert choose_tile(x.bfloat16(), weight.bfloat16(), left=4, right=5) == WHOLE
        assert choose_tile(short, few, left=1, right=1) is None
        y = correlate(x[:, :4], weight[:, :3], bias, by_frequencies=True)
        torch.testing.assert_close(y, functional.conv1d(x[:, :4].mT, weight[:, :3].mT, bias).mT)
    assert choose_tile(x.half(), weight.half(), left=4, right=5) is None


def test_transforms_made_without_gradients_serve_those_with() -> None:
    correlation._transforms.cache_clear()
    x, weights, _ = large()
    with torch.inference_mode():
        expected = correlate(x, weights, left=4, right=5, by_frequencies=True)
    y = correlate(x, weights, left=4, right=5, by_frequencies=True)
    y.sum().backward()
    torch.testing.assert_close(y, expected.clone(), rtol=0.0, atol=0.0)
    assert weights.grad is not None


def test_a_compiled_one_is_one_graph() -> None:
    x, weight, bias = (each.detach() for each in (large()[0], large()[1], large()[2]))
    compiled = torch.compile(correlate, backend="eager", fullgraph=True)
    expected = correlate(x, weight, bias, left=4, right=5, by_frequencies=True)
    torch.testing.assert_close(compiled(x, weight, bias, left=4, right=5, by_frequencies=True), expected)
