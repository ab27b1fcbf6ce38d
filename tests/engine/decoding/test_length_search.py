"""The search over sizes: greedy for each size, then a beam at the best; or an estimated size."""

import platform
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from activemem.engine.decoding import searches
from activemem.engine.decoding.searches import Decoding, LengthLine, OutputCosts, SizeSearch, decode

from ...quick_cases import one_in
from . import references as plain
from .references import SIZED, log_likelihood, make_model, make_sources

LENGTHS = [4, 1, 6, 3, 5]


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.no_grad():
        yield


def alone(sources, row):
    """Return one source without padding."""
    return sources[row : row + 1, : int((sources[row] != 0).sum())]


def likeliest_size(model, source, longest):
    """Return the size of the best greedy output, decoding each size separately."""
    n = source.shape[1]
    outputs = {
        size: plain.greedy(model, source, size) for size in range(min(n, longest), min(2 * n, longest) + 1)
    }
    return max(outputs, key=lambda size: log_likelihood(model, source, outputs[size]))


@pytest.mark.parametrize("kind", one_in(2, SIZED))
@pytest.mark.parametrize(("beam", "longest"), [(1, 20), (2, 7), (2, 4)])
def test_a_beam_of_the_likeliest_size_is_what_is_found(kind, beam, longest):
    model, sources = make_model(kind, sharpness=30.0), make_sources(LENGTHS)
    chosen = set()
    for row, each in enumerate(
        decode(model, sources, Decoding(beam=beam), max_length=longest, sizes=SizeSearch())
    ):
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
    decode(model, make_sources(LENGTHS), Decoding(), max_length=20, sizes=SizeSearch())
    assert rows[0] == sum(n + 1 for n in LENGTHS)
    assert len(rows) <= 2 * max(LENGTHS)


@pytest.mark.parametrize("kind", SIZED)
@pytest.mark.parametrize("beam", [1, 2])
def test_it_is_the_same_in_small_parts(kind, beam, monkeypatch):
    model, sources = make_model(kind, sharpness=30.0), make_sources(LENGTHS)
    at_once = decode(model, sources, Decoding(beam=beam), max_length=20, sizes=SizeSearch())
    monkeypatch.setattr(searches, "MAX_POSITIONS", 16)
    in_parts = decode(model, sources, Decoding(beam=beam), max_length=20, sizes=SizeSearch())
    assert [each.tokens for each in in_parts] == [each.tokens for each in at_once]
    assert_close([each.score for each in in_parts], [each.score for each in at_once])


@pytest.mark.parametrize("kind", SIZED)
def test_a_batch_decodes_as_its_sentences_separately(kind):
    model, sources = make_model(kind, sharpness=30.0), make_sources(LENGTHS)
    for row, each in enumerate(decode(model, sources, Decoding(beam=2), max_length=9, sizes=SizeSearch())):
        (one,) = decode(model, alone(sources, row), Decoding(beam=2), max_length=9, sizes=SizeSearch())
        assert one.tokens == each.tokens
        assert_close(one.score, each.score)


@pytest.mark.parametrize("kind", SIZED)
@pytest.mark.parametrize("beam", [1, 2])
def test_without_a_search_an_output_is_as_long_as_is_said_where_that_is_longer_than_the_source(kind, beam):
    model, sources = make_model(kind, end_bias=0.0), make_sources(LENGTHS)
    found = decode(model, sources, Decoding(beam=beam), max_length=5)
    for row, each in enumerate(found):
        assert len(each.tokens) == 5 if LENGTHS[row] < 5 else len(each.tokens) <= 5
        assert abs(each.score - log_likelihood(model, alone(sources, row), each.tokens)) < 1e-5


@pytest.mark.parametrize("kind", SIZED)
def test_sizes_are_compared_without_penalties(kind):
    model, sources = make_model(kind, sharpness=30.0), make_sources(LENGTHS)
    plainly = decode(model, sources, Decoding(beam=2), max_length=9, sizes=SizeSearch())
    assert plainly == decode(
        model,
        sources,
        Decoding(beam=2, length_penalty=2.0, coverage_penalty=1.0),
        max_length=9,
        sizes=SizeSearch(),
    )


