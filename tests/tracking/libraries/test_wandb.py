"""Offline runs of Weights & Biases contain the store's data, as read from their records."""

import math

import pytest

from activemem.engine import Ended, EpochFinished, Started
from activemem.tracking import (
    Known,
    StudyExport,
    Tracking,
    TrackingError,
    export_study,
    open_trackers,
    tracked_trial,
)
from activemem.tracking.libraries import wandb as offline

wandb = pytest.importorskip("wandb", reason="Weights & Biases is not among what the tests install")
records = pytest.importorskip("wandb.proto.wandb_internal_pb2")
pytestmark = pytest.mark.filterwarnings("ignore")


def read(folder, run):
    """Return the folder of a run, and its records by kind."""
    (path,) = folder.glob(f"wandb/offline-run-*-{run}/run-{run}.wandb")
    found = {}
    for data in offline._records(path.read_bytes()):
        record = records.Record.FromString(data)
        kind = record.WhichOneof("record_type")
        found.setdefault(kind, []).append(getattr(record, kind))
    return path.parent, found


def run(folder, trial, first, last, end=None):
    """Log a trial's epochs from a process that may end without finishing."""
    listener = Tracking(open_trackers({"wandb": str(folder)}))
    listener.on_planned([trial])
    listener.on_event(Started(trial=trial.id, epoch=first))
    for epoch in range(first + 1, last + 1):
        listener.on_event(EpochFinished(trial=trial.id, epoch=epoch, metrics={"loss": epoch / 2}))
    if end is not None:
        listener.on_event(end)
    return listener.close()


def test_an_export_has_each_epoch_the_settings_the_end_and_the_tables_once(trained, tmp_path):
    study, store = trained
    for told in (
        StudyExport(trials=4, epochs=12, known=0, tables=1),
        StudyExport(trials=0, epochs=0, known=4, tables=1),
    ):
        assert export_study(study, store, open_trackers({"wandb": str(tmp_path)})["wandb"]) == told
    rows = {row["trial"]: row for row in store.trials().iter_rows(named=True)}
    for trial in study.trials:
        _, found = read(tmp_path, trial.id)
        (begun,) = found["run"]
        settings = {each.key: each.value_json for each in begun.config.update}
        assert (begun.project, begun.display_name) == ("tiny", tracked_trial(trial).name)
        assert (settings["train.epochs"], settings["mixer"][1:-1]) == ("3", trial.levels["mixer"])
        losses = store.metrics([trial.id]).filter(name="loss")["value"].to_list()
        steps = [(each.step.num, offline._items(each.item)) for each in found["history"]]
        assert [(step, items["loss"]) for step, items in steps] == list(enumerate(losses, 1))
        assert steps[0][1]["_timestamp"] == pytest.approx(rows[trial.id]["finished"].timestamp())
        assert [each.exit_code for each in found["exit"]] == [0]
    tables, _ = read(tmp_path, "tables")
    assert sorted(path.name for path in tables.glob("files/reached.*")) == ["reached.csv", "reached.md"]


def test_a_trial_that_continues_after_a_kill_is_one_run_whose_steps_are_in_order(trained, tmp_path):
    trial = trained[0].trials[0]
    assert run(tmp_path, trial, 0, 3) == []
    folder, found = read(tmp_path, trial.id)
    path = folder / f"run-{trial.id}.wandb"
    whole = path.read_bytes()
    size = sum(1 for _ in found["history"])
    while size == 3:  # as a kill leaves it: the last epoch torn
        whole = whole[:-1]
        path.write_bytes(whole)
        size = len(read(tmp_path, trial.id)[1]["history"])
    known = open_trackers({"wandb": str(tmp_path)})["wandb"].known(tracked_trial(trial))
    assert known == Known(epochs=frozenset({1, 2}))
    end = Ended(trial=trial.id, status="failed", reason="not a number", metrics={"loss": math.nan})
    assert run(tmp_path, trial, 3, 4, end) == [
        "wandb has not received all data; activemem study export adds what is missing"
    ]
    study, store = trained
    tracker = open_trackers({"wandb": str(tmp_path)})["wandb"]
    assert export_study(study, store, tracker) == StudyExport(trials=4, epochs=10, known=0, tables=1)
    _, found = read(tmp_path, trial.id)
    assert [each.step.num for each in found["history"]] == [1, 2, 3, 4]
    summary = offline._items([item for each in found["summary"] for item in each.update])
    assert (summary["status"], summary["final/loss"]) == ("done", pytest.approx(summary["final/loss"]))


def test_a_failure_is_one_there_and_a_server_is_no_place(trained, tmp_path):
    trial = trained[0].trials[0]
    end = Ended(trial=trial.id, status="failed", reason="not a number", metrics={"loss": math.nan})
    run(tmp_path, trial, 0, 1, end)
    _, found = read(tmp_path, trial.id)
    summary = offline._items([item for each in found["summary"] for item in each.update])
    assert (summary["status"], summary["reason"]) == ("failed", "not a number")
    assert summary["final/loss"] is None  # as W&B has what is not a number
    assert [each.exit_code for each in found["exit"]] == [1]
    with pytest.raises(TrackingError, match="wandb: expected a folder for `wandb sync`, got"):
        open_trackers({"wandb": "https://api.wandb.ai"})
    (tmp_path / "file").touch()
    with pytest.raises(TrackingError, match="wandb: expected a folder that can be written, got: "):
        open_trackers({"wandb": f"{tmp_path}/file"})
