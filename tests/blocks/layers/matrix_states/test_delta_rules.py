"""Delta rules and matrix memory: chunked equals stepwise computation, also with steep gates."""

import pytest
import torch
from torch.testing import assert_close

from activemem.blocks.testing.conformance import (
    flops_are_counted,
    steps_with_gradients_are_right,
    training_memory_is_stated,
)
from activemem.blocks.testing.fixtures import make_block, parse_block, random_sequences
from activemem.blocks.testing.references import outputs_and_gradients_equal_the_reference

from ....quick_cases import one_in

SMALL = "heads=2, head_width=3"
VARIANTS = [
    (f"delta_product({SMALL}, n=3, gate=true, negative=true, short_conv=3)", 37),
    (f"kda({SMALL}, short_conv=0, qk_norm=none, head_norm=none)", 37),
    (f"rwkv7({SMALL}, short_conv=2, qk_norm=l2, output_gate=none)", 37),
    ("ttt(heads=2, head_width=4, batch=7, short_conv=2, head_norm=rms, output_gate=silu)", 37),
    (f"mlstm({SMALL}, forget=exp, qk_norm=l2, head_norm=none, output_gate=silu)", 70),
]


@pytest.mark.parametrize(("text", "length"), one_in(2, VARIANTS))
def test_chunks_give_the_outputs_and_gradients_of_the_reference(text, length):
    outputs_and_gradients_equal_the_reference(text, length)
    training_memory_is_stated(text, causal=True)
    flops_are_counted(text, causal=True)
    steps_with_gradients_are_right(text, causal=True)


@pytest.mark.parametrize("settings", ["", ", gate=true, negative=true, short_conv=4"])
def test_one_step_of_a_product_is_the_delta_rule(settings):
    delta = make_block(parse_block(f"delta({SMALL}{settings})"), causal=True)
    product = make_block(parse_block(f"delta_product({SMALL}, n=1{settings})"), causal=True, seed=1)
    product.load_state_dict(delta.state_dict())
    x = random_sequences(2, 40)
    assert product(x).equal(delta(x))


@pytest.mark.parametrize("name", ["gla", "kda", "rwkv7", "mlstm"])
def test_the_steepest_gates_stay_within_single_precision(name):
    node = parse_block(f"{name}({SMALL})")
    exact, single = (make_block(node, causal=True, dtype=dtype) for dtype in (torch.float64, torch.float32))
    for block in (exact, single):
        with torch.no_grad():
            if name == "gla":
                block.decay[1].bias.copy_(torch.tensor([-1e4, 1e4, -80.0, -1e3, -70.0, 0.0]))
            for offset in ("step_offset", "decay_offset", "forget_offset", "input_offset"):
                for part in block.modules():
                    if hasattr(part, offset):
                        getattr(part, offset).fill_(-90.0 if offset == "forget_offset" else 90.0)
    x = random_sequences(2, 70)
    found = single(x.float())
    assert_close(found.double(), exact(x), rtol=1e-3, atol=1e-4)
    found.sum().backward()
    assert all(each.grad.isfinite().all() for each in single.parameters())
