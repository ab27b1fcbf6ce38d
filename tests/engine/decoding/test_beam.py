"""Greedy and beam search: scores as by teacher forcing, outputs as by reference searches."""

import math
from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from activemem import build
from activemem.blocks import State
from activemem.blocks.testing.fixtures import make_generator
from activemem.engine.decoding.searches import Bounds, Decoded, Decoding, beam_search, decode, greedy_search

from ...quick_cases import one_in
from . import references as plain
from .references import END, KINDS, SIZED, log_likelihood, make_model, make_sources

LENGTHS = [4, 1, 6, 3]
LONGEST = [7, 3, 4, 2]
ATTENDING = [kind for kind in KINDS if "gru" in kind or "inputs" in kind]


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.no_grad():
        yield


def alone(sources, row):
    """Return one source without padding."""
    return sources[row : row + 1, : int((sources[row] != 0).sum())]


def found(model, sources, longest, **search):
    """Return only the outputs."""
    return [
        each.tokens for each in decode(model, sources, Decoding(**search), max_length=torch.tensor(longest))
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beam", [1, 3])
def test_the_score_is_that_of_teacher_forcing(kind, beam):
    model, sources = make_model(kind), make_sources(LENGTHS)
    for row, each in enumerate(decode(model, sources, Decoding(beam=beam), max_length=6)):
        assert abs(each.score - log_likelihood(model, alone(sources, row), each.tokens)) < 1e-5
        assert each.tokens.index(END) == len(each.tokens) - 1 < 6
        assert 0 not in each.tokens


@pytest.mark.parametrize("kind", KINDS)
def test_in_single_precision_too_the_score_is_that_of_teacher_forcing(kind):
    model, sources = make_model(kind).float(), make_sources(LENGTHS)
    for row, each in enumerate(decode(model, sources, Decoding(beam=2), max_length=6)):
        assert abs(each.score - log_likelihood(model, alone(sources, row), each.tokens)) < 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_is_the_likeliest_symbol_at_each_place(kind):
    model, sources = make_model(kind), make_sources(LENGTHS)
    expected = [plain.greedy(model, alone(sources, row), longest) for row, longest in enumerate(LONGEST)]
    assert found(model, sources, LONGEST) == expected
    assert len({len(each) for each in expected}) > 1


@pytest.mark.parametrize("kind", one_in(2, KINDS))
@pytest.mark.parametrize(("beam", "penalty"), [(2, 0.0), (4, 1.5)])
def test_a_beam_finds_what_a_plain_one_finds(kind, beam, penalty):
    model, sources = make_model(kind), make_sources(LENGTHS)
    expected = [
        plain.beam(model, alone(sources, row), longest, beam, penalty) for row, longest in enumerate(LONGEST)
    ]
    assert found(model, sources, LONGEST, beam=beam, length_penalty=penalty) == expected


@pytest.mark.parametrize("kind", ATTENDING)
def test_a_beam_with_a_coverage_penalty_finds_what_a_plain_one_finds(kind):
    model, sources, search = (
        make_model(kind),
        make_sources(LENGTHS),
        {"length_penalty": 0.6, "coverage_penalty": 0.8},
    )
    expected = [
        plain.beam(model, alone(sources, row), longest, 4, **search) for row, longest in enumerate(LONGEST)
    ]
    assert found(model, sources, LONGEST, beam=4, **search) == expected


def test_beams_and_penalties_change_what_is_found():
    sources = make_sources(LENGTHS)
    models = [make_model(kind, sharpness=2.0, end_bias=0.0) for kind in ATTENDING]
    searches = (
        {},
        {"beam": 4},
        {"beam": 4, "length_penalty": 2.0},
        {"beam": 4, "coverage_penalty": 4.0},
        {"beam": 4, "length_penalty": 2.0, "coverage_penalty": 4.0},
    )
    outputs = [str([found(model, sources, [8] * 4, **search) for model in models]) for search in searches]
    assert len(set(outputs)) == len(searches)


@pytest.mark.parametrize("kind", one_in(2, KINDS))
def test_the_widest_beam_finds_the_best_of_all_outputs(kind):
    model, source, longest = make_model(kind, vocab=5, sharpness=2.0), make_sources([3]), 4
    least, longest = plain.length_bounds(model, source, longest)
    outputs = list(plain.iter_outputs(5, least, longest))
    assert len(outputs) == (27 if kind in SIZED else 40)
    for length, coverage in [(0.0, 0.0), (1.0, 0.0), (1.0, 0.5)]:
        if coverage and kind not in ATTENDING:
            continue
        best = max(outputs, key=lambda one: plain.rank_score(model, source, one, length, coverage))
        search = {"length_penalty": length, "coverage_penalty": coverage}
        assert found(model, source, [longest], beam=64, **search) == [best]


@pytest.mark.parametrize("kind", SIZED)
def test_the_widest_beam_knows_that_short_outputs_are_of_one_size(kind):
    model, source = make_model(kind, vocab=5, sharpness=2.0), make_sources([4])
    best = max(plain.iter_outputs(5, 1, 4), key=lambda one: log_likelihood(model, source, one))
    assert found(model, source, [4], beam=64) == [best]


@pytest.mark.parametrize("kind", KINDS)
def test_a_beam_of_one_is_greedy(kind):
    model, sources = make_model(kind), make_sources(LENGTHS)
    lengths, longest = (sources != 0).sum(1), torch.tensor(LONGEST)
    bounds = Bounds(min_length=torch.where(longest > lengths, longest, 1), max_length=longest)
    narrow = beam_search(model, sources, bounds, Decoding())
    likeliest = greedy_search(model, sources, bounds)
    assert narrow.symbols.equal(likeliest.symbols)
    assert_close(narrow.scores, likeliest.scores)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("search", [{}, {"beam": 3, "length_penalty": 1.0}], ids=["greedy", "beam"])
def test_a_batch_decodes_as_its_sentences_separately(kind, search):
    model, sources = make_model(kind), make_sources(LENGTHS)
    together = decode(model, sources, Decoding(**search), max_length=torch.tensor(LONGEST))
    for row, each in enumerate(together):
        (one,) = decode(model, alone(sources, row), Decoding(**search), max_length=LONGEST[row])
        assert one.tokens == each.tokens
        assert_close(one.score, each.score)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beam", [1, 3])
def test_ended_outputs_take_no_further_part(kind, beam):
    model, sources, rows = make_model(kind), make_sources([2] * 6), []
    model.output.register_forward_hook(lambda _, __, logits: rows.append(len(logits)))
    longest = [1, 2, 2, 3, 5, 5]
    decode(model, sources, Decoding(beam=beam), max_length=torch.tensor(longest))
    going = [sum(each > place for each in longest) for place in range(5)]
    assert rows[0] == 6
    assert all(taken <= beam * most for taken, most in zip(rows, going, strict=False))


def test_a_sentence_is_abandoned_as_soon_as_nothing_better_can_come():
    model, sources, steps = make_model("lstm", end_bias=50.0), make_sources(LENGTHS), []
    model.output.register_forward_hook(lambda _, __, logits: steps.append(len(logits)))
    assert found(model, sources, [9] * 4, beam=3) == [[END]] * 4
    assert steps == [4]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place(State):
    place: int = 0


class Scripted(nn.Module):
    """A model with fixed logits at each position."""

    depends_on_target_length = False

    def __init__(self, logits):
        super().__init__()
        self.logits = torch.tensor(logits)

    def begin(self, source, source_mask, lengths):
        return Place()

    def step(self, state, previous):
        return self.logits[state.place].expand(len(previous), -1), Place(place=state.place + 1)


def test_ends_that_are_unlikely_do_not_stop_a_beam():
    """Use a confident model for which the end symbol is second best at nearly all positions."""
    model, going, ending = make_model("lstm", vocab=4), [-99.0, -20.0, -9.0, 0.0], [-99.0, -20.0, 0.0, -9.0]
    model.body, model.output = Scripted([*[going] * 5, ending]), nn.Identity()
    for beam in (1, 2, 3):
        assert found(model, make_sources([3]), [6], beam=beam) == [[3] * 5 + [END]]


def test_dropout_is_off_while_decoding_and_on_again_after_it():
    text = "seq2seq(gru, gru, attention=luong)"
    model = build(text, d_model=8, source_vocab=9, vocab=7, dropout=0.5, generator=make_generator(1))
    sources = make_sources(LENGTHS)
    assert decode(model.train(), sources, Decoding(), max_length=5) == decode(
        model, sources, Decoding(), max_length=5
    )
    assert model.training and model.body.training
    decode(model.eval(), sources, Decoding(), max_length=5)
    assert not model.training


@pytest.mark.parametrize("beam", [1, 2])
def test_a_model_that_gives_no_numbers_writes_an_end(beam):
    model = make_model("lstm")
    model.output.bias.fill_(math.nan)
    assert decode(model, make_sources([3, 2]), Decoding(beam=beam), max_length=4) == [
        Decoded(tokens=[END], score=-math.inf),
        Decoded(tokens=[END], score=-math.inf),
    ]
