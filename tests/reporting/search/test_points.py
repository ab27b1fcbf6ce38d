"""The best points of a search, as values and as a table."""

import pytest

from activemem import StudyError, StudyResults, load_study
from activemem.reporting.tables.render import render
from activemem.studies import find_points

from ...study_texts import replaced
from .conftest import PRUNES, SEARCH

TABLE = '[[table]]\nname = "best"\nkind = "points"\npoints = 3\n'


@pytest.fixture(scope="module")
def table(search_store):
    return StudyResults(load_study(SEARCH + TABLE, PRUNES), search_store).table("best")


def test_points_are_ranked_by_the_mean_over_all_seeds(search_store):
    found = find_points(load_study(SEARCH, PRUNES), search_store.trials())
    assert [point.mean("max_length") for point in found.ranked()] == [17.5, 15.0, 14.0, 11.0, 8.0]
    assert [point.status for point in found.points] == ["done"] * 3 + ["failed", "pruned"] + ["done"] * 2
    assert found.gaps == {"failed": 1, "pruned": 2}


def test_a_table_has_the_best_points_with_what_they_are(table):
    assert table.columns == ("max_length ↑", "parameters", "n", "lr", "choice", "conv.k")
    assert [[cell.full_text for cell in row] for row in table.cells] == [
        ["17.5 ± 0.7", "1,700", "2", "0.004", "conv(k=…)", "6"],
        ["15.0 ± 1.4", "1,500", "2", "0.002", "conv(k=…)", "5"],
        ["14.0 ± 1.4", "3,000", "2", "0.02", "sa", "–"],
    ]
    assert [row[0].best for row in table.cells] == [True, False, False]
    caption = " ".join(table.sentences)
    assert "3 of 5 points, " in caption
    assert "1 point has no rank, as a seed has no value." in caption
    assert " 14 trials: 1 failed, 2 stopped early." in caption


def test_captions_count_the_points_outside_a_narrowed_space(search_store):
    text = SEARCH + TABLE + '[[curve]]\nname = "course"\nkind = "points"\n'
    results = StudyResults(load_study(replaced(text, ("real(1e-4, 1e-1", "real(1e-3, 1e-2"))), search_store)
    told = "Not counted: 4 stored trials of other settings, data or code, or of points outside the present"
    assert told in " ".join(results.table("best").sentences)
    assert told in " ".join(results.curve("course").notes)


def test_captions_count_the_points_of_a_space_with_one_more_dimension(search_store):
    fixed = ('lr = "real(1e-4, 1e-1, log=true)"', ""), ("[search.space]", ""), ('"{lr}"', "0.01")
    results = StudyResults(load_study(replaced(SEARCH + TABLE, *fixed)), search_store)
    assert "Not counted: 10 stored trials" in " ".join(results.table("best").sentences)


def test_a_table_and_a_front_may_show_a_cost_that_is_known_before_training(search_store):
    curve = '[[curve]]\nname = "front"\nkind = "points"\nx = "step_flops"\n'
    results = StudyResults(load_study(SEARCH + TABLE + 'value = "step_flops"\n' + curve), search_store)
    assert results.table("best").columns[0] == "step_flops ↓"
    assert len(results.curve("front").panels[0].content.lines) == 5


@pytest.mark.parametrize("form", ["markdown", "csv", "latex", "html", "siunitx"])
def test_every_format_has_the_points(table, form):
    text = render(table, form)
    assert "17.5" in text
    assert "0.004" in text


@pytest.mark.parametrize(
    "text",
    [
        '[[table]]\nname = "t"\nrows = "lr"\nvalue = "loss"\n',
        '[[table]]\nname = "t"\nkind = "points"\nvalue = "los"\n',
        '[[curve]]\nname = "t"\nkind = "points"\nx = "los"\nvalue = ["loss", "parameters"]\n',
        '[[curve]]\nname = "t"\nkind = "front"\n',
        '[[curve]]\nname = "t"\nkind = "incumbent"\n',
    ],
)
def test_tables_that_do_not_fit_a_search_are_reported(text, golden):
    with golden.raises(StudyError):
        load_study(SEARCH + text)


def test_a_grid_has_no_points(everything, golden):
    with golden.raises(StudyError):
        load_study(everything.document.text + TABLE)
