"""Windows by FlexAttention against plain products; on a CPU as it is without a compiler."""

import logging
from collections import Counter
from functools import partial
from itertools import product

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from torch.nn.attention import flex_attention
from torch.testing import assert_close

from activemem.blocks.layers import window_attention
from activemem.blocks.layers.kernels import choice as kernels
from activemem.blocks.layers.windows import choice
from activemem.blocks.layers.windows.choice import Kernel, compute_window, fused_fault, trial_fault
from activemem.blocks.layers.windows.flex import _visible, call_kind, compiled, fused_window, window_flex
from activemem.blocks.layers.windows.pieces import WindowForm, WindowInputs, iter_chunks, window_products
from activemem.blocks.testing.fixtures import make_block, parse_block, prefix_mask, random_sequences

HEADS = "heads=2, head_width=3"
BLOCKS = [
    f"sa({HEADS}, span=3)",
    f"sa({HEADS}, pos=relative, span=30, adaptive=true, ramp=9, self=true)",
    f"sa({HEADS}, span=9, logit_cap=0.3, adaptive=true)",
    f"all_attn(N=5, span=9, {HEADS})",
    f"all_attn(N=5, span=90, {HEADS}, adaptive=true)",
    f"head_split(N=0, span=6, {HEADS})",
]
every_block = pytest.mark.parametrize("text", BLOCKS)
cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def ways(text, monkeypatch, *, causal=True):
    """A block whose heads see differently far, and what sets how it is computed."""
    block = make_block(parse_block(text), causal=causal)
    if "adaptive" in text:
        with torch.no_grad():
            block.window.spans.z.copy_(torch.linspace(0.1, 0.8, len(block.window.spans.z)))
        block.after_optimiser_step()

    def compute_by(way):
        monkeypatch.setattr(window_attention, "compute_window", lambda form, given, _kept: way(form, given))

    return block, compute_by


def outputs(block):
    """Of sequences that are whole, padded, and, where it is causal, behind a past."""
    x, mask = random_sequences(3, 29), prefix_mask([29, 1, 17], 29)
    found = [block(x), block(x, mask)[mask]]
    if block.context_length and block.window.window.causal:
        found += [block.forward_with_past(x[:, place:], x[:, :place]) for place in (4, 28)]
    return found


