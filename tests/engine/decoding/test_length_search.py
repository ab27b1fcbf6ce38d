"""The search over sizes: every size by itself, the likeliest one, then a beam of it."""

import pytest
import torch
from torch.testing import assert_close

from activemem.engine.decoding import SizeSearch, decode, length_search

from . import references as plain
from .references import SIZED, log_likelihood, make_model, make_sources

LENGTHS = [4, 1, 6, 3, 5]


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.no_grad():
        yield


def alone(sources, row):
    """One source without padding."""
    return sources[row : row + 1, : int((sources[row] != 0).sum())]


def likeliest_size(model, source, longest):
    """The size of the best of all greedy outputs, each decoded by itself."""
    n = source.shape[1]
    outputs = {
        size: plain.greedy(model, source, size) for size in range(min(n, longest), min(2 * n, longest) + 1)
    }
    return max(outputs, key=lambda size: log_likelihood(model, source, outputs[size]))


@pytest.mark.parametrize("kind", SIZED)
@pytest.mark.parametrize("beam", [1, 2])
@pytest.mark.parametrize("longest", [20, 7, 4])
def test_a_beam_of_the_likeliest_size_is_what_is_found(kind, beam, longest):
    model, sources = make_model(kind, sharpness=30.0), make_sources(LENGTHS)
    chosen = set()
    for row, each in enumerate(decode(model, sources, max_length=longest, beam=beam, try_lengths=True)):
        source = alone(sources, row)
        size = likeliest_size(model, source, longest)
        one = plain.greedy(model, source, size) if beam == 1 else plain.beam(model, source, size, beam)
        assert each.tokens == one
        assert abs(each.score - log_likelihood(model, source, one)) < 1e-5
        chosen.add(size - source.shape[1])
    assert len(chosen) > 1 or longest == 4


@pytest.mark.parametrize("kind", SIZED)
def test_every_size_from_the_source_to_twice_it_is_tried_at_once(kind):
    model, rows = make_model(kind), []
    model.output.register_forward_hook(lambda _, __, logits: rows.append(len(logits)))
    decode(model, make_sources(LENGTHS), max_length=20, try_lengths=True)
    assert rows[0] == sum(n + 1 for n in LENGTHS)
    assert len(rows) <= 2 * max(LENGTHS)


@pytest.mark.parametrize("kind", SIZED)
@pytest.mark.parametrize("beam", [1, 2])
def test_it_is_the_same_in_small_parts(kind, beam, monkeypatch):
    model, sources = make_model(kind, sharpness=30.0), make_sources(LENGTHS)
    at_once = decode(model, sources, max_length=20, beam=beam, try_lengths=True)
    monkeypatch.setattr(length_search, "MAX_POSITIONS", 16)
    in_parts = decode(model, sources, max_length=20, beam=beam, try_lengths=True)
    assert [each.tokens for each in in_parts] == [each.tokens for each in at_once]
    assert_close([each.score for each in in_parts], [each.score for each in at_once])


@pytest.mark.parametrize("kind", SIZED)
def test_a_batch_decodes_as_its_sentences_alone(kind):
    model, sources = make_model(kind, sharpness=30.0), make_sources(LENGTHS)
    for row, each in enumerate(decode(model, sources, max_length=9, beam=2, try_lengths=True)):
        (one,) = decode(model, alone(sources, row), max_length=9, beam=2, try_lengths=True)
        assert one.tokens == each.tokens
        assert_close(one.score, each.score)


@pytest.mark.parametrize("kind", SIZED)
@pytest.mark.parametrize("beam", [1, 2])
def test_without_a_search_an_output_is_as_long_as_is_said_where_that_is_longer_than_the_source(kind, beam):
    model, sources = make_model(kind, end_bias=0.0), make_sources(LENGTHS)
    found = decode(model, sources, max_length=5, beam=beam)
    for row, each in enumerate(found):
        assert len(each.tokens) == 5 if LENGTHS[row] < 5 else len(each.tokens) <= 5
        assert abs(each.score - log_likelihood(model, alone(sources, row), each.tokens)) < 1e-5


@pytest.mark.parametrize("kind", SIZED)
def test_sizes_are_compared_without_penalties(kind):
    model, sources = make_model(kind, sharpness=30.0), make_sources(LENGTHS)
    plainly = decode(model, sources, max_length=9, beam=2, try_lengths=True)
    assert plainly == decode(
        model, sources, max_length=9, beam=2, try_lengths=True, length_penalty=2.0, coverage_penalty=1.0
    )


def test_parts_hold_as_many_outputs_as_fit_and_at_least_one():
    rows = [part.tolist() for part in length_search._chunks(torch.tensor([5, 2, 9, 3, 2]), 8)]
    assert rows == [[1, 4], [3], [0], [2]]


def far_from_five(_row, tokens):
    """A cost that an untrained model does not keep small by itself."""
    return 50.0 * abs(len(tokens) - 5)


@pytest.mark.parametrize("kind", SIZED)
def test_costs_are_taken_from_the_likelihood_of_each_size(kind):
    model, sources, moved = make_model(kind, sharpness=30.0), make_sources(LENGTHS), 0
    sizes = SizeSearch(ratio=2.0, margin=2, cost=far_from_five)
    likeliest = decode(model, sources, max_length=30, try_lengths=True)
    for row, each in enumerate(decode(model, sources, max_length=30, try_lengths=True, sizes=sizes)):
        source, outputs = alone(sources, row), []
        n = source.shape[1]
        for size in range(n, 2 * n + 2 + 1):  # each size by itself, the dearest ones too
            tokens = plain.greedy(model, source, size)
            loss = -log_likelihood(model, source, tokens) + far_from_five(row, tokens)
            outputs.append((loss, tokens))
        assert each.tokens == min(outputs)[1]
        moved += each.tokens != likeliest[row].tokens
    assert moved


@pytest.mark.parametrize("kind", SIZED)
def test_a_beam_with_a_dearer_output_than_the_greedy_one_is_left_out(kind):
    model, sources = make_model(kind, sharpness=30.0), make_sources(LENGTHS)
    sizes = SizeSearch(cost=far_from_five)
    greedy = decode(model, sources, max_length=20, try_lengths=True, sizes=sizes)
    for row, each in enumerate(decode(model, sources, max_length=20, beam=2, try_lengths=True, sizes=sizes)):
        one = greedy[row]
        assert (
            each.score - far_from_five(row, each.tokens) >= one.score - far_from_five(row, one.tokens) - 1e-9
        )
        wide = plain.beam(model, alone(sources, row), likely_size(model, alone(sources, row)), 2)
        assert each.tokens in (one.tokens, wide)


def likely_size(model, source):
    """The size of the greedy output that is worth most."""
    n = source.shape[1]
    outputs = {size: plain.greedy(model, source, size) for size in range(n, 2 * n + 1)}
    return max(
        outputs,
        key=lambda size: log_likelihood(model, source, outputs[size]) - far_from_five(0, outputs[size]),
    )
