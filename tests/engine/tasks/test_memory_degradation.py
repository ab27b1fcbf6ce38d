"""The toy problems of memory degradation, generated as in the paper."""

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from activemem.engine.data.sentence_pairs import collate
from activemem.engine.tasks.memory_degradation import (
    SequenceSplits,
    fixed_bigrams,
    generate_splits,
    tabu_symbols,
)
from activemem.studies.catalog.tasks import DegradationProblem, require_task, task_names

START, END, FIRST = 1, 2, 4
PROBLEMS = [name for name in task_names() if isinstance(require_task(name), DegradationProblem)]


def few(name, sequences=2000, **changes):
    return replace(require_task(name), sequences=sequences, test_sequences=400, **changes)


def symbols(side, *before):
    """Return the symbols of each line, counted from 0, after checking its frame."""
    found = []
    for start, end in pairwise(side.lines.tolist()):
        line = side.tokens[start:end].tolist()
        assert (*line[: len(before)], line[-1]) == (*before, END)
        assert all(FIRST <= each < FIRST + 128 for each in line[len(before) : -1])
        found.append([each - FIRST for each in line[len(before) : -1]])
    return found


def pairs(splits: SequenceSplits):
    """Return all sources with their targets."""
    return [
        pair
        for split in splits
        for pair in zip(symbols(split.source, START), symbols(split.target), strict=True)
    ]


@pytest.mark.parametrize("name", PROBLEMS)
def test_sequences_are_all_different_and_split_as_is_said(name):
    splits = generate_splits(few(name), seed=3)
    assert [len(each.source.line_words) for each in splits] == [1500, 500, 400]
    assert max(int(each.source.line_lengths.max()) for each in splits) == 20
    assert len({tuple(source) for source, _ in pairs(splits)}) == 2400


@pytest.mark.parametrize("name", PROBLEMS)
def test_one_seed_gives_one_problem_and_another_seed_another(name):
    first, again, other = (generate_splits(few(name, 50), seed=seed).train for seed in (1, 1, 2))
    assert torch.equal(first.source.tokens, again.source.tokens)
    assert torch.equal(first.target.tokens, again.target.tokens)
    assert not torch.equal(first.source.tokens, other.source.tokens)


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "filter"])
def test_targets_are_sources_backwards(name):
    assert all(target == source[::-1] for source, target in pairs(generate_splits(few(name), seed=0)))


def test_reverse_copy_has_3_to_18_uniform_symbols():
    sources = [source for source, _ in pairs(generate_splits(few("reverse_copy"), seed=0))]
    lengths = Counter(map(len, sources))
    assert set(lengths) == set(range(3, 19))
    assert max(lengths.values()) < 2 * min(lengths.values())
    counts = Counter(symbol for source in sources for symbol in source)
    assert len(counts) == 128
    assert max(counts.values()) < 2 * min(counts.values())


def runs(source):
    """Return the lengths of runs of equal symbols."""
    found = [1]
    for left, right in pairwise(source):
        if left == right:
            found[-1] += 1
        else:
            found.append(1)
    return found


def test_repeats_are_7_symbols_1_to_4_times_cut_or_filled_to_18():
    sources = [source for source, _ in pairs(generate_splits(few("reverse_copy_repeats"), seed=0))]
    assert {len(source) for source in sources} == {18}
    apart = [runs(source) for source in sources if all(run <= 4 for run in runs(source)[:-1])]
    assert len(apart) > 0.9 * len(sources)  # in the others neighbours happen to be equal
    assert max(map(len, apart)) == 7
    filled, cut = [each for each in apart if len(each) == 7], [each for each in apart if len(each) < 7]
    assert max(each[-1] for each in filled) == 12  # six symbols once, the last one to the end
    assert len(cut) > 100
    inner = Counter(run for each in apart for run in each[:-1])
    assert set(inner) == {1, 2, 3, 4}
    assert max(inner.values()) < 1.5 * min(inner.values())


def test_filter_drops_1_to_7_symbols_of_a_fixed_set_of_20():
    spec = few("filter")
    tabu = set(tabu_symbols(spec, 5).tolist())
    found = pairs(generate_splits(spec, seed=5))
    assert len(tabu) == 20
    assert {len(source) for source, _ in found} == {18}
    assert all(target == [each for each in source if each not in tabu] for source, target in found)
    dropped = Counter(18 - len(target) for _, target in found)
    assert set(dropped) == set(range(1, 8))
    assert max(dropped.values()) < 1.5 * min(dropped.values())
    places = Counter(place for source, _ in found for place, each in enumerate(source) if each in tabu)
    assert max(places.values()) < 1.3 * min(places.values())
    assert {each for source, _ in found for each in source} == set(range(128))


@pytest.mark.parametrize(
    ("name", "low"), [("reverse_copy_bigrams", 0.5), ("reverse_copy_frequent_bigrams", 0.8)]
)
def test_15_symbols_have_a_successor_as_often_as_is_drawn_and_all_others_have_none(name, low):
    spec = few(name, 12_000)
    firsts, seconds, probable = (each.tolist() for each in fixed_bigrams(spec, 1))
    assert len(set(firsts)) == 15
    assert all(low <= each <= 0.9 for each in probable)
    following = {symbol: Counter() for symbol in range(128)}
    for source, _ in pairs(generate_splits(spec, seed=1)):
        for left, right in pairwise(source):
            following[left][right] += 1
    for first, second, probability in zip(firsts, seconds, probable, strict=True):
        total = following[first].total()
        spread = math.sqrt(probability * (1 - probability) / total)
        assert abs(following[first][second] / total - probability) < 4 * spread
    for symbol in set(range(128)) - set(firsts):
        assert max(following[symbol].values()) < 0.05 * following[symbol].total()


def test_problems_have_the_sizes_of_the_paper():
    spec = require_task("reverse_copy")
    assert (spec.sequences, spec.dev_fraction, spec.test_sequences) == (30_000, 0.25, 10_000)
    assert (spec.vocab, spec.tokens) == (132, 20)
    assert PROBLEMS == [
        "filter",
        "reverse_copy",
        "reverse_copy_bigrams",
        "reverse_copy_frequent_bigrams",
        "reverse_copy_repeats",
    ]


def test_sequences_can_be_had_in_batches_of_pairs():
    train = generate_splits(few("filter", 40), seed=0).train
    batch = collate(train, [4, 2])
    targets = [symbols(train.target)[pair] for pair in (4, 2)]
    lengths = [len(target) + 1 for target in targets]
    assert batch.target_lengths.tolist() == lengths
    assert batch.words == sum(lengths)
    framed = [[*(FIRST + each for each in target), END] for target in targets]
    assert [row[:length] for row, length in zip(batch.targets.tolist(), lengths, strict=True)] == framed
