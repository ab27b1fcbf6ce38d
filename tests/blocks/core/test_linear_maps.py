"""Linear maps by oneDNN: outputs, gradients, and the cases that keep torch's own product."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from activemem.blocks.core import linear, operations

ROWS, INPUTS, OUTPUTS = 512, 96, 192


@pytest.fixture(autouse=True)
def _any_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every processor that has oneDNN use it here."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setattr(operations, "onednn_has_wider_vectors", lambda: True)


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def inputs_of(*shape: int) -> list[Tensor]:
    return [draw(*shape, INPUTS, seed=0), draw(OUTPUTS, INPUTS, seed=1), draw(OUTPUTS, seed=2)]


def assert_near(found: Tensor, exact: Tensor) -> None:
    torch.testing.assert_close(found.double(), exact, rtol=0.0, atol=3e-6 * float(exact.detach().abs().max()))


def uses_onednn(x: Tensor, weight: Tensor) -> bool:
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        linear(x, weight)
    return any("mkldnn_convolution" in event.key for event in recorded.key_averages())


@pytest.mark.parametrize("shape", [(ROWS,), (8, ROWS // 8), (32, ROWS // 32), (2, 2, ROWS // 4)])
@pytest.mark.parametrize("biased", [True, False])
def test_outputs_and_gradients_equal_those_of_double_precision(shape: tuple[int, ...], biased: bool) -> None:
    given = inputs_of(*shape)[: 3 if biased else 2]
    exact = [each.detach().double().requires_grad_() for each in given]
    assert uses_onednn(*given[:2])
    y, expected = linear(*given), functional.linear(*exact)
    assert y.shape == expected.shape
    assert_near(y, expected)
    towards = draw(*y.shape, seed=3).detach()
    gradients = torch.autograd.grad(y, given, towards), torch.autograd.grad(expected, exact, towards.double())
    for found, of_double in zip(*gradients, strict=True):
        assert_near(found, of_double)


def test_transposed_inputs_and_expanded_gradients_are_exact() -> None:
    x, weight = draw(INPUTS, ROWS, seed=0), draw(OUTPUTS, INPUTS, seed=1)
    exact = [each.detach().double().requires_grad_() for each in (x, weight)]
    found = torch.autograd.grad(linear(x.T, weight).sum(), [x, weight])
    expected = torch.autograd.grad(functional.linear(exact[0].T, exact[1]).sum(), exact)
    for each, of_double in zip(found, expected, strict=True):
        assert_near(each, of_double)


def test_second_gradients_equal_those_of_double_precision() -> None:
    def second(x: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
        first = torch.autograd.grad(linear(x, weight).square().mean(), [x, weight], create_graph=True)
        return torch.autograd.grad(torch.stack([each.square().sum() for each in first]).sum(), [x, weight])

    given = inputs_of(ROWS)[:2]
    exact = [each.detach().double().requires_grad_() for each in given]
    for found, expected in zip(second(*given), second(*exact), strict=True):
        assert_near(found, expected)


def test_equal_inputs_give_equal_bits() -> None:
    given = inputs_of(ROWS)
    assert torch.equal(linear(*given), linear(*given))


@pytest.mark.parametrize("rows", [ROWS + 8, 128], ids=["no multiple of 16", "few rows"])
def test_other_row_counts_keep_the_product_of_torch(rows: int) -> None:
    x, weight, bias = draw(rows, 512, seed=0), draw(512, 512, seed=1), draw(512, seed=2)
    assert not uses_onednn(x, weight)
    assert torch.equal(linear(x, weight, bias), functional.linear(x, weight, bias))


def test_double_precision_autocast_and_transforms_keep_the_product_of_torch() -> None:
    x, weight, _ = inputs_of(ROWS)
    assert not uses_onednn(x.double(), weight.double())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert linear(x, weight).dtype == torch.bfloat16
        assert torch.equal(linear(x, weight), functional.linear(x, weight))
    several = torch.stack([weight, weight + 1])
    mapped = torch.vmap(lambda each: linear(x, each))(several)
    torch.testing.assert_close(mapped, torch.stack([functional.linear(x, each) for each in several]))


def test_flops_are_those_of_the_product() -> None:
    given = [each.detach() for each in inputs_of(ROWS)]
    with FlopCounterMode(display=False) as counter:
        linear(*given)
    assert counter.get_total_flops() == 2 * ROWS * INPUTS * OUTPUTS


def test_an_exported_map_is_right_for_every_number_of_rows() -> None:
    class Map(nn.Module):
        def forward(self, x: Tensor, weight: Tensor) -> Tensor:
            return linear(x, weight)

    x, weight, _ = (each.detach() for each in inputs_of(16, ROWS // 16))
    sizes = ({0: Dim("batch"), 1: Dim("length")}, {})
    program = torch.export.export(Map(), (x, weight), dynamic_shapes=sizes).module()
    for batch, length in ((16, ROWS // 16), (2, 3), (7, 65)):
        rows = draw(batch, length, INPUTS, seed=4).detach()
        assert torch.equal(program(rows, weight), functional.linear(rows, weight))