def test_parts_hold_as_many_outputs_as_fit_and_at_least_one():
    rows = [part.tolist() for part in searches._chunks(torch.tensor([5, 2, 9, 3, 2]), 8)]
    assert rows == [[1, 4], [3], [0], [2]]


def far_from_five(tokens):
    """Return a cost that an untrained model does not minimise by chance."""
    return 50.0 * abs(len(tokens) - 5)


class FarFromFive(OutputCosts):
    """The same cost for batches of outputs."""

    def total(self, sentences, symbols):
        return 50.0 * ((symbols != 0).sum(1) - 5).abs().double()

    def least(self, sentences, symbols, left):
        return torch.zeros(len(symbols), dtype=torch.float64)


@pytest.mark.parametrize("kind", one_in(2, SIZED))
def test_costs_are_taken_from_the_likelihood_of_each_size(kind):
    model, sources, moved = make_model(kind, sharpness=30.0), make_sources(LENGTHS), 0
    sizes = SizeSearch(ratio=2.0, margin=2, costs=FarFromFive())
    likeliest = decode(model, sources, Decoding(), max_length=30, sizes=SizeSearch())
    for row, each in enumerate(decode(model, sources, Decoding(), max_length=30, sizes=sizes)):
        source, outputs = alone(sources, row), []
        n = source.shape[1]
        for size in range(n, 2 * n + 2 + 1):  # each size by itself, the dearest ones too
            tokens = plain.greedy(model, source, size)
            loss = -log_likelihood(model, source, tokens) + far_from_five(tokens)
            outputs.append((loss, tokens))
        assert each.tokens == min(outputs)[1]
        moved += each.tokens != likeliest[row].tokens
    assert moved


@pytest.mark.parametrize("kind", SIZED)
def test_a_beam_with_a_dearer_output_than_the_greedy_one_is_left_out(kind):
    model, sources = make_model(kind, sharpness=30.0), make_sources(LENGTHS)
    sizes = SizeSearch(costs=FarFromFive())
    greedy = decode(model, sources, Decoding(), max_length=20, sizes=sizes)
    for row, each in enumerate(decode(model, sources, Decoding(beam=2), max_length=20, sizes=sizes)):
        one = greedy[row]
        assert each.score - far_from_five(each.tokens) >= one.score - far_from_five(one.tokens) - 1e-9
        wide = plain.beam(model, alone(sources, row), likely_size(model, alone(sources, row)), 2)
        assert each.tokens in (one.tokens, wide)


def likely_size(model, source):
    """Return the size of the greedy output with the best score."""
    n = source.shape[1]
    outputs = {size: plain.greedy(model, source, size) for size in range(n, 2 * n + 1)}
    return max(
        outputs,
        key=lambda size: log_likelihood(model, source, outputs[size]) - far_from_five(outputs[size]),
    )


def test_lengths_are_estimated_by_the_line_of_least_squares():
    random = np.random.default_rng(0)
    sources = random.integers(1, 40, 500)
    targets = np.maximum(1, np.rint(1.3 * sources + random.normal(2, 3, 500))).astype(int)
    line = LengthLine.fit(torch.from_numpy(sources).int(), torch.from_numpy(targets).int())
    slope, constant = np.polyfit(sources, targets, 1)
    np.testing.assert_allclose([float(line.slope), float(line.constant)], [slope, constant], rtol=1e-9)
    lengths = torch.arange(1, 60)
    found = line.estimate(lengths)
    assert found.tolist() == np.ceil(slope * lengths.numpy() + constant).astype(int).tolist()
    assert LengthLine.from_dict(line.to_dict()) == line


