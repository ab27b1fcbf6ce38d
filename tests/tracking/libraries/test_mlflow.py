"""MLflow's own client finds the contents of the store in a real database."""

import pytest

from activemem.tracking.contract import TrackingError, open_trackers
from activemem.tracking.export import StudyExport, export_study
from activemem.tracking.feed import Tracking

from ...event_factories import make_event, planned

mlflow = pytest.importorskip("mlflow", reason="MLflow is not among what the tests install")

AWAY = "http://127.0.0.1:9"


@pytest.fixture
def address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the artifacts go
    return f"sqlite:///{tmp_path}/mlflow.db"


def runs(address):
    """Return the runs of the tiny study by trial."""
    client = mlflow.MlflowClient(tracking_uri=address)
    experiment = client.get_experiment_by_name("tiny")
    return client, {
        run.data.tags["activemem.trial"]: run for run in client.search_runs([experiment.experiment_id])
    }


@pytest.mark.filterwarnings("ignore")
def test_an_export_completes_once_what_a_run_has_begun(trained, address):
    study, store = trained
    trial = study.trials[0]
    losses = store.metrics([trial.id]).filter(name="loss")["value"].to_list()
    listener = Tracking(open_trackers({"mlflow": address}))
    listener(planned(trial))
    listener(make_event("started", trial=trial.id, epoch=0))
    listener(make_event("epoch", trial=trial.id, epoch=1, metrics={"loss": losses[0], "bleu[1-2]": 3.0}))
    assert listener.close() == []
    assert runs(address)[1][trial.id].info.status == "SCHEDULED"
    for told in (
        StudyExport(trials=4, epochs=11, known=0, tables=1),
        StudyExport(trials=0, epochs=0, known=4, tables=1),
    ):
        assert export_study(study, store, open_trackers({"mlflow": address})["mlflow"]) == told
    client, found = runs(address)
    run = found[trial.id]
    history = client.get_metric_history(run.info.run_id, "loss")
    assert sorted((each.step, each.value) for each in history) == list(enumerate(losses, 1))
    assert (run.info.status, run.data.tags["activemem.status"]) == ("FINISHED", "done")
    assert run.data.params["mixer"] == "sa(heads=1, head_width=8)"
    assert run.data.metrics["bleu.1-2"] == 3.0
    tables = client.list_artifacts(found["tables"].info.run_id)
    assert [each.path for each in tables] == ["reached.csv", "reached.md"]


def test_a_server_that_is_away_stops_no_training_and_its_export_breaks_off(trained, caplog):
    study, store = trained
    trial = study.trials[0]
    listener = Tracking(open_trackers({"mlflow": AWAY}))
    listener(planned(trial))
    listener(make_event("started", trial=trial.id, epoch=0))
    for epoch in (1, 2):
        listener(make_event("epoch", trial=trial.id, epoch=epoch, metrics={"loss": 0.5}))
    (told,) = listener.close()
    assert told.startswith("mlflow has not ")
    assert told.endswith("; activemem study export adds what is missing")
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "mlflow cannot be reached; training continues"
    ]
    with pytest.raises(TrackingError, match=r"can be repeated: .*refused"):
        export_study(study, store, open_trackers({"mlflow": AWAY})["mlflow"])


def test_an_invalid_address_is_rejected_before_anything_runs():
    with pytest.raises(TrackingError, match=r"mlflow: .*, got 'runs'"):
        open_trackers({"mlflow": "runs"})
    with pytest.raises(
        TrackingError,
        match=r"mlflow: .* got 'moon://here': ",
    ):
        open_trackers({"mlflow": "moon://here"})
