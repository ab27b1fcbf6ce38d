"""Offline runs of Weights & Biases contain the store's data, as read from their records."""

import json
import math
import struct

import pytest

from activemem.tracking.contract import TrackingError, open_trackers
from activemem.tracking.export import StudyExport, export_study
from activemem.tracking.feed import Tracking, tracked_trial

from ...event_factories import make_event, planned
from ...waiting import wait_for

wandb = pytest.importorskip("wandb", reason="Weights & Biases is not among what the tests install")
records = pytest.importorskip("wandb.proto.wandb_internal_pb2")
pytestmark = pytest.mark.filterwarnings("ignore")


def split_records(data):
    """Yield the records of a LevelDB log: a header of 7 bytes, then blocks of 32 KiB."""
    head, position, parts = struct.Struct("<IHB"), 7, b""
    while position + head.size <= len(data):
        if (left := 2**15 - position % 2**15) < head.size:
            position += left
            continue
        _, size, kind = head.unpack_from(data, position)
        end = position + head.size + size
        part = data[position + head.size : end]
        parts = part if kind in (1, 2) else parts + part  # whole, first, and others
        if kind in (1, 4):  # whole, last
            yield parts
        position = end


def read(folder, run):
    """Return the folder of a run, and its records by kind, once the program's own process has written all."""
    (path,) = folder.glob(f"wandb/offline-run-*-{run}/run-{run}.wandb")

    def kinds():
        found = {}
        for data in split_records(path.read_bytes()):
            record = records.Record.FromString(data)
            kind = record.WhichOneof("record_type")
            found.setdefault(kind, []).append(getattr(record, kind))
        return found

    return path.parent, wait_for(lambda: found if "exit" in (found := kinds()) else None, 60)


def items_of(items):
    """Return the items of a stored record by name, without W&B's own ones except the time of a step."""
    named = {each.key or "/".join(each.nested_key): json.loads(each.value_json) for each in items}
    return {name: each for name, each in named.items() if name == "_timestamp" or not name.startswith("_")}


def run(folder, trial, first, last, end=None):
    """Log a trial's epochs from a process that may end without finishing."""
    listener = Tracking(open_trackers({"wandb": str(folder)}))
    listener(planned(trial))
    listener(make_event("started", trial=trial.id, epoch=first))
    for epoch in range(first + 1, last + 1):
        listener(make_event("epoch", trial=trial.id, epoch=epoch, metrics={"loss": epoch / 2}))
    if end is not None:
        listener(end)
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
        steps = [(each.step.num, items_of(each.item)) for each in found["history"]]
        assert [(step, items["loss"]) for step, items in steps] == list(enumerate(losses, 1))
        assert steps[0][1]["_timestamp"] == pytest.approx(rows[trial.id]["finished"].timestamp())
        assert [each.exit_code for each in found["exit"]] == [0]
    tables, _ = read(tmp_path, "tables")
    assert sorted(path.name for path in tables.glob("files/reached.*")) == ["reached.csv", "reached.md"]


def test_each_epoch_is_written_as_it_ends_and_a_resumed_trial_is_one_run(trained, tmp_path):
    trial = trained[0].trials[0]
    assert run(tmp_path, trial, 0, 2) == []
    _, found = read(tmp_path, trial.id)
    assert [each.step.num for each in found["history"]] == [1, 2]
    assert run(tmp_path, trial, 2, 3, make_event("ended", trial=trial.id, status="done")) == []
    _, found = read(tmp_path, trial.id)
    assert [(each.step.num, items_of(each.item)["loss"]) for each in found["history"]] == [
        (1, 0.5),
        (2, 1.0),
        (3, 1.5),
    ]
    assert [each.exit_code for each in found["exit"]] == [0]


def test_epochs_that_another_machine_trained_are_added_by_the_export(trained, tmp_path):
    study, store = trained
    trial = study.trials[0]
    assert run(tmp_path, trial, 2, 3, make_event("ended", trial=trial.id, status="done")) == [
        "wandb has not received all data; activemem study export adds what is missing"
    ]
    tracker = open_trackers({"wandb": str(tmp_path)})["wandb"]
    assert export_study(study, store, tracker) == StudyExport(trials=4, epochs=11, known=0, tables=1)
    _, found = read(tmp_path, trial.id)
    assert [each.step.num for each in found["history"]] == [1, 2, 3]


def test_a_failed_trial_that_is_retried_is_one_run_with_all_epochs(trained, tmp_path):
    trial = trained[0].trials[0]
    run(tmp_path, trial, 0, 2, make_event("ended", trial=trial.id, status="failed", reason="out of memory"))
    run(tmp_path, trial, 0, 3, make_event("ended", trial=trial.id, status="done"))
    known = open_trackers({"wandb": str(tmp_path)})["wandb"].known(tracked_trial(trial))
    assert (known.epochs, known.status) == ({1, 2, 3}, "done")
    _, found = read(tmp_path, trial.id)
    assert [each.step.num for each in found["history"]] == [1, 2, 3]


def test_a_failure_is_one_there_and_a_server_is_no_place(trained, tmp_path):
    trial = trained[0].trials[0]
    end = make_event(
        "ended", trial=trial.id, status="failed", reason="not a number", metrics={"loss": math.nan}
    )
    run(tmp_path, trial, 0, 1, end)
    _, found = read(tmp_path, trial.id)
    summary = items_of([item for each in found["summary"] for item in each.update])
    assert (summary["status"], summary["reason"]) == ("failed", "not a number")
    assert summary["final/loss"] is None  # as W&B has what is not a number
    assert [each.exit_code for each in found["exit"]] == [1]
    with pytest.raises(TrackingError, match=r"wandb: .*`wandb sync`, got"):
        open_trackers({"wandb": "https://api.wandb.ai"})
    (tmp_path / "file").touch()
    with pytest.raises(TrackingError, match=r"wandb: .* can be written, got: "):
        open_trackers({"wandb": f"{tmp_path}/file"})
