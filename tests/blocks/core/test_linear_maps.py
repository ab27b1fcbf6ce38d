"""Linear maps by oneDNN: their numbers, their gradients, and who still sees torch's own operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from activemem.blocks import build
from activemem.blocks.core import linear_maps
from activemem.blocks.core.initialisation import Linear
from activemem.blocks.core.linear_maps import LEAST_PRODUCTS, has_faster_products, linear, stacked_linear
from activemem.grammar import ModelConfig

MODELS, ROWS, INPUTS, OUTPUTS = 2, 256, 192, 256


@pytest.fixture(autouse=True)
def _any_processor(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every processor that has oneDNN takes its products here."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setattr(linear_maps, "onednn_has_wider_vectors", lambda: True)
    yield


def draw(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers that want a gradient."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def exact(*tensors: Tensor) -> list[Tensor]:
    """The same in double precision, by themselves."""
    return [each.detach().double().requires_grad_() for each in tensors]


def assert_near(found: Tensor, expected: Tensor) -> None:
    """The same up to the rounding of single precision."""
    size = float(expected.detach().abs().max())
    torch.testing.assert_close(found.double(), expected, rtol=0.0, atol=3e-6 * size)


def of_one(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return linear(x, weight, bias)


def of_several(x: Tensor, weights: Tensor, biases: Tensor | None) -> Tensor:
    return stacked_linear(x, weights, biases)


def by_definition(x: Tensor, weights: Tensor, biases: Tensor | None) -> Tensor:
    y = x @ weights.mT
    return y if biases is None else y + (biases if weights.dim() == 2 else biases.unsqueeze(1))


CASES = [
    (of_one, (ROWS, INPUTS), (OUTPUTS, INPUTS), (OUTPUTS,)),
    (of_one, (8, ROWS // 8, INPUTS), (OUTPUTS, INPUTS), (OUTPUTS,)),
    (of_several, (MODELS, ROWS, INPUTS), (MODELS, OUTPUTS, INPUTS), (MODELS, OUTPUTS)),
]


@pytest.mark.parametrize(("mapped", "rows", "weights", "biases"), CASES)
@pytest.mark.parametrize("biased", [True, False])
def test_outputs_and_gradients_are_those_of_double_precision(
    mapped: Callable[[Tensor, Tensor, Tensor | None], Tensor],
    rows: tuple[int, ...],
    weights: tuple[int, ...],
    biases: tuple[int, ...],
    biased: bool,
) -> None:
    given = [draw(*rows), draw(*weights, seed=1), *([draw(*biases, seed=2)] if biased else [])]
    assert has_faster_products(given[0], given[1], LEAST_PRODUCTS)
    reference = exact(*given)
    x, weight, *bias = given
    y = mapped(x, weight, *(bias or [None]))
    expected = by_definition(reference[0], reference[1], reference[2] if biased else None)
    assert_near(y, expected)
    towards = draw(*y.shape, seed=3).detach()
    found = torch.autograd.grad(y, given, towards)
    for each, other in zip(found, torch.autograd.grad(expected, reference, towards.double()), strict=True):
        assert_near(each, other)


def test_rows_may_lie_anyhow_and_gradients_be_expanded() -> None:
    x, weight, bias = draw(INPUTS, ROWS), draw(OUTPUTS, INPUTS, seed=1), draw(OUTPUTS, seed=2)
    reference = exact(x, weight, bias)
    y = linear(x.T, weight, bias)
    expected = functional.linear(reference[0].T, *reference[1:])
    assert_near(y, expected)
    found = torch.autograd.grad(y.sum(), [x, weight, bias])
    for each, other in zip(found, torch.autograd.grad(expected.sum(), reference), strict=True):
        assert_near(each, other)


def test_gradients_have_gradients() -> None:
    given = [draw(ROWS, INPUTS), draw(OUTPUTS, INPUTS, seed=1)]

    def second(x: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
        """Of the norm of the gradient of a function that is not linear."""
        y = linear(x, weight).square().mean()
        first = torch.autograd.grad(y, [x, weight], create_graph=True)
        return torch.autograd.grad(torch.stack([each.square().sum() for each in first]).sum(), [x, weight])

    reference = exact(*given)
    for found, expected in zip(second(*given), second(*reference), strict=True):
        assert_near(found, expected)


def test_what_is_frozen_gets_no_gradient() -> None:
    x, weight, bias = draw(ROWS, INPUTS).detach(), draw(OUTPUTS, INPUTS, seed=1), draw(OUTPUTS, seed=2)
    linear(x, weight, bias.detach()).sum().backward()
    assert weight.grad is not None
    assert x.grad is None
    assert bias.grad is None


def test_what_is_computed_again_has_the_same_bits() -> None:
    x, weight = draw(ROWS, INPUTS), draw(OUTPUTS, INPUTS, seed=1)
    kept = torch.autograd.grad(linear(x, weight).tanh().sum(), [x, weight])
    again = checkpoint(lambda: linear(x, weight).tanh().sum(), use_reentrant=False)
    assert isinstance(again, Tensor)
    for each, other in zip(kept, torch.autograd.grad(again, [x, weight]), strict=True):
        torch.testing.assert_close(each, other, rtol=0.0, atol=0.0)


def test_flops_are_counted() -> None:
    x, weight = draw(ROWS, INPUTS), draw(OUTPUTS, INPUTS, seed=1)
    with FlopCounterMode(display=False) as counter:
        linear(x, weight).sum().backward()
    found = counter.get_flop_counts()["Global"]
    assert found == {torch.ops.mkldnn._linear_pointwise: 3 * 2 * ROWS * INPUTS * OUTPUTS}


def test_the_layers_of_a_wide_model_are_such_maps() -> None:
    model = build("sa(heads=4) >> ff(1024)", ModelConfig(d_model=256, vocab=512))
    with FlopCounterMode(display=False) as counter:
        model(torch.zeros(8, 32, dtype=torch.long)).sum().backward()
    found = counter.get_flop_counts()["Global"]
    maps = (4 + 2 * 4) * 256**2 + 256 * 512  # of attention, feed-forward layer and output
    assert found[torch.ops.mkldnn._linear_pointwise] == 3 * 2 * 8 * 32 * maps


def test_torch_computes_what_is_small_or_not_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = draw(ROWS, INPUTS), nn.Parameter(draw(OUTPUTS, INPUTS, seed=1).detach())
    assert has_faster_products(x, weight, LEAST_PRODUCTS)
    assert not has_faster_products(x[: linear_maps.LEAST_ROWS - 1], weight, 1)
    assert not has_faster_products(x, weight[:16, :16], LEAST_PRODUCTS)
    assert not has_faster_products(*exact(x, weight), LEAST_PRODUCTS)
    assert not has_faster_products(x.to("meta"), weight.to("meta"), LEAST_PRODUCTS)
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x, weight).dtype == torch.bfloat16
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    assert not has_faster_products(x, weight, LEAST_PRODUCTS)


def test_maps_within_transforms_are_those_of_torch() -> None:
    x, weights = draw(MODELS, ROWS, INPUTS), draw(MODELS, OUTPUTS, INPUTS, seed=1)
    y = torch.vmap(lambda rows, weight: linear(rows, weight))(x, weights)
    assert_near(y, by_definition(x.detach().double(), weights.detach().double(), None))
    gradient = torch.func.grad(lambda weight: linear(x[0], weight).sum())(weights[0])
    assert_near(gradient, x[0].detach().double().sum(0).expand(OUTPUTS, INPUTS))


def test_a_compiled_map_is_one_graph() -> None:
    x, weight = draw(ROWS, INPUTS), draw(OUTPUTS, INPUTS, seed=1)
    compiled = torch.compile(linear, backend="eager", fullgraph=True)
    assert_near(compiled(x, weight), by_definition(x.detach().double(), weight.detach().double(), None))


@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_map_takes_any_rows(strict: bool) -> None:
    layer = Linear(INPUTS, OUTPUTS, bias=True)
    layer.initialise(torch.Generator().manual_seed(0))
    x = draw(8, ROWS, INPUTS).detach()
    sizes = ({0: Dim("batch"), 1: Dim("length")},)
    program = torch.export.export(layer, (x,), dynamic_shapes=sizes, strict=strict).module()
    for rows in (x, x[:3, :5]):
        torch.testing.assert_close(program(rows), layer(rows))


def test_processors_of_intel_keep_what_torch_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    linear_maps.onednn_has_wider_vectors.cache_clear()
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "vendor_id : GenuineIntel\n")
    try:
        assert not linear_maps.onednn_has_wider_vectors()
    finally:
        linear_maps.onednn_has_wider_vectors.cache_clear()


class Strides(TorchDispatchMode):
    """Notes the strides of all that oneDNN multiplies."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[int] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.mkldnn._linear_pointwise.default:
            self.found += [stride for each in args[:2] for stride in each.stride()]
        return func(*args, **(kwargs or {}))


def test_onednn_never_multiplies_an_expanded_gradient() -> None:
    """It reads a stride of 0 about a hundred times slower; a sum has such a gradient."""
    x, weight = draw(ROWS, 8 * INPUTS), draw(OUTPUTS, 8 * INPUTS)
    with Strides() as strides:
        linear(x, weight).sum().backward()
    assert strides.found
    assert 0 not in strides.found
    assert_near(x.grad, weight.detach().double().sum(0).expand(ROWS, -1))
