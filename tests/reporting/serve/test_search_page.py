"""The page of a search: its history, and the list of its trials."""

import json
import re
import shlex
from html import unescape
from itertools import pairwise

import polars as pl
import pytest

from activemem import load_study
from activemem.storage import STARTS_FILE, Store, write_note

from ...study_texts import study_text
from ..page.browser import find_executable, open_browser
from ..page.test_in_browser import FAINT, WIDER
from ..search.conftest import CONV, POINTS, SEARCH, fill_search
from .conftest import get, names, section, serving, write_end, write_study

PAGE = "/study/found"


@pytest.fixture
def store(tmp_path):
    found, study = Store(tmp_path), load_study(SEARCH)
    write_study(found, study)
    fill_search(found, study, POINTS)
    return found


def column(page, name):
    """Return a column of the list of trials."""
    trials = section(page, "trials")
    heads = [re.sub("<.*?>", "", each) for each in re.findall("<th scope=.col.*?</th>", trials)]
    place = [head.split()[0] for head in heads].index(name)
    rows = trials.split("<tr data-key=")[1:]
    return [re.sub("<.*?>", "", re.findall(r"<t[hd].*?</t[hd]>", row)[place]) for row in rows]


def test_the_history_is_a_figure_of_the_best_value_so_far(store):
    with serving(store) as server:
        page = get(server, PAGE)[1]
    assert names(page) == ["tables", "figures", "progress", "failures", "trials"]
    assert "</title></rect>" in section(page, "figures")


def test_the_trials_of_points_are_listed_newest_first_and_sorted_by_a_heading(store):
    with serving(store) as server:
        page = get(server, PAGE)[1]
        states, values = column(page, "state"), column(page, "max_length")
        assert set(states) == {"done", "failed"}  # without a scheduler, pruned trials are missing
        (first,) = re.findall('<a href="([^"#]*)#trials">max_length', section(page, "trials"))
        assert first == "?order=-max_length"
        down = column(get(server, PAGE + first)[1], "max_length")
        up = column(get(server, f"{PAGE}?order=max_length")[1], "max_length")
    known = sorted((float(each) for each in values if each), reverse=True)
    assert [float(each) for each in down if each] == known
    assert [float(each) for each in up if each] == known[::-1]
    assert down[len(known) :] == up[len(known) :] == [""] * (len(values) - len(known))


def test_trials_that_the_search_takes_from_another_study_are_done(store):
    study = load_study(SEARCH.replace('"found"', '"second"').replace("trials = 20", "trials = 1"))
    write_study(store, study)
    levels = {trial.id: json.dumps(dict(trial.levels)) for trial in study.search.trials_of(POINTS[0][0])}
    found = store.trials(columns=("trial", "attempt", "study")).filter(pl.col("trial").is_in(list(levels)))
    factors = pl.Series([levels[trial] for trial in found["trial"]])
    store.upkeep.copy_to_search(found.with_columns(factors=factors), study.name)
    with serving(store) as server:
        page = get(server, "/study/second")[1]
    assert column(page, "state") == ["done", "done"]
    assert "2 of 2 trials" in section(page, "progress")


def test_a_trial_that_trains_is_listed_first_and_each_has_a_page(store):
    study = load_study(SEARCH)
    trial = study.search.trials_of({"lr": 0.07, "choice": CONV, "conv.k": 4})[0]
    folder = store.files.checkpoint_dir(trial.id)
    folder.mkdir(parents=True)
    (folder / STARTS_FILE).write_text(f"{trial.to_json()}\n")
    write_note(folder, 1, {"loss": 0.5}, [], seconds=10.0)
    with serving(store) as server:
        page = get(server, PAGE)[1]
        assert column(page, "state")[0] == "begun"
        links = re.findall('href="(/study/found/trial/[^"]*)"', section(page, "trials"))
        assert links[0].endswith(trial.id)
        assert {get(server, each)[0].status for each in links} == {200}


@pytest.mark.heavy
def test_a_long_list_ends_with_the_number_of_the_others(tmp_path):
    study, store = load_study(SEARCH), Store(tmp_path)
    write_study(store, study)
    values = [number * 37 % 240 + 1.0 for number in range(240)]
    many = [({"lr": 0.01 + n * 1e-5, "choice": "sa"}, (value, value), 3000) for n, value in enumerate(values)]
    fill_search(store, study, many)
    with serving(store) as server:
        page = get(server, f"{PAGE}?order=-max_length")[1]
    shown = [float(value) for value in column(page, "max_length")]
    assert shown == sorted([*values, *values], reverse=True)[:100]
    assert "and 380 more" in section(page, "trials")


@pytest.mark.skipif(find_executable() is None, reason="needs a Chromium, as Debian's package chromium")
def test_the_page_fits_a_phone_and_a_desktop_in_light_and_dark(store, tmp_path):
    with serving(store) as server, open_browser(tmp_path / "profile") as window:
        for width in (390, 1280):
            for dark in (False, True):
                window.open(f"http://127.0.0.1:{server.port}{PAGE}?order=time", width=width, dark=dark)
                assert window.console_messages() == []
                assert window.evaluate(WIDER) == 0
                assert window.evaluate(FAINT) == []
        window.follow("th[aria-sort=ascending] a")
        heading = window.evaluate("document.querySelector('th[aria-sort=descending]').innerText")
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
            assert f'href="/study/tiny/trial/{trial.id}"' in section(page, "trials")
            answer, own = get(server, f"/study/tiny/trial/{trial.id}")
            assert answer.status == 200
            assert f"<strong>{state}</strong>" in own
            assert f"--set factors.seed=[{trial.seed}]" in unescape(own).replace("'", "")
        assert get(server, f"/study/tiny/trial/{later[1].id}")[0].status == 404  # it has not begun
        own = get(server, f"/study/tiny/trial/{ended.id}")[1]
    assert {"seed 0", "seed 1", "seed 2"} <= set(re.findall("<title>(seed .), Epoch", own))
    assert ">14.0</td>" in own
    assert load_study(study.document.text, [f"factors.seed=[{ended.seed}]"]).trials[0].id == ended.id


def test_a_point_is_trained_again_by_the_command_on_its_page(store):
    study = load_study(SEARCH)
    values = POINTS[1][0]
    trial = study.search.trials_of(values)[0]
    with serving(store) as server:
        page = unescape(get(server, f"{PAGE}/trial/{trial.id}")[1])
    command = re.search("activemem study run .*?--results repeated", page).group()
    overrides = [each for option, each in pairwise(shlex.split(command)) if option == "--set"]
    again = load_study(SEARCH, overrides=overrides)
    assert again.search.baseline == values
    assert trial.id in [each.id for each in again.search.trials_of(again.search.baseline)]
