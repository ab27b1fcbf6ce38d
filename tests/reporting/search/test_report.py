"""A report, a section of a paper and a served page of a search in a conditional space have all of it."""

import re
from html import unescape

import pytest

from activemem.reporting.results import StudyResults
from activemem.studies.study import load_study

from ..serve.conftest import get, serving
from .conftest import SEARCH

ALL = SEARCH + "".join(
    f'[[{table}]]\nname = "{kind}"\nkind = "{kind}"\n'
    for table, kind in (
        ("table", "points"),
        ("table", "importance"),
        ("curve", "incumbent"),
        ("curve", "parallel"),
    )
)


@pytest.fixture(scope="module")
def results(search_store):
    return StudyResults(load_study(ALL), search_store)


def test_a_report_has_tables_and_figures_of_a_search(results):
    page = results.report()
    assert "5 of 5 points, those with the highest max_length" in page
    assert "conv(k=&#8230;)" in page
    assert page.count("data:image/svg+xml") == 2
    assert "Not every point takes conv.k; below an axis: those that do not." in page


@pytest.mark.slow
def test_a_section_of_a_paper_has_them_too(results):
    section = results.latex_section()
    assert sorted(section.figures) == ["found-incumbent.pdf", "found-parallel.pdf"]
    assert r"\ref{tab:found-points} and~\ref{tab:found-importance} have the results" in section.text


def test_a_served_page_has_them_while_the_search_runs(search_store):
    search_store.save_study_record("found", {"text": ALL, "overrides": []})
    with serving(search_store) as server:
        _, page = get(server, "/study/found")
        images = re.findall(r'<img[^>]* src="([^"]+)"', page)
        assert "5 of 5 points, those with the highest max_length" in page
        assert len(images) == 2
        answer, picture = get(server, unescape(images[1]))
    assert (answer.status, "<svg" in picture) == (200, True)