@pytest.mark.heavy  # loads torch's compiler
@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
@every_block
def test_outputs_are_those_of_products(text, causal, monkeypatch):
    monkeypatch.setattr(flex_attention, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True, raising=False)
    block, compute_by = ways(text, monkeypatch, causal=causal)
    found = []
    with torch.no_grad():
        for way in (fused_window, window_products):
            compute_by(way)
            found.append(outputs(block))
    for one, other in zip(*found, strict=True):
        assert_close(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # the compiler's own
@every_block
def test_gradients_are_those_of_products(text, monkeypatch):
    monkeypatch.setattr(
        flex_attention, "_validate_device", lambda *_: None
    )  # it has none on a CPU, but for this
    torch.compiler.reset()
    block, compute_by = ways(text, monkeypatch)
    found = []
    for way in (fused_window, window_products):
        compute_by(way)
        total = sum(y.sin().sum() for y in outputs(block))
        found.append(torch.autograd.grad(total, list(block.parameters())))
    for one, other in zip(*found, strict=True):
        assert_close(one, other, rtol=1e-9, atol=1e-9)


def window(dtype=torch.float32, head_width=16, **given):
    """A form and inputs of 40 queries behind 30 keys."""
    q, k = (torch.randn(2, 1, length, head_width, dtype=dtype) for length in (40, 70))
    vectors = torch.randn(20, head_width, dtype=dtype)
    form = WindowForm(
        pieces=tuple(iter_chunks(40, 30, 1, 20)),
        pos_values=given.pop("pos_values", False),
        first_sees_nothing=False,
    )
    return form, WindowInputs(q, k, k, vectors, **given)


def test_what_fused_kernels_cannot_do_is_told():
    kept = [torch.ones(2, 1, 40, 60, dtype=torch.bool)]
    assert fused_fault(*window(), kept) == "weights are dropped ([model] attention_dropout)"
    assert fused_fault(*window(pos_values=True)) == "position vectors are on values too (pos_values)"
    assert fused_fault(*window(dtype=torch.float64)) == "numbers have 64 bits"
    assert fused_fault(*window(head_width=8)) == "heads are narrower than 16"


@pytest.mark.parametrize("beside", [{"vectors": (8192, 64)}, {"fading": (8, 1, 1, 8192)}], ids=str)
def test_more_scores_by_distance_than_32_bits_count_are_computed_by_products(beside, monkeypatch):
    """Behind 2³¹ numbers FlexAttention would read others, without a word (pytorch 187904)."""
    monkeypatch.setattr(choice, "trial_fault", lambda _: None)
    form, given = window()
    for batch, fault in ((63, None), (64, "scores by distance are more than 2,147,483,647")):
        q, k = (torch.empty(8, batch, length, 64, device="meta") for length in (512, 8703))
        there = {name: torch.empty(size, device="meta") for name, size in beside.items()}
        assert fused_fault(form, given._replace(q=q, k=k, v=k, **{"vectors": None, **there})) == fault


@pytest.mark.heavy
def test_a_device_on_which_a_small_window_fails_has_products():
    assert fused_fault(*window()).startswith(
        "NotImplementedError: FlexAttention does not support backward on CPU"
    )


def kernel_of(**made_for):
    """A kernel for most that a window can have."""
    kinds = {"by_distance": True, "mask": True, "capped": True, "many_queries": True, **made_for}
    return Kernel(torch.device("cpu"), torch.float32, 16, **kinds)


def test_a_window_that_is_not_as_by_products_has_products(monkeypatch):
    place, kernel = "activemem.blocks.layers.windows.flex.fused_window", kernel_of()
    monkeypatch.setattr(place, lambda *args: 1.1 * window_products(*args))
    assert trial_fault.__wrapped__(kernel) == "a small window was not as by products"
    monkeypatch.setattr(place, window_products)
    assert trial_fault.__wrapped__(kernel) is None


def test_windows_of_other_sizes_are_tried_too_as_torch_compiles_them_otherwise(monkeypatch):
    sizes = []

    def wrong_at_another_size(form, given):
        sizes.append(tuple(given.q.shape[1:3]))
        return window_products(form, given) * (1.0 if sizes[-1] == sizes[0] else 1.1)

    monkeypatch.setattr("activemem.blocks.layers.windows.flex.fused_window", wrong_at_another_size)
    assert trial_fault.__wrapped__(kernel_of()) == "a small window was not as by products"
    assert sizes == [(2, 160), (3, 300)]


def test_few_queries_are_tried_by_themselves_as_torch_has_a_kernel_for_them(monkeypatch):
    asked = []
    monkeypatch.setattr(choice, "trial_fault", asked.append)
    for length in (127, 128):
        q, k = (torch.randn(2, 1, positions, 16) for positions in (length, length + 30))
        form = WindowForm(
            pieces=tuple(iter_chunks(length, 30, 1, 20)), pos_values=False, first_sees_nothing=False
        )
        fused_fault(form, WindowInputs(q, k, k))
    assert [kernel.many_queries for kernel in asked] == [False, True]
    sizes = []
    monkeypatch.setattr(
        "activemem.blocks.layers.windows.flex.fused_window",
        lambda form, given: sizes.append(given.q.shape[2]) or window_products(form, given),
    )
    assert trial_fault.__wrapped__(kernel_of(many_queries=False)) is None
    assert sizes and max(sizes) < 128


def test_what_is_kept_of_a_window_can_be_trained_with_though_inference_asked_first():
    _visible.cache_clear()
    with torch.inference_mode():
        found = _visible(40, 30, 2, (1, 20), torch.device("cpu"))
    kept = [each for each in found.as_tuple(flatten=True) if isinstance(each, torch.Tensor)]
    held = [cell.cell_contents for cell in found.mask_mod.__closure__]
    assert len(kept) > 2 and len(held) == 4
    assert not any(each.is_inference() for each in (*kept, *held))


@pytest.mark.heavy
def test_kernels_are_made_for_every_kind_of_window_of_a_process(monkeypatch):
    """More kinds than torch compiles of one code, before it holds all scores of a call instead."""
    counter = CompileCounter()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=counter))
    torch.compiler.reset()
    compiled.cache_clear()
    try:
        for kinds, (head_width, seen) in enumerate(product(range(16, 22), (None, [70])), 1):
            mask = None if seen is None else prefix_mask(seen, 70)
            form, given = window(head_width=head_width, mask=mask)
            found = window_flex(form, given, compiled(call_kind(form, given)))
            assert counter.frame_count == kinds
            assert_close(found, window_products(form, given), rtol=1e-4, atol=1e-5)
    finally:
        compiled.cache_clear()


