"""Windows whose kernels fail at the sizes of a step, though a small one did not, are computed by products."""

import logging
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch._dynamo.exc import BackendCompilerFailed
from torch._dynamo.testing import CompileCounter
from torch.nn.attention import flex_attention
from torch.testing import assert_close

from activemem.blocks.core.dropout import given_dropout, noting_dropout
from activemem.blocks.layers.kernels import choice as kernels
from activemem.blocks.layers.windows import choice, flex
from activemem.blocks.layers.windows.choice import window_or_fault
from activemem.blocks.layers.windows.flex import call_kind, compiled, window_flex
from activemem.blocks.layers.windows.pieces import WindowForm, WindowInputs, iter_chunks, window_products

SHARED_MEMORY = "out of resource: shared memory, Required: 143360, Hardware limit: 101376."


class _FailsBackward(torch.autograd.Function):
    """Passes numbers on, and has no gradient for more than so many queries."""

    @staticmethod
    def forward(ctx, y, most):
        ctx.most, ctx.queries = most, y.shape[2]
        return y.clone()

    @staticmethod
    def backward(ctx, grad):
        if ctx.queries > ctx.most:
            raise RuntimeError(f"No valid triton configs. OutOfResources: {SHARED_MEMORY}\nand more")
        return grad, None


@pytest.fixture(name="calls", autouse=True)
def _calls(monkeypatch):
    """The queries of each call of the kernels, which are products here, and fail as each test says."""
    calls = []

    def fused(form, given):
        calls.append(given.q.shape[2])
        return window_products(form, given)

    for known in (choice._failed, choice._tried):
        monkeypatch.setattr(choice, "_failed" if known is choice._failed else "_tried", type(known)())
    monkeypatch.setattr(choice, "trial_fault", lambda _kernel: None)
    monkeypatch.setattr(flex, "fused_window", fused)
    kernels.tell_once.cache_clear()
    return calls


def window(length, *, batch=2, grad=True):
    """A form and inputs of so many queries behind 30 keys."""
    numbers = torch.Generator().manual_seed(length)
    q, k, v = (
        torch.randn(2, batch, positions, 16, generator=numbers, requires_grad=grad)
        for positions in (length, length + 30, length + 30)
    )
    vectors = torch.randn(20, 16, generator=numbers, requires_grad=grad)
    pieces = tuple(iter_chunks(length, 30, 1, 20))
    return WindowForm(pieces=pieces, pos_values=False, first_sees_nothing=False), WindowInputs(
        q, k, v, vectors, mask=torch.arange(length + 30).expand(batch, -1) != 3
    )


def on_gpu(form, given):
    """As `compute_window` on a GPU."""
    found = window_or_fault(form, given)
    if isinstance(found, torch.Tensor):
        return found
    kernels.tell_once("windows are not computed by FlexAttention", found)
    return window_products(form, given)


def with_gradients(form, given, compute):
    wanted = [each for each in given if each is not None and each.requires_grad]
    y = compute(form, given)
    return [y.detach(), *torch.autograd.grad(y.sin().sum(), wanted)]


def test_a_backward_pass_that_fails_at_a_real_size_is_found_before_the_step_relies_on_it(
    calls, monkeypatch, caplog
):
    plain = flex.fused_window
    monkeypatch.setattr(flex, "fused_window", lambda *args: _FailsBackward.apply(plain(*args), 300))
    state = torch.get_rng_state()
    with caplog.at_level(logging.WARNING):
        for length in (200, 400, 500):
            form, given = window(length)
            found = with_gradients(form, given, on_gpu)
            for one, other in zip(found, with_gradients(form, given, window_products), strict=True):
                assert torch.equal(one, other)
            assert all(each is None or each.grad is None for each in given)
    assert calls == [200, 200, 400]  # tried and computed, tried, known to fail
    assert caplog.messages == [
        f"windows are not computed by FlexAttention: RuntimeError: "
        f"No valid triton configs. OutOfResources: {SHARED_MEMORY}"
    ]
    assert torch.get_rng_state().equal(state)
    with torch.no_grad():  # of another kind, which has not failed
        assert on_gpu(form, given).equal(window_products(form, given))
    assert calls == [200, 200, 400, 500]


