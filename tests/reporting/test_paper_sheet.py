"""The sheet of a paper counts results by the size of their models."""

from pathlib import Path

import pytest

from activemem import open_study
from activemem.reporting import TableError, Verdict
from activemem.reporting.paper import paper_sheet, papers
from activemem.studies import published_tables

COMMITTED = Path(__file__).parents[2] / "studies" / "results"
PAPER = "negative-eigenvalues"


@pytest.fixture(scope="module")
def sheet():
    return paper_sheet(PAPER, COMMITTED)


def test_every_printed_number_has_a_result_or_is_missing(sheet):
    (table,) = sheet.printed
    printed = published_tables()[PAPER, table.name]
    assert table.printed == len(printed.cells) == table.full_size + table.small + table.missing
    beside = [cell for each in sheet.tables for cells in each.cells for cell in cells if cell.published]
    assert table.small == sum(cell.estimate is not None for cell in beside) > 0
    assert table.full_size == 0  # no trial at the paper's size has run


def test_claims_have_the_verdicts_of_their_studies_by_size(sheet):
    small = open_study("negative-eigenvalues-small", COMMITTED).check_claims()
    verdicts = {each.spec.name: each.verdict for each in small if each.spec.source}
    assert verdicts
    for claim in sheet.claims:
        assert {each.verdict for each in claim.full_size} <= {Verdict.NOT_RUN}
        expected = [verdicts[claim.name]] if claim.name in verdicts else []
        assert [each.verdict for each in claim.small] == expected
    decided = [each for each in verdicts.values() if each in (Verdict.CONFIRMED, Verdict.REFUTED)]
    assert sheet.count_decided(small=True) == len(decided)
    assert sheet.count_decided(small=False) == 0


def test_a_verdict_has_its_trials(sheet):
    verdicts = [each for claim in sheet.claims for each in (*claim.full_size, *claim.small)]
    assert all(each.missing == each.trials > 0 for each in verdicts if each.verdict is Verdict.NOT_RUN)
    assert all(each.missing == 0 for each in verdicts if each.small)


@pytest.mark.heavy  # the rows of `paper show` have it as well
def test_a_verdict_has_the_effect_in_the_printed_numbers():
    neural = paper_sheet("extended-neural-gpu", COMMITTED)
    (better,) = (
        each
        for each in neural.claims
        if each.name
        == "the translations of the Extended Neural GPU are better than those of a GRU with attention"
    )
    assert [each.printed for each in better.full_size] == pytest.approx([29.6 - 26.4])
    assert [each.printed for each in better.small] == pytest.approx([29.6 - 26.4])


def test_the_remaining_trials_of_a_study_have_their_cost(sheet):
    studies = {each.name: each for each in sheet.studies}
    small, full = studies["negative-eigenvalues-small"], studies["negative-eigenvalues"]
    assert (small.small, small.left, small.flops) == (True, 0, 0)
    assert (full.small, full.done, full.left) == (False, 0, full.trials)
    assert full.flops > 1e15


def test_numbers_of_parameters_are_counted_without_a_trial(tmp_path):
    first, second, third, _ = paper_sheet("all-attention", tmp_path).printed
    assert [each.full_size for each in (first, second, third)] == [4, 4, 1]
    assert [each.computed for each in (first, second, third)] == [4, 4, 1]
    assert [each.small for each in (first, second, third)] == [0, 0, 0]


@pytest.mark.heavy
def test_growth_of_cost_with_the_length_is_decided_without_a_trial(tmp_path):
    claims = open_study("active-memory-cost", tmp_path).check_claims()
    assert [each.verdict for each in claims] == [Verdict.CONFIRMED, Verdict.CONFIRMED]
    sheet = paper_sheet("active-memory-transformer", tmp_path)
    assert sheet.count_decided(small=False) == 2
    assert sheet.count_decided(small=False, trained=True) == 0


def test_an_unknown_paper_is_refused_with_the_nearest():
    with pytest.raises(
        TableError, match="no published numbers of 'negative-eigenvalue'; nearest: negative-eigenvalues"
    ):
        paper_sheet("negative-eigenvalue", COMMITTED)
    assert PAPER in papers()
