"""Optuna finds each point of a search in its storage, once for each time that it ended."""

import gc
import re
import threading
import time
from statistics import fmean
from wsgiref.simple_server import WSGIRequestHandler, make_server

import optuna
import polars as pl
import pytest
import torch

from activemem import load_study, run_study
from activemem.storage import Store
from activemem.tracking.contract import TrackingError
from activemem.tracking.export import StudyExport
from activemem.tracking.search_export import export_search

from ..reporting.page.browser import find_executable, open_browser
from ..study_texts import study_text

SEARCH = study_text(
    study={"name": "search", "title": "A kernel and a dropout"},
    model={"recipe": "choice(conv(k={k}), sa(heads=1, head_width=8)) >> ff(8)", "d_model": 8},
    task={"name": "not"},
    train={"optimizer": {"name": "adam", "lr": "{lr}"}, "epochs": 2, "steps_per_epoch": 1},
    factors={"seed": [0, 1]},
    search={"sampler": "random", "trials": 4, "metric": "loss", "direction": "min"},
    space={"k": "integer(2, 5)", "lr": "real(0.001, 10.0, log=true)"},
)


SEVERAL = SEARCH.replace('metric = "loss"\ndirection = "min"', 'metric = ["loss", "parameters"]')


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    torch.set_num_threads(1)
    study, store = load_study(SEARCH), Store(tmp_path_factory.mktemp("results"))
    run_study(study, store, local=True)
    return study, store


@pytest.fixture
def read(storages):
    return lambda path: optuna.load_study(study_name="search", storage=storages(path))


@pytest.mark.heavy
def test_an_export_leaves_optunas_log_level(searched, tmp_path):
    optuna.logging.set_verbosity(optuna.logging.INFO)
    export_search(*searched, str(tmp_path / "search.db"))
    assert optuna.logging.get_verbosity() == optuna.logging.INFO


@pytest.mark.heavy
def test_each_point_is_a_trial_with_its_parameters_values_and_moments(searched, read, tmp_path):
    study, store = searched
    path = tmp_path / "new" / "search.db"
    assert export_search(study, store, str(path)) == StudyExport(trials=4, epochs=8, known=0, tables=0)
    found, rows = read(path), store.trials()
    assert found.direction == optuna.study.StudyDirection.MINIMIZE
    assert (found.metric_names, len(found.trials)) == (["loss"], 4)
    for trial in found.trials:
        own = rows.filter(rows["trial"].is_in(list(trial.user_attrs["activemem"])))
        losses = [{each["name"]: each["value"] for each in metrics}["loss"] for metrics in own["metrics"]]
        assert trial.state == optuna.trial.TrialState.COMPLETE
        assert trial.value == pytest.approx(fmean(losses)) == trial.user_attrs["final/loss"]
        assert set(own["recipe"]) == {trial.user_attrs["recipe"]}
        assert ("k" in trial.params) == trial.user_attrs["recipe"].startswith("conv")
        assert sorted(trial.intermediate_values) == [1, 2]
        assert trial.datetime_start.timestamp() == own["started"].min().timestamp()
    assert isinstance(found.trials[0].distributions["lr"], optuna.distributions.FloatDistribution)
    importances = optuna.importance.get_param_importances(found, params=["lr"])
    assert list(importances) == ["lr"]


def test_a_second_export_adds_only_what_has_ended_since(searched, read, tmp_path):
    study, _ = searched
    half = Store(tmp_path / "half")
    run_study(study, half, local=True, max_trials=2)
    path = str(tmp_path / "search.db")
    assert export_search(study, half, path) == StudyExport(trials=1, epochs=2, known=0, tables=0)
    run_study(study, half, local=True)
    assert export_search(study, half, path) == StudyExport(trials=3, epochs=6, known=1, tables=0)
    assert export_search(study, half, path) == StudyExport(trials=0, epochs=0, known=4, tables=0)
    assert len(read(path).trials) == 4


def test_a_search_for_several_things_has_all_of_them(searched, read, tmp_path):
    study, store = load_study(SEVERAL), searched[1]
    export_search(study, store, str(tmp_path / "search.db"))
    found = read(tmp_path / "search.db")
    assert found.metric_names == ["loss", "parameters"]
    assert {each.name for each in found.directions} == {"MINIMIZE"}
    for trial in found.trials:
        own = store.trials().filter(pl.col("trial").is_in(list(trial.user_attrs["activemem"])))
        assert trial.values == pytest.approx([trial.user_attrs["final/loss"], own["parameters"].mean()])
    assert 1 <= len(found.best_trials) <= 4


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Optuna leaves it open
def test_a_file_that_is_no_storage_is_refused(searched, tmp_path):
    text = tmp_path / "text.db"
    text.write_text("no database, by any means")
    with pytest.raises(TrackingError, match=rf"optuna: .* in {re.escape(str(text))}, got: "):
        export_search(*searched, str(text))
    gc.collect()


def test_a_grid_an_invalid_file_and_another_study_are_rejected(searched, trained, storages, tmp_path):
    study, store = searched
    other = tmp_path / "other.db"
    optuna.create_study(study_name="search", storage=storages(other))
    own = str(tmp_path / "own.db")
    export_search(study, store, own)
    wider = load_study(SEARCH.replace("choice(conv", "choice(ff(4), conv"))
    elsewhere = Store(tmp_path / "elsewhere")
    run_study(wider, elsewhere, local=True, max_trials=2)
    for given, place, message in (
        (trained, own, "tiny, which is a grid"),
        (searched, "mysql://here", "got 'mysql://here'"),
        (
            searched,
            str(other),
            f"{other} already has another",
        ),
        ((wider, elsewhere), own, f"{own} has search with another"),
    ):
        with pytest.raises(TrackingError) as caught:
            export_search(*given, place)
        assert message in str(caught.value)


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


def see(tmp_path, page, *words):
    """Return the text of a page of Optuna's dashboard in a browser, once it has all words."""
    dashboard = pytest.importorskip("optuna_dashboard", reason="is not among what the tests install")
    application = dashboard.wsgi(f"sqlite:///{tmp_path}/search.db")
    with (
        make_server("127.0.0.1", 0, application, handler_class=Quiet) as server,
        open_browser(tmp_path / "profile") as window,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        window.open(f"http://127.0.0.1:{server.server_port}/dashboard/studies/1{page}")
        end, text = time.monotonic() + 600, ""
        while not all(word in text for word in words):
            assert time.monotonic() < end, text
            time.sleep(0.1)
            text = window.evaluate("document.body.innerText")
        server.shutdown()
    return text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(find_executable() is None, reason="needs a Chromium, as Debian's package chromium")
def test_optunas_dashboard_shows_the_search_in_a_browser(searched, tmp_path):
    export_search(*searched, str(tmp_path / "search.db"))
    text = see(tmp_path, "/trials", "4 Trials", "final/loss")
    assert "choice" in text
    assert "Complete" in text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(find_executable() is None, reason="needs a Chromium, as Debian's package chromium")
def test_optunas_dashboard_shows_the_front_of_a_search_for_several_things(searched, tmp_path):
    export_search(load_study(SEVERAL), searched[1], str(tmp_path / "search.db"))
    text = see(tmp_path, "", "Pareto Front", "Hyperparameter Importance", "parameters")
    assert "loss" in text
