"""The search over sizes: every size by itself, the likeliest one, then a beam of it."""

import pytest
import torch
from torch.testing import assert_close

from activemem.engine.decoding import decode, sizes

from . import decoding_references as plain
from .decoding_references import SIZED, made, nats, sentences

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
    return max(outputs, key=lambda size: nats(model, source, outputs[size]))


@pytest.mark.parametrize("kind", SIZED)
@pytest.mark.parametrize("beam", [1, 2])
@pytest.mark.parametrize("longest", [20, 7, 4])
def test_a_beam_of_the_likeliest_size_is_what_is_found(kind, beam, longest):
    model, sources = made(kind, sharpness=30.0), sentences(LENGTHS)
    chosen = set()
    for row, each in enumerate(decode(model, sources, longest=longest, beam=beam, sizes=True)):
        source = alone(sources, row)
        size = likeliest_size(model, source, longest)
        one = plain.greedy(model, source, size) if beam == 1 else plain.beam(model, source, size, beam)
        assert each.tokens == one
        assert abs(each.score - nats(model, source, one)) < 1e-5
        chosen.add(size - source.shape[1])
    assert len(chosen) > 1 or longest == 4


@pytest.mark.parametrize("kind", SIZED)
def test_every_size_from_the_source_to_twice_it_is_tried_at_once(kind):
    model, rows = made(kind), []
    model.output.register_forward_hook(lambda _, __, logits: rows.append(len(logits)))
    decode(model, sentences(LENGTHS), longest=20, sizes=True)
    assert rows[0] == sum(n + 1 for n in LENGTHS)
    assert len(rows) <= 2 * max(LENGTHS)


@pytest.mark.parametrize("kind", SIZED)
@pytest.mark.parametrize("beam", [1, 2])
def test_it_is_the_same_in_small_parts(kind, beam, monkeypatch):
    model, sources = made(kind, sharpness=30.0), sentences(LENGTHS)
    at_once = decode(model, sources, longest=20, beam=beam, sizes=True)
    monkeypatch.setattr(sizes, "POSITIONS", 16)
    in_parts = decode(model, sources, longest=20, beam=beam, sizes=True)
    assert [each.tokens for each in in_parts] == [each.tokens for each in at_once]
    assert_close([each.score for each in in_parts], [each.score for each in at_once])


@pytest.mark.parametrize("kind", SIZED)
def test_a_batch_decodes_as_its_sentences_alone(kind):
    model, sources = made(kind, sharpness=30.0), sentences(LENGTHS)
    for row, each in enumerate(decode(model, sources, longest=9, beam=2, sizes=True)):
        (one,) = decode(model, alone(sources, row), longest=9, beam=2, sizes=True)
        assert one.tokens == each.tokens
        assert_close(one.score, each.score)


@pytest.mark.parametrize("kind", SIZED)
@pytest.mark.parametrize("beam", [1, 2])
def test_without_a_search_an_output_is_as_long_as_is_said_where_that_is_longer_than_the_source(kind, beam):
    model, sources = made(kind, ends=0.0), sentences(LENGTHS)
    found = decode(model, sources, longest=5, beam=beam)
    for row, each in enumerate(found):
        assert len(each.tokens) == 5 if LENGTHS[row] < 5 else len(each.tokens) <= 5
        assert abs(each.score - nats(model, alone(sources, row), each.tokens)) < 1e-5


@pytest.mark.parametrize("kind", SIZED)
def test_sizes_are_compared_without_penalties(kind):
    model, sources = made(kind, sharpness=30.0), sentences(LENGTHS)
    plainly = decode(model, sources, longest=9, beam=2, sizes=True)
    assert plainly == decode(
        model, sources, longest=9, beam=2, sizes=True, length_penalty=2.0, coverage_penalty=1.0
    )


def test_parts_hold_as_many_outputs_as_fit_and_at_least_one():
    rows = [part.tolist() for part in sizes._chunks(torch.tensor([5, 2, 9, 3, 2]), 8)]
    assert rows == [[1, 4], [3], [0], [2]]
