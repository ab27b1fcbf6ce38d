"""Products of tiles by oneDNN are those of torch, however matrices lie, and so are windows that use them."""

import pytest
import torch
from torch.testing import assert_close

from activemem.blocks.core import linear_maps
from activemem.blocks.layers.windows import tile_products
from activemem.blocks.layers.windows.tile_products import add_product, multiply, write_product
from activemem.blocks.testing.fixtures import make_block, parse_block, random_sequences
from activemem.grammar.vocabulary import attention_window

ROWS, INNER, COLUMNS = 40, 6, 50


@pytest.fixture
def taken(monkeypatch):
    """Every processor that has oneDNN takes all products here; how many it has taken."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    counted, product = [], tile_products.onednn_product

    def counting(*given):
        counted.append(1)
        return product(*given)

    monkeypatch.setattr(linear_maps, "onednn_has_wider_vectors", lambda: True)
    monkeypatch.setattr(linear_maps, "LEAST_ROWS", 1)
    monkeypatch.setattr(tile_products, "LEAST_PRODUCTS", 1)
    monkeypatch.setattr(tile_products, "onednn_product", counting)
    return counted


def draw(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape)))


def laid_out(numbers):
    """The same numbers row by row or column by column, without gaps or with gaps between these."""
    gaps, across = numbers.new_zeros(*numbers.shape[:-1], 77), numbers.mT.contiguous().mT
    gaps[..., 5 : 5 + numbers.shape[-1]] = numbers
    apart = gaps.new_zeros(*numbers.shape[:-2], numbers.shape[-1], 77).mT[..., 3 : 3 + numbers.shape[-2], :]
    return [numbers.clone(), across, gaps[..., 5 : 5 + numbers.shape[-1]], apart.copy_(numbers)]


@pytest.mark.parametrize("before", [(), (3,)], ids=["one", "several"])
def test_products_are_those_of_torch_however_their_matrices_lie(taken, before):
    a, b = draw(*before, ROWS, INNER), draw(*before, INNER, COLUMNS)
    expected, added = a @ b, draw(*before, ROWS, COLUMNS)
    layouts = [(one, other) for one in laid_out(a) for other in laid_out(b)]
    for one, other in layouts:
        assert_close(multiply(one, other), expected)
        for out in laid_out(torch.zeros_like(expected)):
            write_product(out, one, other)
            assert_close(out, expected)
        for into in laid_out(added):
            add_product(into, one, other)
            assert_close(into, added + expected)
    assert len(taken) == 9 * len(layouts) * (3 if before else 1)


def test_few_products_and_those_of_other_precisions_are_those_of_torch(taken, monkeypatch):
    a, b = draw(ROWS, INNER), draw(INNER, COLUMNS)
    assert_close(multiply(a.double(), b.double()), a.double() @ b.double())
    monkeypatch.setattr(tile_products, "LEAST_PRODUCTS", ROWS * INNER * COLUMNS + 1)
    assert multiply(a, b).equal(a @ b)
    out, into = torch.zeros(ROWS, COLUMNS), torch.ones(ROWS, COLUMNS)
    write_product(out, a, b)
    add_product(into, a, b)
    assert_close([out, into], [a @ b, 1 + a @ b])
    assert not taken


@pytest.mark.parametrize(
    "text",
    [
        "sa(heads=2, pos=relative, span=30, pos_values=true)",
        "all_attn(N=20, span=40, heads=2)",
        "all_attn(N=20, span=40, heads=2, adaptive=true, ramp=5)",
    ],
)
@pytest.mark.parametrize("dropped", [0.0, 0.3])
def test_windows_in_tiles_have_their_numbers(taken, text, dropped, monkeypatch):
    monkeypatch.setattr(attention_window, "CHUNK_LENGTH", 16)
    monkeypatch.setattr(attention_window, "MAX_WHOLE_SCORES", 0)
    x, found = random_sequences(2, 60, dtype=torch.float32), []
    for least in (1, 2**60):
        monkeypatch.setattr(tile_products, "LEAST_PRODUCTS", least)
        block = make_block(parse_block(text), causal=True, dtype=torch.float32)
        given = x.clone().requires_grad_()
        torch.manual_seed(0)
        block.train().window.dropout.rate = dropped
        y = block(given)
        y.square().sum().backward()
        found.append([y, given.grad, *(weight.grad for weight in block.parameters())])
    assert taken
    for one, other in zip(*found, strict=True):
        assert_close(one, other, rtol=1e-4, atol=1e-5)
