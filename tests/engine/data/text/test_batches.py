"""The tokens of each step, each scored once."""

from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from activemem.engine import DataError
from activemem.engine.data.text.batches import (
    blocks_per_pass,
    iter_line_batches,
    iter_line_eval,
    iter_stream_batches,
    iter_stream_eval,
)
from activemem.engine.data.token_files import Split

SIZES = st.integers(1, 7)


def text(length):
    """Return tokens equal to their positions."""
    return torch.arange(length, dtype=torch.int32)


def split(*texts):
    """Return lines of these lengths, including their end marks; tokens count up from 1 in each line."""
    tokens = torch.cat([torch.tensor([*range(1, length), 99]) for length in texts])
    offsets = torch.tensor([0, *texts]).cumsum(0)
    return Split(tokens=tokens, lines=offsets, line_words=torch.tensor(texts))


@given(length=st.integers(2, 200), batch=SIZES, block=SIZES)
def test_a_pass_over_a_stream_has_each_target_at_most_once_in_rows_that_continue(length, batch, block):
    tokens = text(length)
    if length - 1 < batch * block:
        with pytest.raises(DataError):
            blocks_per_pass(tokens, batch_size=batch, context=block)
        return
    blocks = blocks_per_pass(tokens, batch_size=batch, context=block)
    given = list(islice(iter_stream_batches(tokens, batch_size=batch, context=block), 2 * blocks))
    first = given[:blocks]
    targets = torch.cat([each.targets for each in first], dim=1)
    inputs = torch.cat([each.inputs for each in first], dim=1)
    assert [each.reset for each in given] == [True, *[False] * (blocks - 1)] * 2
    assert torch.equal(targets, inputs + 1)
    assert torch.equal(inputs, inputs[:, :1] + torch.arange(blocks * block))  # each row goes on
    assert targets.unique().numel() == batch * blocks * block
    assert length - 1 - targets.numel() < batch * (block + 1)  # what is left out of a pass
    for one, other in zip(first, given[blocks:], strict=True):
        assert torch.equal(one.inputs, other.inputs)


@pytest.mark.parametrize("position", [0, 11, 24])
@pytest.mark.parametrize("seed", [None, 1])
def test_a_stream_that_is_taken_up_at_a_position_resumes_as_if_uninterrupted(seed, position):
    tokens, sizes = text(103), {"batch_size": 3, "context": 4}
    whole = list(islice(iter_stream_batches(tokens, **sizes, offsets=draws(seed)), position + 14))[position:]
    rest = list(islice(iter_stream_batches(tokens, **sizes, offsets=draws(seed), position=position), 14))
    for one, other in zip(whole, rest, strict=True):
        assert torch.equal(one.inputs, other.inputs)
        assert torch.equal(one.targets, other.targets)
        assert one.reset == other.reset


def draws(seed):
    """Return a fresh generator, or None."""
    return None if seed is None else torch.Generator().manual_seed(seed)


def test_passes_begin_where_those_of_the_all_attention_program_do():
    rows, block, length = 3, 4, 18
    data = text(length)  # the first row; where they are cut, ours share a token
    drawn, place, reset, expected = draws(2), 0, True, []
    for _ in range(40):  # its trainer.py, but for the generator
        expected.append((data[place : place + block].tolist(), reset))
        place, reset = place + block, False
        if place >= length - block:
            place, reset = int(torch.randint(block, (), generator=drawn)), True
    given = islice(
        iter_stream_batches(text(rows * length), batch_size=rows, context=block, offsets=draws(2)), 40
    )
    assert [(each.inputs[0].tolist(), each.reset) for each in given] == expected


def test_a_text_that_is_too_short_for_a_block_of_each_row_is_refused(golden):
    with golden.raises(DataError):
        next(iter_stream_batches(text(12), batch_size=3, context=4))


