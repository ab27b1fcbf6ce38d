"""The share of noise in the lead of the best of many points."""

import math
import re

import pytest

from activemem import StudyResults, load_study
from activemem.reporting.search.noise import chance_lead, find_plateau, measure_noise
from activemem.storage import Store
from activemem.studies import find_points

from .conftest import SEARCH, WITH_BASELINE, fill_search

# Of Dunnett (1955), Table 1a: one-sided, 95 %, for comparisons of equally many values with a control.
DUNNETT = ((1, 10, 1.81), (2, 10, 2.15), (5, 10, 2.56), (3, 20, 2.19))


@pytest.mark.parametrize(("count", "degrees", "limit"), DUNNETT)
def test_the_lead_by_chance_is_that_of_dunnett(count, degrees, limit):
    assert chance_lead(count, 3, 3, degrees) / math.sqrt(2 / 3) == pytest.approx(limit, abs=0.006)


def searched(tmp_path, best, text=WITH_BASELINE):
    """Return a search with a baseline of four seeds at 11, and twelve points, one of a given value."""
    study, store = load_study(text), Store(tmp_path)
    points = [({"lr": 0.01, "choice": "sa"}, (10.0, 12.0, 11.0, 11.0)[: 2 if text == SEARCH else 4], 1)]
    for number in range(12):
        value = best if number == 3 else 10.0 + 0.1 * (number % 10)
        values = (value - 0.5, value + 0.5) if len(study.seeds) > 1 else (value,)
        points.append(({"lr": 0.001 * (number + 1), "choice": "sa"}, values, 1))
    points = [each for each in points if each[0]["lr"] != 0.01 or len(each[1]) > 2]
    fill_search(store, study, points)
    return StudyResults(study, store)


def test_noise_is_pooled_over_points_with_several_seeds(tmp_path):
    results = searched(tmp_path, 10.3)
    noise = measure_noise(find_points(results.study, results.store.trials()), "max_length")
    assert noise.degrees == 14
    caption = " ".join(results.best_table().sentences)
    assert "(14 degrees of freedom)" in caption
    assert noise.sd == pytest.approx(math.sqrt((2.0 + 11 * 0.5) / 14))


def test_a_lead_within_the_noise_is_called_so_and_a_larger_one_is_not(tmp_path):
    caption = " ".join(searched(tmp_path / "small", 12.0).best_table().sentences)
    assert re.search("baseline by 1.00; of 11 .* may be noise", caption)
    assert re.search(r"of 12 points .* point \d+ in the", caption)
    caption = " ".join(searched(tmp_path / "large", 20.0).best_table().sentences)
    assert "is not chance." in caption
    assert "cannot be told" not in caption
    one_seed = WITH_BASELINE.replace("seed = [0, 1]", "seed = [0]")
    caption = " ".join(searched(tmp_path / "alone", 20.0, one_seed).best_table().sentences)
    assert "is not chance, unless its own seeds vary more" in caption
    assert "No point is" in " ".join(searched(tmp_path / "none", 10.0).best_table().sentences)


def test_a_plateau_begins_where_the_first_of_its_points_ended(tmp_path):
    results = searched(tmp_path, 12.0)
    found = find_points(results.study, results.store.trials())
    plateau = find_plateau(found, found.goals[0], measure_noise(found, "max_length"))
    assert plateau == list(range(1, 13))


def test_a_plan_reports_what_a_search_can_see(tmp_path, golden):
    golden(StudyResults(load_study(WITH_BASELINE), Store(tmp_path / "empty")).noise)
    alone = load_study(SEARCH, ["factors.seed=[0]"])
    golden(StudyResults(alone, Store(tmp_path / "empty")).noise)
    compared = load_study(WITH_BASELINE.replace("baseline_seeds = 4\n", ""), ["factors.seed=[0]"])
    golden(StudyResults(compared, Store(tmp_path / "empty")).noise)
    study, same = load_study(WITH_BASELINE), Store(tmp_path / "same")
    fill_search(same, study, [({"lr": 0.01, "choice": "sa"}, (7.0,) * 4, 1)])
    golden(StudyResults(study, same).noise)
    told = searched(tmp_path / "filled", 12.0).noise
    golden(told[0])
    assert re.search(r"of 20 points .* 1\.95", told[1])
    assert re.match(r"5 .* difference of 1\.", told[2])


def test_the_best_point_so_far_is_drawn_over_a_band_of_chance(tmp_path, golden):
    text = WITH_BASELINE + '[[curve]]\nname = "i"\nkind = "points"\n'
    made = searched(tmp_path, 12.0).study
    results = StudyResults(load_study(text), Store(tmp_path))
    assert made.dimensions == results.study.dimensions
    figure = results.curve()
    baseline = figure.panels[0].content.baseline
    assert (baseline.y, baseline.low, baseline.n) == (11.0, 11.0, 4)
    assert 12.5 < baseline.high < 13.0
    golden(figure.notes)
    assert results.curve().render("png")
