"""Reports, LaTeX sections and served pages of searches."""

import pytest

from activemem import StudyResults, load_study
from activemem.storage import Store

from ...study_texts import study_text
from ..serve.conftest import get, section, serving
from .conftest import SEARCH, fill_search

ALL = SEARCH + "".join(
    f'[[{table}]]\nname = "{name}"\nkind = "points"\n{x}'
    for table, name, x in (
        ("table", "points", ""),
        ("curve", "history", ""),
        ("curve", "front", 'x = "parameters"\n'),
    )
)


@pytest.fixture(scope="module")
def results(search_store):
    return StudyResults(load_study(ALL), search_store)


def test_a_report_has_tables_and_figures_of_a_search(results):
    page = results.report()
    assert "5 of 5 points, those with the highest max_length" in page
    assert "conv(k=&#8230;)" in page
    figures = page.partition('id="figures"')[2].partition("</section>")[0]
    assert figures.count("<svg ") == 2


@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["search.sampler=random", "search.scheduler=asha"],
    ],
)
def test_a_report_names_the_sampler_and_the_scheduler(search_store, changes, golden):
    lead = StudyResults(load_study(SEARCH, changes), search_store).report().partition("A search of")[2]
    golden(lead.partition("</p>")[0])


def best_points(page):
    """Return the table of the best points in a page of a study that has no such table itself."""
    return page.partition('id="best">')[2].partition("</figure>")[0]


def test_a_page_shows_the_recipe_of_each_point_and_the_history_of_a_search_that_asks_for_nothing(tmp_path):
    text = study_text(
        study={"name": "nested", "title": "Layers with mixers"},
        model={"recipe": "{layer} >> {mixer}"},
        task={"name": "sort"},
        train={"optimizer": {"name": "adam", "lr": "{lr}"}, "epochs": 1},
        search={"trials": 9, "metric": "max_length", "direction": "max"},
        space={
            "layer": "choice(sa, {mixer} >> ff({width}))",
            "mixer": "choice(gru, conv(k={k}))",
            "k": "integer(2, 5)",
            "width": "integer(4, 8)",
            "lr": "real(1e-4, 1e-1, log=true)",
        },
        factors={"seed": [0]},
    )
    store, study = Store(tmp_path), load_study(text)
    points = (
        ({"layer": "sa", "mixer": "gru", "lr": 0.01}, (3.0,), 1000),
        (
            {"layer": "{mixer} >> ff({width})", "mixer": "conv(k={k})", "k": 4, "width": 6, "lr": 0.02},
            (7.0,),
            500,
        ),
    )
    fill_search(store, study, points)
    store.records.save("nested", {"text": text, "overrides": []})
    resolved = "conv(k=4) &gt;&gt; ff(6) &gt;&gt; conv(k=4)"
    page = StudyResults(study, store).report()
    assert best_points(page).count(f">{resolved}</td>") == 1
    assert best_points(page).count(">0.02</td>") == 1
    assert page.count(f"<code>{resolved}</code>") == 1  # of the models
    assert "{layer} &gt;&gt; {mixer}" not in page.partition('id="best"')[2].partition('id="figures"')[0]
    assert "The best point so far" in page
    with serving(store) as server:
        _, served = get(server, "/study/nested")
    assert "The best point so far" in served
    assert best_points(served).count(f">{resolved}</td>") == 1
    assert resolved in section(served, "trials")
    assert "ff({width})" not in section(served, "trials")


def test_a_served_page_has_them_while_the_search_runs(search_store):
    search_store.records.save("found", {"text": ALL, "overrides": []})
    with serving(search_store) as server:
        _, page = get(server, "/study/found")
    assert "5 of 5 points, those with the highest max_length" in page
    assert "The best point so far" in page


def test_best_points_are_listed_once_and_numbers_are_rounded(tmp_path):
    store, lr = Store(tmp_path), 0.032122297828722286
    fill_search(store, load_study(SEARCH), (({"lr": lr, "choice": "sa"}, (10.0, 12.0), 3000),))
    without, with_table = (StudyResults(load_study(text), store).report() for text in (SEARCH, ALL))
    assert ">0.03212</td>" in best_points(without)
    assert not best_points(with_table)
    store.records.save("found", {"text": SEARCH, "overrides": []})
    with serving(store) as server:
        _, page = get(server, "/study/found")
    assert best_points(page).count(">0.03212</td>") == 1
    assert page.count("0.03212") > 1  # in the table of trials, too
    assert str(lr) not in page