def test_a_call_without_gradients_that_fails_has_products_and_others_kernels(calls, monkeypatch):
    plain = flex.fused_window

    def fails_for_many(form, given):
        if given.q.shape[1] > 3:
            inner = ValueError("Triton Error [CUDA]: invalid argument\nand more")
            raise BackendCompilerFailed(lambda: None, inner, None)
        return plain(form, given)

    monkeypatch.setattr(flex, "fused_window", fails_for_many)
    with torch.no_grad():
        assert isinstance(window_or_fault(*window(150)), torch.Tensor)
        told = "ValueError: Triton Error [CUDA]: invalid argument"
        assert window_or_fault(*window(150, batch=4)) == told
        assert window_or_fault(*window(150)) == told  # what has failed is not tried again
    assert isinstance(window_or_fault(*window(150)), torch.Tensor)  # which is of another kind
    assert calls == [150] * 3


def test_each_size_is_tried_once(calls):
    for length in (150, 150, 160, 150):
        window_or_fault(*window(length))
    assert calls == [150, 150, 150, 160, 160, 150]


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("backend='inductor' raised:\nOutOfMemoryError: CUDA out of memory."),
    ],
    ids=["plain", "the compiler's"],
)
@pytest.mark.parametrize("grad", [True, False])
def test_memory_that_is_short_is_no_fault_of_a_kernel(monkeypatch, error, grad):
    def fail(*_):
        raise error

    working = flex.fused_window
    monkeypatch.setattr(flex, "fused_window", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        window_or_fault(*window(150, grad=grad))
    monkeypatch.setattr(flex, "fused_window", working)
    assert isinstance(window_or_fault(*window(150, grad=grad)), torch.Tensor)


@pytest.mark.heavy  # loads torch's compiler
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # the compiler's own
def test_what_is_tried_is_compiled_for_what_is_computed(monkeypatch):
    counter = CompileCounter()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=counter))
    monkeypatch.setattr(flex_attention, "_validate_device", lambda *_: None)  # else it has no gradients here
    monkeypatch.setattr(
        flex,
        "fused_window",
        lambda form, given: window_flex(form, given, compiled(call_kind(form, given))),
    )
    made = []
    for compute in (flex.fused_window, on_gpu):  # without what is tried, and with it
        torch.compiler.reset()
        compiled.cache_clear()
        counter.clear()
        for length in (150, 150, 190, 230, 300):
            form, given = window(length)
            found = with_gradients(form, given, compute)
            made.append(counter.frame_count)
            for one, other in zip(found, with_gradients(form, given, window_products), strict=True):
                assert_close(one, other, rtol=1e-4, atol=1e-4)
    compiled.cache_clear()
    assert made[:5] == made[5:]
    assert made[0] == 1


def test_a_pass_that_notes_dropout_on_a_gpu_has_no_kernels(monkeypatch, calls):
    """As packs have it before their first step, which then compute by products."""
    form, given = window(150)
    q = SimpleNamespace(device=torch.device("cuda"), shape=given.q.shape)
    monkeypatch.setattr(choice, "is_stacked", lambda _: False)
    monkeypatch.setattr(
        choice, "window_or_fault", lambda _, found, __: window_or_fault(form, found._replace(q=given.q))
    )
    monkeypatch.setattr(choice, "window_products", lambda *_: "products")
    with noting_dropout():
        assert choice.compute_window(form, given._replace(q=q)) == "products"
    assert calls == []
    with given_dropout([]):
        assert isinstance(choice.compute_window(form, given._replace(q=q)), torch.Tensor)
    assert calls == [150, 150]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.filterwarnings("ignore")
def test_a_gpu_takes_more_sequences_than_a_launch_has_by_products(monkeypatch):
    monkeypatch.undo()
    form, given = window(140, batch=70_000, grad=False)
    given = WindowInputs(*(each.half().cuda() for each in given[:4]))
    with torch.no_grad():
        found = choice.compute_window(form, given)
        for rows in (slice(9), slice(-9, None)):
            part = [each[:, rows] for each in given[:3]]
            expected = window_products(form, WindowInputs(*part, given.vectors))
            assert_close(found[:, rows], expected, rtol=1e-2, atol=1e-2)
