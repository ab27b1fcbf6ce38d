"""Several gradients at once through operations of ours are those of each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor
from torch._vmap_internals import _vmap

from activemem.blocks.core import correlation
from activemem.blocks.core.correlation import correlate
from activemem.blocks.core.torch_modes import one_gradient_at_a_time
from activemem.blocks.testing.fixtures import make_block, parse_block, random_sequences
from activemem.blocks.testing.module_checks import assert_gradients_come_several_at_once

NEEDS_A_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Normal numbers that want a gradient."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()


def operations(y: Tensor) -> set[str]:
    """The names of all that a gradient passes on its way from an output."""
    names, left = set[str](), [y.grad_fn]
    seen = set(left)
    while left:
        if (node := left.pop()) is not None:
            names.add(node.name())
            new = {behind for behind, _ in node.next_functions} - seen
            seen |= new
            left += new
    return names


@pytest.mark.parametrize(
    ("operation", "text", "length"),
    [
        ("_Convolution", "mamba", 20),
        ("_GatedHeads", "mamba", 20),
        ("SelectiveRead", "mamba", 20),
        ("DiagonalScan", "min_gru", 20),
        ("SharedKeySums", "ssd(heads=4)", 20),
        ("_Tiles", "all_attn(N=1024, heads=4, span=64)", 20),
        ("_ByFrequencies", "cgru(k=10)", 20),
    ],
)
def test_several_gradients_of_a_block_come_at_once(operation: str, text: str, length: int) -> None:
    block = make_block(parse_block(text), causal=False, width=64, dtype=torch.float32)
    x = random_sequences(32, length, width=64, dtype=torch.float32).requires_grad_()
    y = block(x)
    assert f"{operation}Backward" in operations(y)
    assert_gradients_come_several_at_once(y, (x, *block.parameters()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_several_gradients_by_frequencies_come_at_once(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(correlation, "is_faster_by_frequencies", lambda *_: True)
    given = draw(4, 20, 8, dtype=dtype), draw(6, 10, 8, seed=1, dtype=dtype), draw(6, seed=2, dtype=dtype)
    assert_gradients_come_several_at_once(correlate(*given, left=4, right=5, by_frequencies=True), given)


def test_gradients_that_come_at_once_have_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlation, "is_faster_by_frequencies", lambda *_: True)
    x, weight = draw(4, 9, 3, dtype=torch.float64), draw(5, 3, 3, seed=1, dtype=torch.float64)
    y = correlate(x, weight, left=1, right=1, by_frequencies=True)
    two = draw(2, *y.shape, seed=2, dtype=torch.float64).detach()
    (at_once,) = torch.autograd.grad(y, [weight], two, is_grads_batched=True, create_graph=True)
    apart = [torch.autograd.grad(y, [weight], each, create_graph=True)[0] for each in two]
    found, expected = (
        torch.autograd.grad(each.square().sum(), [x]) for each in (at_once, torch.stack(apart))
    )
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_a_jacobian_is_computed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlation, "is_faster_by_frequencies", lambda *_: True)
    x, weight = draw(2, 6, 3, dtype=torch.float64), draw(2, 3, 3, seed=1, dtype=torch.float64)

    def slide(x: Tensor) -> Tensor:
        return correlate(x, weight, left=1, right=1, by_frequencies=True).tanh()

    found, expected = (torch.autograd.functional.jacobian(slide, x, vectorize=each) for each in (True, False))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.heavy  # loads torch's compiler
@pytest.mark.filterwarnings("ignore:.*autograd.function.Function:DeprecationWarning")  # of tracing a scan
@pytest.mark.parametrize("text", ["mamba", "min_gru", "ssd(heads=4)"])
def test_a_compiled_block_is_one_graph(text: str) -> None:
    block = make_block(parse_block(text), causal=False, width=8, dtype=torch.float32)
    x = random_sequences(2, 6, width=8, dtype=torch.float32).requires_grad_()
    torch.compiler.reset()
    found = torch.compile(block, backend="eager", fullgraph=True)(x)
    torch.testing.assert_close(*(torch.autograd.grad(each.sum(), x) for each in (found, block(x))))


def test_several_gradients_come_at_once_to_the_thread_of_a_device() -> None:
    def backward(_: object, gradient: Tensor) -> tuple[Tensor]:
        assert gradient.shape == (3,)
        return (gradient * 2.0,)

    def in_a_thread(gradients: Tensor) -> Tensor:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(one_gradient_at_a_time(backward), None, gradients).result()[0]

    gradients = draw(4, 3).detach()
    torch.testing.assert_close(_vmap(in_a_thread)(gradients), 2.0 * gradients)


@NEEDS_A_GPU
def test_several_gradients_come_at_once_on_a_gpu() -> None:
    block = make_block(parse_block("mamba"), causal=False, width=64, dtype=torch.float32).cuda()
    x = random_sequences(32, 20, width=64, dtype=torch.float32).cuda().requires_grad_()
    assert_gradients_come_several_at_once(block(x), (x, *block.parameters()))
