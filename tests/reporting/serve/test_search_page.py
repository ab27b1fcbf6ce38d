"""The page of a search: its history, and the list of its points."""

import json
import re
from html import unescape

import pytest

from activemem import load_study
from activemem.storage import STARTS_FILE, Store, write_note

from ...study_texts import study_text
from ..page.browser import find_executable, open_browser
from ..page.test_in_browser import FAINT, WIDER
from ..search.conftest import CONV, POINTS, SEARCH, fill_search
from .conftest import get, serving, write_end, write_study

PAGE = "/study/found"


@pytest.fixture
def store(tmp_path):
    found, study = Store(tmp_path), load_study(SEARCH)
    write_study(found, study)
    fill_search(found, study, POINTS)
    return found


def part(page, name):
    """Return the text of a part of a page."""
    return page.partition(f'<section id="{name}"')[2].partition("</section>")[0]


def points(page):
    """Return number, state and value of each point in the list of a page."""
    rows = part(page, "points").split("<tr data-key=")[1:]
    cells = [re.findall(r"<t[hd].*?</t[hd]>", row)[:3] for row in rows]
    return [tuple(re.sub("<.*?>", "", each) for each in row) for row in cells]


def test_the_history_is_a_figure_of_the_best_value_so_far(store):
    with serving(store) as server:
        page = get(server, PAGE)[1]
        (source,) = re.findall('<a href="(.*?[.]svg.*?)"', part(page, "history"))
        assert "</title></rect>" in part(page, "history")
        answer, svg = get(server, source)
    assert answer.getheader("Content-Type") == "image/svg+xml"
    assert svg.startswith("<?xml")
    assert '<section id="figures"' not in page  # the file of the study has no other figure


def test_points_are_listed_newest_first_with_their_states_and_values(store):
    with serving(store) as server:
        page = get(server, PAGE)[1]
    assert points(page) == [
        ("7", "done", "14.0"),
        ("6", "done", "17.5"),
        ("5", "pruned", ""),
        ("4", "failed", ""),
        ("3", "done", "15.0"),
        ("2", "done", "8.0"),
        ("1", "done", "11.0"),
    ]
    assert re.findall("<strong>(.*?)</strong>", part(page, "points")) == ["17.5", "15.0", "11.0"]
    assert 'aria-sort="descending"' in part(page, "points")


def test_trials_that_the_search_takes_from_another_study_are_done(store):
    study = load_study(SEARCH.replace('"found"', '"second"').replace("trials = 20", "trials = 1"))
    write_study(store, study)
    for trial in study.point_trials(POINTS[0][0]):
        store.adopt(trial.id, study.name, json.dumps(dict(trial.levels)))
    with serving(store) as server:
        page = get(server, "/study/second")[1]
    assert points(page) == [("1", "done", "11.0")]
    assert "2 of 2 trials" in part(page, "progress")


def test_a_heading_sorts_the_points_the_best_first_and_then_the_other_way_round(store):
    with serving(store) as server:
        page = get(server, PAGE)[1]
        (first,) = re.findall('<a href="([^"#]*)#points">max_length', part(page, "points"))
        assert first == "?sort=-max_length"
        page = get(server, PAGE + first)[1]
        assert [each[0] for each in points(page)] == ["6", "3", "7", "1", "2", "4", "5"]
        (again,) = re.findall('<a href="([^"#]*)#points">max_length', part(page, "points"))
        page = get(server, PAGE + again)[1]
        assert [each[0] for each in points(page)][:2] == ["2", "1"]
        assert points(get(server, f"{PAGE}?sort=nothing")[1])[0][0] == "7"