@pytest.mark.heavy
def test_no_kind_of_window_is_compiled_as_often_as_torch_gives_up(monkeypatch):
    """Torch compiles a past, one sequence and one block by themselves, and then each size that changes."""
    made, kinds = Counter(), []

    def note(graph, _inputs):
        made[kinds[-1]] += 1
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=note))
    monkeypatch.setattr("torch._dynamo.config.fail_on_recompile_limit_hit", True)
    torch.compiler.reset()
    compiled.cache_clear()
    try:
        for batch, past, length in product((3, 1, 2), (0, 90, 300), (200, 300, 40, 128)):
            q, k = (torch.randn(2, batch, positions, 16) for positions in (length, past + length))
            pieces = tuple(iter_chunks(length, past, 0, 250))
            form = WindowForm(pieces=pieces, pos_values=False, first_sees_nothing=False)
            given = WindowInputs(q, k, k, torch.randn(form.max_distance + 1, 16))
            kinds.append(call_kind(form, given))
            with torch.no_grad():
                found = window_flex(form, given, compiled(kinds[-1]))
            assert_close(found, window_products(form, given), rtol=1e-4, atol=1e-5)
        assert max(made.values()) <= 4
    finally:
        compiled.cache_clear()


def test_models_that_are_stacked_are_known():
    seen = []

    def look(numbers, more):
        seen.append((kernels.is_stacked(numbers), kernels.is_stacked(more)))
        return numbers

    more = torch.ones(2, requires_grad=True)
    torch.vmap(look, (0, None))(torch.ones(3, 2, requires_grad=True), more)
    assert seen == [(True, False)]
    assert not kernels.is_stacked(more)


def test_a_reason_is_told_once(caplog):
    kernels.tell_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        kernels.tell_once("nobody works", "it is Sunday")
        kernels.tell_once("nobody works", "it is Sunday")
    assert caplog.messages == ["nobody works: it is Sunday"]


@cuda
@pytest.mark.filterwarnings("ignore")  # torch's compiler uses what torch itself says is deprecated
@every_block
def test_on_a_gpu_a_window_is_fused_and_gives_what_products_give(text, monkeypatch):
    faults = []
    monkeypatch.setattr(
        choice, "trial_fault", lambda kernel: faults.append(trial_fault(kernel)) or faults[-1]
    )
    text = text.replace("head_width=3", "head_width=16").replace("span=9,", "span=90,")
    block, compute_by = ways(text, monkeypatch)
    block, x = block.float().cuda(), random_sequences(2, 300, dtype=torch.float32).cuda()
    found = []
    for way in (lambda form, given: compute_window(form, given), window_products):
        compute_by(way)
        y = block(x)
        found.append([y.detach(), *torch.autograd.grad(y.sin().sum(), list(block.parameters()))])
    assert set(faults) == {None}
    for one, other in zip(*found, strict=True):
        assert_close(one, other, rtol=1e-2, atol=1e-2)