@given(length=st.integers(2, 120), batch=SIZES, block=SIZES, warm_up=st.integers(0, 40))
def test_every_token_but_the_first_is_scored_once_with_all_the_context_it_is_due(
    length, batch, block, warm_up
):
    tokens = text(length)
    found = list(iter_stream_eval(tokens, batch_size=batch, context=block, warm_up=warm_up))
    inputs, targets, scored = (torch.cat([each[place] for each in found], dim=1) for place in range(3))
    assert sorted(targets[scored].tolist()) == list(range(1, length))
    assert torch.equal(targets[scored], inputs[scored] + 1)
    for row, mask in zip(inputs, scored, strict=True):
        for place in mask.nonzero().flatten().tolist():
            seen = row[: place + 1]
            assert torch.equal(
                seen, torch.arange(int(seen[0]), int(seen[0]) + len(seen))
            )  # no gap in the row
            assert len(seen) >= min(warm_up, int(seen[-1])) + 1


def test_one_row_of_evaluation_begins_with_the_text_and_scores_all_of_it():
    first, second = iter_stream_eval(text(7), batch_size=1, context=4)
    assert first.inputs.tolist() == [[0, 1, 2, 3]]
    assert second.inputs.tolist() == [[4, 5, 6, 0]]
    assert second.targets.tolist() == [[5, 6, 0, 0]]
    assert (first.scored.tolist(), second.scored.tolist()) == ([[True] * 4], [[True, True, False, False]])


def test_a_text_of_one_token_has_nothing_to_score(golden):
    with golden.raises(DataError):
        next(iter_stream_eval(text(1), batch_size=1, context=4))


def test_a_line_begins_from_zero_and_ends_in_its_mark():
    batch = next(iter_line_eval(split(3, 4), batch_size=2, max_length=10))
    assert batch.inputs.tolist() == [[0, 1, 2, 0], [0, 1, 2, 3]]
    assert batch.targets.tolist() == [[1, 2, 99, 0], [1, 2, 3, 99]]
    assert batch.lengths.tolist() == [3, 4]
    assert batch.words == 7
    assert batch.inputs.dtype == batch.targets.dtype == batch.lengths.dtype == torch.int64


def test_empty_lines_and_those_that_are_too_long_are_left_out():
    texts = split(1, 5, 6, 2, 1)  # without their marks 0, 4, 5, 1, 0
    batches = list(iter_line_eval(texts, batch_size=1, max_length=4))
    assert [each.lengths.tolist() for each in batches] == [[2], [5]]
    assert next(
        iter_line_batches(texts, batch_size=2, max_length=4, seed=0)
    ).lengths.sort().values.tolist() == [2, 5]


@given(texts=st.lists(st.integers(1, 9), min_size=1, max_size=20), batch=SIZES)
def test_evaluation_by_lines_has_each_fitting_line_once(texts, batch):
    found = list(iter_line_eval(split(*texts), batch_size=batch, max_length=5))
    fitting = sorted(each for each in texts if 1 < each <= 6)
    assert [length for each in found for length in each.lengths.tolist()] == fitting
    assert sum(each.words for each in found) == sum(fitting)


def test_each_pass_over_lines_has_an_order_of_its_own_and_no_line_twice():
    texts = split(*range(2, 22))
    passes = list(islice(iter_line_batches(texts, batch_size=5, max_length=30, seed=3), 8))
    first, second = ([each.lengths.tolist() for each in part] for part in (passes[:4], passes[4:]))
    assert first != second
    for part in (first, second):
        assert sorted(length for batch in part for length in batch) == list(range(2, 22))
    other = next(iter_line_batches(texts, batch_size=5, max_length=30, seed=4))
    assert other.lengths.tolist() != first[0]


def test_lines_that_are_taken_up_at_a_position_resume_as_if_uninterrupted():
    texts = split(*range(2, 22))
    whole = list(islice(iter_line_batches(texts, batch_size=3, max_length=30, seed=3), 15))
    rest = list(islice(iter_line_batches(texts, batch_size=3, max_length=30, seed=3, position=7), 8))
    for one, other in zip(whole[7:], rest, strict=True):
        assert torch.equal(one.targets, other.targets)


def test_a_text_with_too_few_lines_for_a_batch_is_refused(golden):
    with golden.raises(DataError):
        next(iter_line_batches(split(1, 5, 9), batch_size=2, max_length=6, seed=0))
