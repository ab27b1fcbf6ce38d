"""Multi-objective searches with limits."""

import pytest

from activemem import StudyResults, load_study
from activemem.storage import Store

from .conftest import POINTS, WITH_BASELINE, fill_search

TWO = WITH_BASELINE.replace('metric = "max_length"', 'metric = ["max_length", "parameters"]').replace(
    'direction = "max"', 'direction = ["max", "min"]'
)
FRONT = '[[curve]]\nname = "front"\nkind = "points"\nx = "parameters"\n'


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store, study = Store(tmp_path_factory.mktemp("two")), load_study(TWO)
    fill_search(store, study, [(POINTS[0][0], (10.0, 12.0, 11.0, 9.0), 3000), *POINTS[1:]])
    return store


def test_undominated_points_come_first(store):
    table = StudyResults(load_study(TWO), store).best_table()
    assert [row[1].text for row in table.cells] == ["1,700", "1,500", "1,000", "3,000", "3,000"]
    assert "the highest max_length, the lowest parameters" in table.caption


def test_objectives_have_the_arrow_of_their_direction_and_the_best_in_bold(store):
    table = StudyResults(load_study(TWO), store).best_table()
    assert [str(getattr(column, "text", column)) for column in table.columns[:2]] == [
        "max_length ↑",
        "parameters ↓",
    ]
    assert [row[1].best for row in table.cells] == [False, False, True, False, False]
    away = load_study(TWO, ['search.direction=["max", "max"]'])
    table = StudyResults(away, store).best_table()
    assert str(getattr(table.columns[1], "text", table.columns[1])) == "parameters ↑"
    assert [cell.text for row in table.cells for cell in row[1:2] if cell.best] == ["3,000", "3,000"]


def test_a_table_of_points_can_have_their_recipes(store):
    study = load_study(TWO + '[[table]]\nname = "recipes"\nkind = "points"\npoints = 2\nshow = "recipe"\n')
    table = StudyResults(study, store).table()
    assert [column.text if hasattr(column, "text") else column for column in table.columns][-2:] == [
        "recipe",
        "lr",
    ]
    assert [[cell.text for cell in row[-2:]] for row in table.cells] == [
        ["conv(k=6) >> ff(8)", "0.004"],
        ["conv(k=5) >> ff(8)", "0.002"],
    ]


def test_a_front_is_of_what_is_optimised(store):
    curve = StudyResults(load_study(TWO + FRONT), store).curve()
    assert [(point.x, point.y) for point in curve.panels[0].content.front] == [
        (1000, 8),
        (1500, 15),
        (1700, 17.5),
    ]


def test_claims_are_only_about_measured_quantities(store, golden):
    study = load_study(StudyResults(load_study(TWO), store).promote(best=2))
    golden([claim.spec.name for claim in study.claims])


def test_a_point_behind_the_baseline_has_no_claim(store):
    text = StudyResults(load_study(TWO), store).promote(best=4)
    assert (
        "# In the search, best_3 did not beat the baseline in max_length: best_3 8.0, the baseline 10.5."
        in text
    )
    names = [claim.spec.name for claim in load_study(text).claims]
    assert [name.split()[0] for name in names] == ["best_1", "best_2", "best_4"]


def test_points_beyond_a_limit_are_reported_and_left_out(store):
    limited = TWO.replace("[study]", '[study]\nlimits = { seconds = "< 10" }', 1)
    table = StudyResults(load_study(limited), store).best_table()
    assert table.rows == ()
    assert any("6 points outside" in line for line in table.sentences)


def test_a_report_has_the_front_with_all_that_is_optimised_or_limited(store):
    limited = TWO.replace("[study]", '[study]\nlimits = { seconds = "< 1e9" }', 1)
    page = StudyResults(load_study(limited), store).report()
    assert "5 of 5 points, first those not dominated in the highest max_length, the lowest parameters" in page
    for head in ("max_length ↑", "parameters ↓", "seconds ↓"):
        assert f'<th scope="col">{head.encode("ascii", "xmlcharrefreplace").decode()}</th>' in page
