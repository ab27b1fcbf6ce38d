"""Batches of pairs: similar lengths together, each pair once per pass, random access to batches."""

from itertools import islice

import pytest
import torch

from activemem.engine import DataError
from activemem.engine.data.sentence_pairs import PairSplit, collate, iter_pair_batches, iter_pair_eval
from activemem.engine.data.token_files import Split

END = 2


def side(rows):
    """Return rows of numbers, each with an end symbol, as one side of a split."""
    lengths = torch.tensor([0] + [len(row) + 1 for row in rows])
    tokens = torch.tensor([each for row in rows for each in [*row, END]], dtype=torch.int16)
    words = torch.tensor([len(row) + 1 for row in rows], dtype=torch.int32)
    return Split(tokens=tokens, lines=lengths.cumsum(0), line_words=words)


def split_of(lengths):
    """Return pairs: pair i repeats 10 + i as source, with a target that is shorter by a given amount."""
    sources = [[10 + pair] * long for pair, (long, _) in enumerate(lengths)]
    targets = [[10 + pair] * short for pair, (_, short) in enumerate(lengths)]
    return PairSplit(source=side(sources), target=side(targets))


LENGTHS = [(1 + pair * 7 % 23, 1 + pair * 5 % 19) for pair in range(50)]
SPLIT = split_of(LENGTHS)


def test_a_batch_has_both_sides_padded():
    batch = collate(split_of([(3, 1), (1, 2)]), [1, 0])
    assert batch.sources.tolist() == [[11, END, 0, 0], [10, 10, 10, END]]
    assert batch.targets.tolist() == [[11, 11, END], [10, END, 0]]
    assert batch.target_lengths.tolist() == [3, 2]
    assert batch.pairs.tolist() == [1, 0]
    assert batch.words == 5


def test_in_a_pass_each_pair_comes_once_except_for_what_does_not_fill_a_batch():
    batches = list(islice(iter_pair_batches(SPLIT, batch_size=8, max_length=30, seed=1), 12))
    passes = [torch.cat([batch.pairs for batch in batches[start : start + 6]]).tolist() for start in (0, 6)]
    for once in passes:
        assert len(set(once)) == len(once) == 48
    assert passes[0] != passes[1]
    assert set(passes[0]) != set(passes[1])  # what is left out is drawn


def test_pairs_of_a_batch_are_of_like_lengths():
    longer = torch.tensor([max(pair) for pair in LENGTHS])
    spreads = [
        int(longer[batch.pairs].max() - longer[batch.pairs].min())
        for batch in islice(iter_pair_batches(SPLIT, batch_size=8, max_length=30, seed=1, width=4), 6)
    ]
    assert max(spreads) < 2 * 4
    assert (
        len(
            {
                int(batch.pairs[0])
                for batch in islice(iter_pair_batches(SPLIT, batch_size=8, max_length=30, seed=1), 6)
            }
        )
        == 6
    )


@pytest.mark.parametrize("position", [0, 1, 5, 6, 13])
def test_any_batch_is_reached_at_once(position):
    expected = list(
        islice(iter_pair_batches(SPLIT, batch_size=8, max_length=30, seed=3), position, position + 4)
    )
    found = list(islice(iter_pair_batches(SPLIT, batch_size=8, max_length=30, seed=3, position=position), 4))
    for left, right in zip(expected, found, strict=True):
        assert all(
            torch.equal(torch.as_tensor(a), torch.as_tensor(b)) for a, b in zip(left, right, strict=True)
        )


def test_another_seed_gives_another_order():
    first, second = (
        next(iter_pair_batches(SPLIT, batch_size=8, max_length=30, seed=seed)).pairs for seed in (1, 2)
    )
    assert first.tolist() != second.tolist()


def test_pairs_with_a_side_that_is_too_long_are_left_out(golden):
    fitting = {pair for pair, sides in enumerate(LENGTHS) if max(sides) <= 9}
    batches = islice(iter_pair_batches(SPLIT, batch_size=1, max_length=9, seed=1), len(fitting))
    assert {int(batch.pairs) for batch in batches} == fitting
    with golden.raises(DataError):
        next(iter_pair_batches(SPLIT, batch_size=8, max_length=1, seed=1))


def test_evaluation_has_each_pair_once_the_short_ones_first():
    batches = list(iter_pair_eval(SPLIT, batch_size=8))
    pairs = torch.cat([batch.pairs for batch in batches])
    assert sorted(pairs.tolist()) == list(range(50))
    longer = torch.tensor([max(pair) for pair in LENGTHS])[pairs]
    assert longer.tolist() == sorted(longer.tolist())
    assert [len(batch.pairs) for batch in batches] == [8, 8, 8, 8, 8, 8, 2]
    assert sum(batch.words for batch in batches) == SPLIT.target.words
