"""Kernels of flash-linear-attention against the plain forms: on a CPU their definitions stand in for them."""

import inspect
import logging
import sys
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from activemem.blocks.core.residual_stack import recomputed
from activemem.blocks.layers.kernels import choice, recurrences
from activemem.blocks.testing.fixtures import make_block, make_generator, parse_block, random_sequences

from . import definitions

HEADS = "heads=2, head_width=4"
BLOCKS = {
    f"linear_attn({HEADS})": "chunk_simple_gla",
    f"retention({HEADS})": "chunk_simple_gla",
    f"ssd({HEADS}, state=5)": "chunk_simple_gla",
    f"gla({HEADS}, short_conv=2)": "chunk_gla",
    f"delta({HEADS})": "chunk_delta_rule",
    f"delta({HEADS}, gate=true, negative=true)": "chunk_gated_delta_rule",
    f"delta_product({HEADS}, n=2)": "chunk_gated_delta_product",
    f"delta_product({HEADS}, n=3, gate=true)": "chunk_gated_delta_product",
    f"kda({HEADS})": "chunk_kda",
    f"rwkv7({HEADS})": "chunk_rwkv7",
    f"fox({HEADS})": "parallel_forgetting_attn",
}
FOLDERS = {"parallel_forgetting_attn": "forgetting_attn"}
every_block = pytest.mark.parametrize("text", BLOCKS)
cuda = pytest.mark.skipif(
    not torch.cuda.is_available() or choice._installed() is None, reason="needs a GPU and the extra fla"
)
LENGTH = 70


@pytest.fixture
def called(monkeypatch):
    """The names of the kernels that were called, of which their definitions stand in."""
    names = []

    def operation(folder, name):
        assert folder == FOLDERS.get(name, name.removeprefix("chunk_"))
        names.append(name)
        return getattr(definitions, name)

    monkeypatch.setattr(choice, "_may_have_kernel", lambda q, at: q.shape[at] >= choice.MIN_KERNEL_LENGTH)
    monkeypatch.setattr(choice, "_installed", lambda: "0.6.0")
    monkeypatch.setattr(recurrences, "operation", operation)
    caches = (choice.trial_fault, choice.tell_once)
    for each in caches:
        each.cache_clear()
    yield names
    for each in caches:
        each.cache_clear()


def whole_and_in_pieces(block, x):
    """What a block gives, and what it gives and keeps of a sequence in two pieces."""
    y = block(x)
    first, state = block.step_with_grad(x[:, :66], None)
    second, state = block.step_with_grad(x[:, 66:], state)
    return y, first, second, state


def outputs_and_gradients(block, x):
    outputs = whole_and_in_pieces(block, x)
    total = sum(y.sin().sum() for y in outputs)
    return [*outputs, *torch.autograd.grad(total, list(block.parameters()))]


def prepared(text, **options):
    """A block all of whose numbers matter, and sequences for it."""
    block = make_block(parse_block(text), causal=True, **options)
    with torch.no_grad():
        for parameter in block.parameters():
            noise = torch.randn(parameter.shape, generator=make_generator(1), dtype=parameter.dtype)
            parameter.add_(0.1 * noise)
    return block


@every_block
def test_kernels_give_what_plain_forms_give(text, called, monkeypatch):
    block, x = prepared(text), random_sequences(2, 66 + LENGTH)
    found = outputs_and_gradients(block, x)
    assert set(called) == {BLOCKS[text]}
    monkeypatch.setattr(choice, "_may_have_kernel", lambda *_: False)
    for one, other in zip(found, outputs_and_gradients(block, x), strict=True):
        assert_close(one, other, rtol=1e-9, atol=1e-9)


@every_block
def test_a_kernel_is_tried_at_the_sizes_of_a_block(text, called, monkeypatch):
    tried, plain = [], choice.trial_fault
    monkeypatch.setattr(choice, "trial_fault", lambda each: tried.append(each) or plain(each))
    prepared(text)(random_sequences(3, LENGTH))
    (only,) = tried
    assert only.sizes[0][1][0] == 2 and 150 in only.sizes[0][1]
    assert plain(only) is None


def test_a_kernel_is_tried_within_what_is_computed_again(called, caplog):
    block, x = prepared(f"gla({HEADS}, short_conv=2)"), random_sequences(2, LENGTH)
    weights = list(block.parameters())
    with caplog.at_level(logging.WARNING):
        found = torch.autograd.grad(recomputed(block, block, x.requires_grad_()).sin().sum(), weights)
    assert called.count("chunk_gla") == 3  # tried, computed, and computed again
    assert caplog.messages == []
    for one, other in zip(found, torch.autograd.grad(block(x).sin().sum(), weights), strict=True):
        assert one.equal(other)


def test_one_token_has_the_plain_form(called):
    block = make_block(parse_block(f"gla({HEADS})"), causal=True)
    block.step(random_sequences(2, 1), None)
    assert called == []


