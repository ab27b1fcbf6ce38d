"""Recomputed states: outputs and gradients equal those of a scan that saves all states."""

from contextlib import nullcontext
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from activemem.blocks import build
from activemem.blocks.layers.vector_states import scans as states
from activemem.blocks.layers.vector_states.scans import read_states, scan
from activemem.blocks.testing.fixtures import make_generator, saved_bytes
from activemem.grammar import analyse

from ...testing.live_memory import LiveMemory


def rows(length, dtype=torch.float64):
    """Return steps, u, rates, keys, queries and a state: two sequences, three channels, state size 2."""
    shapes = ((2, length, 3), (2, length, 3), (3, 2), (2, length, 2), (2, length, 2), (2, 3, 2))
    drawn = [torch.randn(shape, generator=make_generator(len(shape)), dtype=dtype) for shape in shapes]
    drawn[0], drawn[2] = drawn[0].abs(), -drawn[2].abs()
    return [each.requires_grad_() for each in drawn]


def scanned(steps, u, rates, k, q, state, negative=False):
    decay = (steps.unsqueeze(-1) * rates).exp()
    h = scan(2 * decay - 1 if negative else decay, (steps * u).unsqueeze(-1) * k.unsqueeze(2), state)
    return (h @ q.unsqueeze(-1)).squeeze(-1), h[:, -1]


@pytest.fixture(params=["short pieces", "pieces of an accelerator"])
def _pieces(request, monkeypatch):
    """Use pieces of four positions stepwise, or of six with a scan."""
    size = 4 if request.param == "short pieces" else 6
    monkeypatch.setattr(states, "PIECE", 4)
    monkeypatch.setattr(states, "_pieces", lambda *each: zip(*(x.split(size, 1) for x in each), strict=True))


def read(*given, negative=False):
    return read_states(*given[:5], state=given[5], negative=negative)


@pytest.mark.usefixtures("_pieces")
@pytest.mark.parametrize("held", [states.HELD, 4 * 6])
@pytest.mark.parametrize("length", [1, 6, 17])
@pytest.mark.parametrize("negative", [False, True])
def test_outputs_have_the_numbers_and_gradients_of_a_scan(length, negative, held, monkeypatch):
    monkeypatch.setattr(states, "HELD", held)  # all sequences together, or one by one
    given = rows(length)
    found, expected = read(*given, negative=negative), scanned(*given, negative)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, rtol=1e-12, atol=1e-12)
    weights = [torch.randn(each.shape, generator=make_generator(7), dtype=torch.float64) for each in found]
    gradients = [
        torch.autograd.grad(sum((y * w).sum() for y, w in zip(each, weights, strict=True)), given)
        for each in (found, expected)
    ]
    for one, other in zip(*gradients, strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("_pieces")
@pytest.mark.parametrize("negative", [False, True])
def test_gradients_have_gradients(negative):
    assert torch.autograd.gradgradcheck(partial(read, negative=negative), rows(9), fast_mode=True)


@pytest.mark.parametrize("length", [40, 256])
def test_training_keeps_less_than_the_states_alone_would_be(length):
    sizes = {"d_model": 64, "vocab": 7, "causal": True, "dropout": 0.0}
    text = "mamba(channels=64)"
    stated = analyse(text, length=length, **sizes).memory(4).activations
    assert stated == pytest.approx(saved_bytes(build(text, **sizes), batch=4, length=length), rel=0.001)
    assert stated < 4 * 4 * length * 64 * 16


def test_an_accelerator_holds_the_states_of_some_sequences_at_a_time(monkeypatch):
    """On torch's meta device: a step would otherwise hold the states of all sequences, four times as many."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    sizes = ((64, 128, 256), (64, 128, 256), (256, 16), (64, 128, 16), (64, 128, 16))
    steps, u, rates, k, q = given = [torch.empty(size, device="meta", requires_grad=True) for size in sizes]
    with LiveMemory(given) as live:
        y, last = read_states(steps, u, rates, k, q, state=None, negative=False)
        (y.sum() + last.sum()).backward()
    assert (y.shape, last.shape) == ((64, 128, 256), (64, 256, 16))
    assert live.peak < 14 * 4 * states.ACCELERATED_HELD


def test_states_are_in_single_precision_whatever_is_set_around():
    given = [each.detach().float() for each in rows(9)]
    steps, u, rates, k, q, _ = given
    with torch.autocast("cpu", torch.bfloat16):
        half = read_states(steps, u.bfloat16(), rates, k.bfloat16(), q.bfloat16(), state=None, negative=False)
    whole = scanned(*given[:5], None)
    assert [each.dtype for each in half] == [torch.float32] * 2
    assert_close(half[0], whole[0], rtol=0.05, atol=0.1)
