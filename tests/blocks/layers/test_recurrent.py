"""Recurrent blocks: fused kernels against explicit steps, final states, traces, streams, initial states."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing import assert_close

from activemem.blocks import build
from activemem.blocks.core.block import StreamState
from activemem.blocks.layers import recurrent
from activemem.blocks.layers.recurrent import RecurrentState, side_by_side
from activemem.blocks.testing.fixtures import (
    make_block,
    make_generator,
    parse_block,
    prefix_mask,
    random_sequences,
    use_plain_operations,
)

from ..equations.common import gru_layer, lstm_layer

TEXTS = ["lstm", "lstm(layers=3)", "gru", "gru(layers=3)"]
LENGTHS = [7, 1, 4, 6, 7]

every_text = pytest.mark.parametrize("text", TEXTS)
either_mask = pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["whole", "padded"])


def drawn_state(block, rows, dtype=torch.float64):
    """Return a random nonzero state."""
    shape = (rows, len(block.layers), block.width)
    parts = (
        torch.randn(shape, generator=make_generator(place), dtype=dtype)
        for place in range(block.layer_class.state_count)
    )
    return RecurrentState(tensors=tuple(parts))


def ran(block, x, start, mask):
    """Return the valid outputs, the final states, and the gradients of all weights."""
    block.zero_grad()
    y, last = block.run(x, start, mask)
    valid = y if mask is None else y[mask]
    (valid.square().sum() + sum(part.square().sum() for part in last.tensors)).backward()
    return valid, *last.tensors, *(weight.grad.clone() for weight in block.parameters())


@either_mask
@every_text
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_the_kernels_give_the_results_of_the_written_out_steps(text, lengths, dtype):
    block = make_block(parse_block(text), causal=True, dtype=dtype).train()
    x, start = random_sequences(5, 7, dtype=dtype), drawn_state(block, 5, dtype)
    mask = None if lengths is None else prefix_mask(lengths, 7)
    fused = ran(block, x, start, mask)
    plain = ran(use_plain_operations(block), x, start, mask)
    close = 1e-11 if dtype == torch.float64 else 2e-5
    for one, other in zip(fused, plain, strict=True):
        assert_close(one, other, rtol=close, atol=close)


@pytest.mark.parametrize("fused", [True, False], ids=["kernels", "steps"])
@every_text
def test_the_last_state_is_that_after_the_last_valid_position(text, fused):
    block = make_block(parse_block(text), causal=True)
    block.use_fused = fused
    x, start = random_sequences(5, 7), drawn_state(block, 5)
    _, last = block.run(x, start, prefix_mask(LENGTHS, 7))
    for row, length in enumerate(LENGTHS):
        inputs = x[row, :length]
        for place, layer in enumerate(block.layers):
            begin = [part[row, place] for part in start.tensors]
            steps = (lstm_layer if len(begin) == 2 else gru_layer)(layer, inputs, *begin)
            inputs = steps[0]
            for part, expected in zip(last.tensors, steps, strict=False):
                assert_close(part[row, place], expected[-1])


@pytest.mark.parametrize("fused", [True, False], ids=["kernels", "steps"])
@every_text
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_values_at_padding_change_no_bit_of_a_state(text, fused, dtype):
    block, mask = make_block(parse_block(text), causal=True, dtype=dtype).train(), prefix_mask(LENGTHS, 7)
    block.use_fused = fused
    x = random_sequences(5, 7, dtype=dtype)
    others = torch.where(mask.unsqueeze(-1), x, 50 * random_sequences(5, 7, dtype=dtype)).requires_grad_()
    start = drawn_state(block, 5, dtype)
    _, last = block.run(others, start, mask)
    assert all(map(torch.equal, last.tensors, block.run(x, start, mask)[1].tensors))
    sum(part.square().sum() for part in last.tensors).backward()
    assert others.grad[~mask].eq(0).all()
    assert others.grad[mask].ne(0).any()


def test_a_trace_has_states_cells_and_gates_of_each_layer():
    block, x = make_block(parse_block("lstm(layers=2)"), causal=True), random_sequences(1, 6)
    inputs, nothing = x[0], torch.zeros(x.shape[-1], dtype=torch.float64)
    for layer, trace in zip(block.layers, block.traces(x), strict=True):
        h, s, i, f, o = lstm_layer(layer, inputs, nothing, nothing)
        assert list(trace.gates) == ["input", "forget", "output"]
        found = (trace.hidden, trace.cell, *trace.gates.values())
        assert_close([one[0] for one in found], [h, s, i, f, o])
        inputs = h
    assert_close(block(x)[0], inputs)


def test_the_trace_of_a_gru_has_its_update_gate_as_what_it_does_not_forget():
    block, x = make_block(parse_block("gru"), causal=True), random_sequences(1, 6)
    (trace,) = block.traces(x)
    h, r, z = gru_layer(block.layers[0], x[0], torch.zeros_like(x[0, 0]))
    assert list(trace.gates) == ["reset", "forget"]
    assert_close([trace.hidden[0], trace.cell[0], *(gate[0] for gate in trace.gates.values())], [h, h, r, z])


@pytest.mark.parametrize("cuts", [(1,) * 12, (5, 7), (3, 1, 8)], ids=str)
@pytest.mark.parametrize("cell", ["lstm(layers=2)", "gru"])
def test_a_stream_cut_in_any_pieces_is_one_pass(cell, cuts):
    model = build(f"2 * ({cell} >> conv(k=3))", d_model=8, vocab=5, causal=True, generator=make_generator(1))
    model = model.double().eval()
    tokens = torch.randint(5, (3, 12), generator=make_generator(2))
    stream, outputs = StreamState(), []
    with torch.no_grad():
        for piece in tokens.split(cuts, 1):
            logits, stream = model.forward_stream(piece, stream)
            outputs.append(logits)
        assert_close(torch.cat(outputs, 1), model(tokens), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_maps_of_the_state_begin_orthogonal_and_forget_gates_open(cell):
    model = build(cell, d_model=6, vocab=3, generator=make_generator(1))
    layer = model.body.layers[0].part.layers[0]
    assert_close(layer.weight_h.T @ layer.weight_h, torch.eye(6), rtol=1e-5, atol=1e-5)
    biases = layer.bias.chunk(layer.maps)
    assert [bias.unique().tolist() for bias in biases] == (
        [[0.0], [1.0], [0.0], [0.0]] if cell == "lstm" else [[0.0]] * 3
    )


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_gpu_has_its_kernel_for_no_single_position_of_which_it_would_keep_the_weights(cell, monkeypatch):
    with FakeTensorMode():
        sizes = {length: torch.empty(2, length, 3, device="cuda") for length in (1, 2)}
    assert [recurrent._is_one_step_of_cudnn(x) for x in sizes.values()] == [True, False]
    assert not recurrent._is_one_step_of_cudnn(torch.empty(2, 1, 3))
    monkeypatch.setattr(recurrent, "_is_one_step_of_cudnn", lambda x: x.shape[1] == 1)
    block, x, asked = make_block(parse_block(cell), causal=True), random_sequences(2, 5), []
    kernel = type(block.layers[0]).run_fused
    monkeypatch.setattr(
        type(block.layers[0]), "run_fused", lambda *given: asked.append(given[1].shape[1]) or kernel(*given)
    )
    found, state = [], None
    for piece in x.split((1, 3, 1), 1):
        y, state = block.step_with_grad(piece, state)
        found.append(y)
    assert asked == [3]
    assert_close(torch.cat(found, 1), block(x), rtol=1e-11, atol=1e-11)


@either_mask
@pytest.mark.parametrize("text", ["lstm(layers=3)", "gru(layers=3)"])
def test_the_kernels_are_given_what_cudnn_asks_for(text, lengths, monkeypatch):
    """As in RNN.cpp: hx and cx must be contiguous, and gradients need a forward pass in training mode."""
    block, found = make_block(parse_block(text), causal=True), []

    def watched(kernel):
        def call(x, begin, *rest):
            states = [begin] if isinstance(begin, torch.Tensor) else begin
            found.append((all(each.is_contiguous() for each in states), rest[4]))
            return kernel(x, begin, *rest)

        return call

    for name in ("lstm", "gru"):
        monkeypatch.setattr(torch, name, watched(getattr(torch, name)))
    x, start = random_sequences(5, 7), drawn_state(block, 5)
    mask = None if lengths is None else prefix_mask(lengths, 7)
    block.run(x, start, mask)
    with torch.no_grad():
        block.train().run(x, start, mask)
    assert found == [(True, True)] * 3 + [(True, False)] * 3


def test_weights_side_by_side_are_one_block_with_their_gradients():
    given = [
        torch.randn(shape, generator=make_generator(1)).requires_grad_() for shape in ((6, 3), (6, 2), 6)
    ]
    found = side_by_side(*given)
    assert all(map(torch.equal, found, given))
    assert [each.data_ptr() - found[0].data_ptr() for each in found] == [0, 4 * 18, 4 * 30]
    assert {each.untyped_storage().data_ptr() for each in found} == {found[0].data_ptr()}
    (found[1] * 2).sum().backward()
    assert [each.grad.unique().tolist() for each in given] == [[0.0], [2.0], [0.0]]


@every_text
def test_the_kernels_ask_their_device_for_no_lengths(text):
    block = make_block(parse_block(text), causal=True, dtype=torch.float32).to("meta")
    mask, start = prefix_mask(LENGTHS, 7).to("meta"), drawn_state(block, 5, torch.float32)
    begin = tuple(part[:, 0].to("meta") for part in start.tensors)
    y, last = block.layers[0].run_fused(random_sequences(5, 7, dtype=torch.float32).to("meta"), begin, mask)
    assert [y.shape, *(part.shape for part in last)] == [(5, 7, block.width), *[(5, block.width)] * len(last)]


def test_nothing_is_dropped_after_the_last_layer():
    block = make_block(parse_block("lstm"), causal=True, dropout=0.5)
    stack = make_block(parse_block("lstm(layers=2)"), causal=True, dropout=0.5)
    x = random_sequences(2, 5)
    assert block.train()(x).equal(block.eval()(x))
    assert not stack.train()(x).equal(stack.eval()(x))


@pytest.mark.parametrize("text", ["lstm(layers=2)", "gru"])
def test_a_processor_without_kernels_of_half_precision_has_them_in_single_precision(text, monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    block = make_block(parse_block(text), causal=True, dtype=torch.float32)
    x = random_sequences(3, 5, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = block(x)
    assert found.dtype == torch.float32
    assert_close(found, block(x), rtol=0.0, atol=0.0)
