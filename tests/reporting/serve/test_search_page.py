"""The page of a search: its history, and the list of its trials."""

import json
import re

import polars as pl
import pytest

from activemem import load_study
from activemem.storage import Store
from activemem.storage.trial_files import STARTS_FILE, write_note

from ...study_texts import study_text
from ..search.conftest import CONV, POINTS, SEARCH, fill_search
from .conftest import get, section, serving, write_end, write_study

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
    rows = trials.partition("<tbody>")[2].split("<tr>")[1:]
    cells = [re.findall(r"<t[hd].*?</t[hd]>", row)[heads.index(name)] for row in rows]
    return [re.sub("<.*?>", "", each) for each in cells]


def test_the_page_has_the_history_and_the_trials_of_all_points(store):
    with serving(store) as server:
        page = get(server, PAGE)[1]
    assert "</title></rect>" in section(page, "figures")
    assert set(column(page, "state")) == {"done", "failed"}  # without a scheduler, pruned trials are missing
    moments = column(page, "last")
    assert moments == sorted(moments, reverse=True)


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


def test_a_trial_that_trains_is_listed_first(store):
    study = load_study(SEARCH)
    trial = study.search.trials_of({"lr": 0.07, "choice": CONV, "conv.k": 4})[0]
    begin(store, trial)
    with serving(store) as server:
        page = get(server, PAGE)[1]
    assert (column(page, "trial")[0], column(page, "state")[0]) == (trial.id, "begun")


@pytest.mark.heavy
def test_a_long_list_ends_with_the_number_of_the_others(tmp_path):
    study, store = load_study(SEARCH), Store(tmp_path)
    write_study(store, study)
    values = [number * 37 % 240 + 1.0 for number in range(240)]
    many = [({"lr": 0.01 + n * 1e-5, "choice": "sa"}, (value, value), 3000) for n, value in enumerate(values)]
    fill_search(store, study, many)
    with serving(store) as server:
        page = get(server, PAGE)[1]
    assert len(column(page, "trial")) == 100
    assert "and 380 more" in section(page, "trials")


def test_a_trial_of_an_added_seed_has_a_line(tmp_path):
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
    begin(store, other)
    with serving(store) as server:
        page = get(server, "/study/tiny")[1]
    states = dict(zip(column(page, "trial"), column(page, "state"), strict=True))
    assert (states[ended.id], states[other.id]) == ("done", "begun")
    assert later[1].id not in states


def begin(store, trial):
    """Store a trial with one epoch that nobody trains now."""
    folder = store.files.checkpoint_dir(trial.id)
    folder.mkdir(parents=True)
    (folder / STARTS_FILE).write_text(f"{trial.to_json()}\n")
    write_note(folder, 1, {"loss": 0.5}, [], seconds=10.0)
