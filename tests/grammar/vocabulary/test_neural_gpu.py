"""Costs and reach of the Neural GPU family, against hand-computed numbers."""

from __future__ import annotations

import math

import pytest

from activemem.grammar import ModelPart, PartKind, Reach, analyse

WIDTH, LENGTH = 16, 10
UNIT = 3 * (9 * 16 * 16 + 16)  # three kernels of 3 × 3 with their biases
TAPE = 3 * 9 * 16 * 16
STEP = 2 * 10 * 4 * 3 * 9 * 16 * 16  # operations of one unit on the whole image


def _analysed(text: str, *, causal: bool = False) -> ModelPart:
    tree = analyse(text, d_model=WIDTH, vocab=3, causal=causal, dropout=0.0, length=LENGTH).tree
    (found,) = (part for part in tree.parts if part.kind is PartKind.TRANSDUCER)
    return found


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("neural_gpu", 2 * UNIT),
        ("neural_gpu(layers=3, width=7)", 3 * UNIT),
        ("neural_gpu(maps=16)", 2 * UNIT),
        ("neural_gpu(layers=1, maps=20)", 16 * 20 + 3 * (9 * 20 * 20 + 20)),
        ("neural_gpu(kernel=4)", 2 * 3 * (16 * 16 * 16 + 16)),
        ("markov_neural_gpu", 2 * UNIT),
        ("markov_neural_gpu(layers=1, maps=20)", 16 * 20 + 3 * (9 * 20 * 20 + 20)),
        ("extended_neural_gpu", 2 * UNIT + 2 * (UNIT + TAPE)),
        ("extended_neural_gpu(tape=all)", 2 * UNIT + 2 * (UNIT + TAPE)),
        ("neural_gpu(first_unit=true)", 3 * UNIT),
        ("neural_gpu(input_norm=true)", 16 * 16 + 3 * 16 + 2 * UNIT),
        ("markov_neural_gpu(maps=20, input_norm=true)", 16 * 20 + 3 * 20 + 2 * 3 * (9 * 20 * 20 + 20)),
        ("extended_neural_gpu(input_norm=true)", 16 * 16 + 3 * 16 + 2 * UNIT + 2 * (UNIT + TAPE)),
        ("extended_neural_gpu(layers=1, maps=20)", 2 * 16 * 20 + 3 * (3 * 9 * 20 * 20 + 2 * 20)),
    ],
)
def test_parameters_are_those_counted_by_hand(text: str, parameters: int):
    assert _analysed(text).parameters == parameters


@pytest.mark.parametrize(
    ("text", "flops", "state"),
    [
        ("neural_gpu", 10 * 2 * STEP, 16),
        ("markov_neural_gpu", 10 * 2 * STEP, 16),
        ("neural_gpu(input_norm=true, first_unit=true)", (10 * 2 + 1) * STEP + 2 * 10 * 16 * 16, 16),
        # an output on the tape, the last one left out, moves two columns by three positions in three maps
        ("extended_neural_gpu", 20 * 2 * STEP + 9 * 2 * 2 * (2 * 3 * 3) * 16 * 16, 4 * 16 * (1 + 2 * 3)),
        ("extended_neural_gpu(tape=all)", 20 * 2 * STEP + 9 * 2 * 2 * (4 * 3 * 3) * 16 * 16, 4 * 16 * 7),
    ],
)
def test_operations_and_what_generation_keeps_are_those_counted_by_hand(text: str, flops: int, state: int):
    found = _analysed(text)
    assert (found.flops, found.state) == (flops, state)


@pytest.mark.parametrize("name", ["neural_gpu", "markov_neural_gpu", "extended_neural_gpu"])
def test_every_output_sees_the_whole_source(name: str):
    assert _analysed(name).reach == Reach(left=math.inf, right=math.inf)
    assert _analysed(name, causal=True).reach == Reach(left=math.inf, right=0)
