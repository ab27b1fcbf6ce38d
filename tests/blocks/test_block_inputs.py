"""What a block refuses: inputs of another shape, and masks whose padding is not at the end."""

import pytest
import torch

from activemem import build
from activemem.blocks.models.model import InputError
from activemem.blocks.testing.fixtures import (
    example_block,
    is_pool,
    make_block,
    make_transducer,
    parse_block,
    prefix_mask,
    random_sequences,
)
from activemem.grammar import render

from .example_blocks import BLOCKS

PADDED = {
    "left": [[1, 1, 1, 1], [0, 1, 1, 1]],
    "middle": [[1, 0, 1, 1], [1, 1, 1, 1]],
    "everywhere": [[1, 1, 0, 0], [0, 0, 0, 0]],
}


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_refuses_padding_that_is_not_at_the_end(name):
    block, x = make_block(example_block(name), causal=True), random_sequences(2, 4)
    for rows in PADDED.values():
        with pytest.raises(InputError, match="one or more valid positions"):
            block(x, torch.tensor(rows, dtype=torch.bool))


def test_the_errors_of_masks_say_what_to_do(golden):
    block, x = make_block(parse_block("linear_attn"), causal=True), random_sequences(4, 4)
    whole = torch.ones(4, 4, dtype=torch.bool)
    faulty = [
        whole.triu(),  # a mask of pairs of positions, in a batch of as many sequences as positions
        prefix_mask([40], 50).flip(1),
        whole.float(),
        whole[:2],
        whole.expand(4, 4, 4),
        [[True]],
    ]
    for mask in faulty:
        longer = random_sequences(1, 50) if getattr(mask, "shape", ())[-1:] == (50,) else x
        with golden.raises(InputError):
            block(longer, mask)


def test_the_errors_of_inputs_say_what_is_expected(golden):
    block, x = make_block(parse_block("last"), causal=True), random_sequences(4, 4)
    for given in (x[0], x[:, :0], x[None], [1.0]):
        with golden.raises(InputError):
            block(given)


@pytest.mark.parametrize("text", ["gru", "lstm(layers=2)"])
def test_a_recurrent_block_refuses_vectors_of_another_width(text):
    with pytest.raises(InputError, match=r"^expected vectors of width 6, got 4$"):
        make_block(parse_block(text), causal=True)(random_sequences(2, 5, width=4))


@pytest.mark.parametrize("name", ["fox", "gru", "linear_attn", "persistent_conv", "sa", "attention_pool"])
def test_the_advice_for_padding_at_the_left_gives_the_outputs_of_the_sequence_alone(name):
    node = example_block(name)
    block, x = make_block(node, causal=False), random_sequences(2, 7)
    mask = prefix_mask([7, 4], 7).flip(1)
    order = mask.argsort(dim=1, descending=True, stable=True)
    y = block(x.take_along_dim(order[..., None], 1), mask.take_along_dim(order, 1))
    alone = block(x[1:, 3:])[0]
    torch.testing.assert_close(y[1] if is_pool(render(node)) else y[1, :4], alone)


def test_a_transducer_refuses_padding_that_is_not_at_the_end():
    transducer, x = make_transducer("seq2seq(gru, gru)"), random_sequences(2, 4)
    valid, padded = torch.ones(2, 4, dtype=torch.bool), torch.tensor(PADDED["left"], dtype=torch.bool)
    for masks, name in (((padded, valid), "source_mask"), ((valid, padded), "target_mask")):
        with pytest.raises(InputError, match=f"^{name}: expected in each row"):
            transducer(x, x, *masks)


def test_a_block_in_a_model_takes_hooks():
    model, seen = build("2 * (sa >> ff(8))", d_model=8, vocab=5).eval(), []
    for layer in model.body.layers:
        layer.part.register_forward_hook(lambda block, _given, output: seen.append((block, output.shape)))
    model(torch.zeros(2, 3, dtype=torch.int64), torch.tensor([3, 1]))
    assert seen == [(layer.part, (2, 3, 8)) for layer in model.body.layers]