def test_an_estimate_that_is_whole_is_not_rounded_up():
    thirds = torch.arange(3, 3000, 3)
    line = LengthLine.fit(thirds, thirds // 3 * 7 + 1)
    assert (line.slope, line.constant) == (Fraction(7, 3), 1)
    assert line.estimate(thirds).equal(thirds // 3 * 7 + 1)


def test_where_all_sources_are_of_one_length_the_mean_is_estimated():
    line = LengthLine.fit(torch.tensor([4, 4, 4]), torch.tensor([3, 5, 8]))
    assert line.estimate(torch.tensor([4, 90])).tolist() == [6, 6]


LINES = {
    "between": LengthLine(slope=Fraction(3, 2), constant=Fraction(-1, 3)),
    "below": LengthLine(slope=Fraction(0), constant=Fraction(-3)),
    "above": LengthLine(slope=Fraction(9), constant=Fraction(1)),
}
ESTIMATES = {"between": [6, 2, 9, 5, 8], "below": LENGTHS, "above": [9, 3, 9, 7, 9]}


@pytest.mark.parametrize("kind", one_in(2, SIZED))
@pytest.mark.parametrize(("beam", "line"), [(1, "between"), *((2, line) for line in LINES)])
def test_an_estimated_size_within_the_bounds_is_the_only_one_that_is_tried(kind, beam, line):
    model, sources, told = make_model(kind, sharpness=30.0), make_sources(LENGTHS), []
    sizes = SizeSearch(ratio=2.0, margin=1, line=LINES[line])
    found = decode(model, sources, Decoding(beam=beam, length_penalty=1.0), max_length=9, sizes=sizes)
    for row, (each, size) in enumerate(zip(found, ESTIMATES[line], strict=True)):
        source = alone(sources, row)
        one = plain.greedy(model, source, size) if beam == 1 else plain.beam(model, source, size, beam)
        assert each.tokens == one
        assert abs(each.score - log_likelihood(model, source, one)) < 1e-5
    begin = model.begin
    model.begin = lambda rows, lengths: told.append(lengths.tolist()) or begin(rows, lengths)
    decode(model, sources, Decoding(beam=beam), max_length=9, sizes=sizes)
    assert sorted(size for part in told for size in part) == sorted(ESTIMATES[line])


@pytest.mark.parametrize("kind", SIZED)
def test_the_output_of_lower_cost_with_the_estimated_size_is_found(kind):
    model, sources = make_model(kind, sharpness=30.0), make_sources(LENGTHS)
    sizes = SizeSearch(line=LINES["between"], costs=FarFromFive())
    found = [decode(model, sources, Decoding(beam=beam), max_length=9, sizes=sizes) for beam in (1, 2)]
    for row, (greedy, wide) in enumerate(zip(*found, strict=True)):
        beam = plain.beam(model, alone(sources, row), min(ESTIMATES["between"][row], 2 * LENGTHS[row]), 2)
        assert wide.tokens in (greedy.tokens, beam)
        worth = [each.score - far_from_five(each.tokens) for each in (greedy, wide)]
        assert worth[1] >= worth[0] - 1e-9


SEARCH = """
import os, resource, torch
from activemem.blocks.models.model import build
from activemem.engine.core.process import prepare_cpu
from activemem.engine.decoding.searches import Decoding, SizeSearch, decode

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

prepare_cpu(1)
generator = torch.Generator().manual_seed(0)
recipe = "extended_neural_gpu(layers=1, width=2, maps=64)"
model = build(recipe, d_model=8, source_vocab=9, vocab=9, generator=generator).eval()
decode(model, torch.full((1, 2), 3), Decoding(), max_length=4, sizes=SizeSearch())
before = resident()
sources = torch.randint(3, 9, (64, 8), generator=generator)
decode(model, sources, Decoding(), max_length=16, sizes=SizeSearch())
print(resident() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before)
"""


@pytest.mark.heavy  # a process that imports torch
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator than glibc's stays as it is")
def test_memory_of_a_search_goes_back_to_the_system():
    told = subprocess.run([sys.executable, "-c", SEARCH], capture_output=True, check=True, text=True).stdout
    held, most = map(int, told.split())
    assert most > 2**25
    assert held < most / 4
