"""The bytes for the backward pass, measured on the meta device, are those that torch saves."""

import pytest

from activemem.blocks import build
from activemem.blocks.testing.fixtures import saved_bytes, use_plain_operations
from activemem.grammar import analyse, parse

from ...quick_cases import one_in

SIZES = {"d_model": 8, "vocab": 7}
TOGETHER = [
    "sa(heads=1)",
    "sa(heads=2, temperature=3)",
    "conv(k=1) >> persistent_conv(k=1)",
    "persistent_conv(k=90)",
    "ff(1) + (ff(1) >> ff(1))",
    "conv(k=2) + 3 * conv(k=2)",
    "4 * (sa(heads=2) + highway_conv(k=5) >> ff(16))",
    "tied(2 * (cgru(k=3) >> tied(2 * ff(5)))) >> ff(5)",
    "(conv(k=3) >> ff(4)) + sa(heads=1) >> ff(6)",
    "2 * ((2 * (conv(k=3) + sa(heads=1) >> ff(4)) >> ff(2)) + tied(2 * highway_conv(k=2)))",
]


@pytest.mark.parametrize("length", [1, 40])
@pytest.mark.parametrize("text", one_in(2, TOGETHER))
def test_the_stated_memory_is_what_torch_saves(text, length):
    kinds = (("pre", "timing", 0.0), ("post", "none", 0.1))
    for number, (norm, position, dropout) in enumerate(kinds):
        settings = SIZES | {"causal": not number, "norm": norm, "position": position, "dropout": dropout}
        stated = analyse(parse(text), length=length, **settings)
        measured = saved_bytes(
            use_plain_operations(build(text, **settings), keeps_kernels=True), batch=3, length=length
        )
        assert stated.memory(3).activations == pytest.approx(measured, rel=0.01, abs=16)


@pytest.mark.parametrize("text", ["lstm", "lstm(layers=2)", "2 * (lstm >> ff(9))"])
@pytest.mark.parametrize(
    ("width", "length", "batch"), [(8, 40, 3), (64, 200, 16), (100, 30, 5), (256, 64, 2)]
)
def test_an_lstm_keeps_about_the_workspace_of_its_kernel(text, width, length, batch):
    sizes = {"d_model": width, "vocab": 7, "causal": True, "dropout": 0.0}
    stated = analyse(text, length=length, **sizes).memory(batch).activations
    assert stated == pytest.approx(saved_bytes(build(text, **sizes), batch=batch, length=length), rel=0.1)


def test_a_paper_sized_model_keeps_what_is_stated():
    text, sizes = "4 * (sa + highway_conv(k=20) >> ff(512))", {"d_model": 128, "vocab": 20}
    measured = saved_bytes(use_plain_operations(build(text, **sizes), keeps_kernels=True), batch=8, length=40)
    memory = analyse(parse(text), length=40, **sizes).memory(8)
    assert memory.activations == pytest.approx(measured, rel=0.001)
    assert memory.parameters == 16 * 4_205_332
    assert memory.peak == memory.parameters + memory.activations + memory.temporary
