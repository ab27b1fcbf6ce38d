"""Trackio finds the contents of the store in its files."""

import math
from importlib.util import find_spec

import pytest

from activemem.tracking.contract import Known, TrackedEnd, TrackingError, open_trackers
from activemem.tracking.export import StudyExport, export_study
from activemem.tracking.feed import Tracking, tracked_trial

from ...event_factories import make_event, planned

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(find_spec("trackio") is None, reason="Trackio is not among what the tests install"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the single folder that this process writes to."""
    return str(tmp_path_factory.mktemp("trackio"))


def test_an_export_completes_once_what_a_run_has_begun(trained, folder):
    study, store = trained
    trial = study.trials[0]
    losses = store.metrics([trial.id]).filter(name="loss")["value"].to_list()
    listener = Tracking(open_trackers({"trackio": folder}))
    listener(planned(trial))
    listener(make_event("started", trial=trial.id, epoch=0))
    listener(make_event("epoch", trial=trial.id, epoch=1, metrics={"loss": losses[0]}))
    assert listener.close() == []
    tracker = open_trackers({"trackio": folder})["trackio"]
    assert tracker.known(tracked_trial(trial)) == Known(epochs=frozenset({1}))
    for told in (
        StudyExport(trials=4, epochs=11, known=0, tables=1),
        StudyExport(trials=0, epochs=0, known=4, tables=1),
    ):
        assert export_study(study, store, open_trackers({"trackio": folder})["trackio"]) == told
    storage = pytest.importorskip("trackio.sqlite_storage").SQLiteStorage
    rows = storage.get_logs("tiny", run_id=trial.id)
    assert sorted((row["step"], row["loss"]) for row in rows if "loss" in row) == list(enumerate(losses, 1))
    config = storage.get_run_config("tiny", run_id=trial.id)
    assert (config["mixer"], config["train.epochs"], config["status"]) == (trial.levels["mixer"], 3, "done")
    records = storage.get_run_records("tiny")
    assert {each["name"] for each in records} == {tracked_trial(each).name for each in study.trials} | {
        "tables"
    }
    (tables,) = storage.get_logs("tiny", run_id="tables")
    assert "| " in tables["reached"]["_value"]


def test_a_failure_has_its_reason_and_another_folder_is_refused(trained, folder, tmp_path):
    trial = tracked_trial(trained[0].trials[0])
    other = type(trial)(id="0" * 16, study="other", name="a-trial", settings=trial.settings)
    tracker = open_trackers({"trackio": folder})["trackio"]
    tracker.begin(other, 1e9)
    tracker.log(other, 1, {"loss": math.nan}, 1e9)
    tracker.end(other, TrackedEnd(status="failed", reason="not a number", metrics={}, at=1e9))
    assert tracker.known(other) == Known(epochs=frozenset({1}), status="failed", ended=1e9)
    with pytest.raises(TrackingError, match=f"trackio: expected {folder}, .*, got"):
        open_trackers({"trackio": str(tmp_path)})
    with pytest.raises(TrackingError, match=r"trackio: .* got 'https://here'"):
        open_trackers({"trackio": "https://here"})