def test_a_point_leads_to_its_trial_and_one_that_trains_is_listed_first(store):
    study = load_study(SEARCH)
    trial = study.point_trials({"lr": 0.07, "choice": CONV, "conv.k": 4})[0]
    folder = store.files.checkpoint_dir(trial.id)
    folder.mkdir(parents=True)
    (folder / STARTS_FILE).write_text(f"{trial.to_json()}\n")
    write_note(folder, 1, {"loss": 0.5}, [], seconds=10.0)
    with serving(store) as server:
        page = get(server, PAGE)[1]
        assert points(page)[:2] == [("–", "begun", ""), ("7", "done", "14.0")]
        links = re.findall('href="(/study/found/trial/[^"]*)"', part(page, "points"))
        assert links[0].endswith(trial.id)
        assert [get(server, each)[0].status for each in links] == [200] * 8


def test_a_long_list_of_points_has_pages_in_the_order_of_its_column(tmp_path):
    study, store = load_study(SEARCH), Store(tmp_path)
    write_study(store, study)
    values = [number * 37 % 240 + 1.0 for number in range(240)]
    many = [({"lr": 0.01 + n * 1e-5, "choice": "sa"}, (value, value), 3000) for n, value in enumerate(values)]
    fill_search(store, study, many)
    with serving(store) as server:
        pages = [get(server, f"{PAGE}?sort=-max_length&points={number}")[1] for number in (1, 2, 3, 9)]
    shown = [float(value) for page in pages[:3] for _, _, value in points(page)]
    assert [len(points(page)) for page in pages] == [100, 100, 40, 40]
    assert shown == sorted(values, reverse=True)


@pytest.mark.skipif(find_executable() is None, reason="needs a Chromium, as Debian's package chromium")
def test_the_page_fits_a_phone_and_a_desktop_in_light_and_dark(store, tmp_path):
    with serving(store) as server, open_browser(tmp_path / "profile") as window:
        for width in (390, 1280):
            for dark in (False, True):
                window.open(f"http://127.0.0.1:{server.port}{PAGE}?sort=time", width=width, dark=dark)
                assert window.console_messages() == []
                assert window.evaluate(WIDER) == 0
                assert window.evaluate(FAINT) == []
        window.follow("#points th[aria-sort=ascending] a")
        heading = window.evaluate("document.querySelector('#points th[aria-sort=descending]').innerText")
        assert heading == "time ↓"


def test_a_trial_of_an_added_seed_has_a_page_and_a_line(tmp_path):
    study = load_study(
        study_text(
            study={"max_seeds": 4}, factors={"mixer": ["sa", "conv(k=3)"], "task": ["sort"], "seed": [0, 1]}
        )
    )
    store = Store(tmp_path)
    write_study(store, study)
    later = [trial for trial in study.with_later_seeds().trials if trial.seed > 1]
    ended, other = later[0], later[-1]
    for number, trial in enumerate((*study.trials, ended)):
        write_end(store, trial, {"max_length": 10.0 + number, "loss": 0.5}, number)
    folder = store.files.checkpoint_dir(other.id)
    folder.mkdir(parents=True)
    (folder / STARTS_FILE).write_text(f"{other.to_json()}\n")
    write_note(folder, 1, {"loss": 0.5}, [], seconds=10.0)
    with serving(store) as server:
        page = get(server, "/study/tiny")[1]
        for trial, state in ((ended, "done"), (other, "begun")):
            assert f'href="/study/tiny/trial/{trial.id}"' in part(page, "trials")
            answer, own = get(server, f"/study/tiny/trial/{trial.id}")
            assert answer.status == 200
            assert f"<strong>{state}</strong>" in own
            assert f"--set factors.seed=[{trial.seed}]" in unescape(own).replace("'", "")
        assert get(server, f"/study/tiny/trial/{later[1].id}")[0].status == 404  # it has not begun
        own = get(server, f"/study/tiny/trial/{ended.id}")[1]
    assert re.findall(r"<figcaption><code>(.*?)</code>", own) == ["seed 0", "seed 1", "seed 2"]
    assert ">14.0</td>" in own
    assert load_study(study.text, [f"factors.seed=[{ended.seed}]"]).trials[0].id == ended.id