def scan(**options):
    """Inputs of the plain recurrence without decays."""
    q, k, v = (torch.randn(2, LENGTH, 2, 3, generator=make_generator(n)) for n in range(3))
    return {"q": q, "k": k, "v": v, "log_decay": None, "state": None, "keep": False, **options}


def fault(kernel=recurrences.scalar_decays, given=None):
    return choice.kernel_fault(kernel, definitions_of_plain, given or scan())


def definitions_of_plain(q, k, v, log_decay=None, state=None, *, keep=True):
    return definitions.chunk_simple_gla(
        q, k, v, log_decay, scale=1.0, initial_state=state, output_final_state=keep
    )


@pytest.fixture
def tf32():
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    yield
    torch.backends.cuda.matmul.fp32_precision = before


def test_exact_products_have_the_plain_form(called):
    assert fault() == ("they multiply float32 in TF32, and products are to be exact ([train] precision)")
    assert called == []


def test_products_in_tf32_have_a_kernel(called, tf32):
    assert fault() is None


def test_products_of_sixteen_bits_have_a_kernel_as_autocast_has_them(called):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert choice.product_dtype(scan()["q"]) == torch.bfloat16
        assert fault() is None
    cast = choice.cast_inputs(scan(log_decay=torch.zeros(2, LENGTH, 2)), torch.bfloat16)
    assert (cast["q"].dtype, cast["log_decay"].dtype) == (torch.bfloat16, torch.float32)


def test_a_kernel_that_gives_something_else_is_not_used(called, tf32):
    def wrong(**given):
        y, state = recurrences.scalar_decays(**given)
        return 1.1 * y, state

    assert fault(wrong) == "small inputs did not give what the plain form gives"


def test_a_kernel_that_fails_is_not_used(called, tf32):
    def failing(**_):
        raise AssertionError("no float32\nat all")

    assert fault(failing) == "AssertionError: no float32"


def test_gradients_are_tried_as_well(called, tf32):
    def wrong(q, **given):
        y, state = recurrences.scalar_decays(1.1 * q - 0.1 * q.detach(), **given)
        return y, state

    assert fault(wrong) == "small inputs did not give what the plain form gives"


def test_a_reason_is_told_once_and_the_plain_form_computes(called, caplog):
    block = make_block(parse_block(f"gla({HEADS})"), causal=True, dtype=torch.float32)
    x = random_sequences(2, LENGTH, dtype=torch.float32)
    with caplog.at_level(logging.WARNING):
        y, again = block(x), block(x)
    assert called == [] and y.equal(again)
    assert caplog.messages == [
        "recurrences are not computed by the kernels of fla: run_vector_decays: "
        "they multiply float32 in TF32, and products are to be exact ([train] precision)"
    ]


def test_what_computed_is_noted(called):
    x = random_sequences(2, LENGTH)
    none, found = set(), set()
    with choice.noting_kernels(none):
        make_block(parse_block(f"mlstm({HEADS})"), causal=True)(x)
    with choice.noting_kernels(found):
        make_block(parse_block(f"gla({HEADS})"), causal=True)(x)
    assert (none, found) == (set(), {"fla-core 0.6.0"})


def test_a_cpu_loads_nothing():
    make_block(parse_block(f"gla({HEADS})"), causal=True)(random_sequences(2, LENGTH))
    assert "fla.ops" not in sys.modules


@pytest.mark.parametrize("name", sorted(set(BLOCKS.values())))
def test_the_packages_functions_take_what_their_definitions_take(name):
    pytest.importorskip("fla.ops", reason="needs the extra fla")
    folder = FOLDERS.get(name, name.removeprefix("chunk_"))
    expected = inspect.signature(getattr(definitions, name)).parameters
    assert set(expected) <= set(inspect.signature(recurrences.operation(folder, name)).parameters)


WIDE = "heads=2, head_width=64"


@cuda
@pytest.mark.parametrize("precision", ["tf32", "bf16"])
@every_block
def test_on_a_gpu_a_kernel_gives_what_the_plain_form_gives(text, precision, request, monkeypatch):
    if precision == "tf32":
        request.getfixturevalue("tf32")
    block = prepared(text.replace(HEADS, WIDE).replace("state=5", "state=64"), dtype=torch.float32, width=128)
    block = block.cuda()
    x = random_sequences(2, 66 + 200, width=128, dtype=torch.float32).cuda()
    compute = partial(outputs_and_gradients, block, x)
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision == "bf16"):
        noted = set()
        with choice.noting_kernels(noted):
            found = compute()
        monkeypatch.setattr(choice, "_may_have_kernel", lambda *_: False)
        expected = compute()
    if not noted:
        pytest.skip("the kernel is not used: see the warning")
    for one, other in zip(found, expected, strict=True):
        assert (one - other).float().norm() <= 0.05 * other.float().norm()
