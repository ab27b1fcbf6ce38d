"""TensorBoard's own reader finds the contents of the store in its files."""

import math

import pytest

from activemem.tracking.contract import Known, open_trackers
from activemem.tracking.export import StudyExport, export_study
from activemem.tracking.feed import Tracking, tracked_trial

from ...event_factories import make_event, planned

pytest.importorskip("tensorboard", reason="TensorBoard is not among what the tests install")
accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
SUCCESS, FAILURE = 1, 2
tensor_util = pytest.importorskip("tensorboard.util.tensor_util")


def read(folder):
    """Return the folder's scalars by tag, as (step, value), and its texts."""
    found = accumulators.EventAccumulator(str(folder), size_guidance={"tensors": 0})
    found.Reload()
    scalars = {
        tag: [(each.step, each.value) for each in found.Scalars(tag)] for tag in found.Tags()["scalars"]
    }
    texts = {
        tag: tensor_util.make_ndarray(event.tensor_proto).item().decode()
        for tag in found.Tags()["tensors"]
        if not tag.startswith("_hparams_")
        for event in found.Tensors(tag)
    }
    return scalars, texts


def status(folder):
    """Return the status of a trial that TensorBoard's tab of hyperparameters shows, by its name."""
    metadata = pytest.importorskip("tensorboard.plugins.hparams.metadata")
    found = accumulators.EventAccumulator(str(folder))
    found.Reload()
    content = found.PluginTagToContent("hparams").get(metadata.SESSION_END_INFO_TAG)
    return content and metadata.parse_session_end_info_plugin_data(content).status


def export(trained, folder):
    study, store = trained
    return export_study(study, store, open_trackers({"tensorboard": str(folder)})["tensorboard"])


def test_the_files_have_each_epoch_the_final_metrics_the_outcome_and_the_tables(trained, tmp_path):
    study, store = trained
    assert export(trained, tmp_path) == StudyExport(trials=4, epochs=12, known=0, tables=1)
    for trial in study.trials:
        scalars, texts = read(tmp_path / "tiny" / tracked_trial(trial).name)
        losses = store.metrics([trial.id]).filter(name="loss")
        assert scalars["loss"] == [
            (epoch, pytest.approx(value)) for epoch, value in losses.select("epoch", "value").iter_rows()
        ]
        final = store.trials().filter(trial=trial.id)["metrics"].item()
        assert {tag for tag in scalars if tag.startswith("final/")} == {
            f"final/{each['name']}" for each in final
        }
        assert texts == {"outcome": "done"}
        assert status(tmp_path / "tiny" / tracked_trial(trial).name) == SUCCESS
    assert "| " in read(tmp_path / "tiny" / "tables")[1]["reached"]


def test_stored_data_are_not_written_again(trained, tmp_path):
    export(trained, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.glob("tiny/*-*/*")}
    assert export(trained, tmp_path) == StudyExport(trials=0, epochs=0, known=4, tables=1)
    assert {path: path.read_bytes() for path in tmp_path.glob("tiny/*-*/*")} == before
    assert len(list(tmp_path.glob("tiny/tables/*"))) == 1


def test_the_settings_are_hyperparameters(trained, tmp_path):
    export(trained, tmp_path)
    metadata = pytest.importorskip("tensorboard.plugins.hparams.metadata")
    trial = trained[0].trials[0]
    found = accumulators.EventAccumulator(str(tmp_path / "tiny" / tracked_trial(trial).name))
    found.Reload()
    content = found.PluginTagToContent("hparams")[metadata.SESSION_START_INFO_TAG]
    start = metadata.parse_session_start_info_plugin_data(content)
    assert start.hparams["mixer"].string_value == "sa(heads=1, head_width=8)"
    assert start.hparams["train.batch_size"].number_value == 4
    assert (start.group_name, start.hparams["train.compile"].bool_value) == (trial.id, False)


def test_a_trial_that_was_killed_continues_in_its_folder_from_a_torn_file(trained, tmp_path):
    trial = trained[0].trials[0]

    def run(first, last, *, ends):
        listener = Tracking(open_trackers({"tensorboard": str(tmp_path)}))
        listener(planned(trial))
        listener(make_event("started", trial=trial.id, epoch=first))
        for epoch in range(first + 1, last + 1):
            listener(make_event("epoch", trial=trial.id, epoch=epoch, metrics={"loss": epoch / 2}))
        if ends:
            listener(
                make_event(
                    "ended",
                    trial=trial.id,
                    status="failed",
                    reason="not *a* number",
                    metrics={"loss": math.nan},
                )
            )
        return listener.close()

    assert run(0, 3, ends=False) == []
    folder = tmp_path / "tiny" / tracked_trial(trial).name
    (torn,) = folder.glob("events.*")
    torn.write_bytes(torn.read_bytes()[:-3])  # the third epoch is lost
    known = open_trackers({"tensorboard": str(tmp_path)})["tensorboard"].known(tracked_trial(trial))
    assert known == Known(epochs=frozenset({1, 2}))
    assert run(2, 4, ends=True) == []
    scalars, texts = read(folder)
    assert scalars["loss"] == [(1, 0.5), (2, 1.0), (3, 1.5), (4, 2.0)]
    assert math.isnan(scalars["final/loss"][0][1])
    assert texts == {"outcome": r"failed: not \*a\* number"}
    assert status(folder) == FAILURE
    assert run(4, 5, ends=False) == []  # it resumes after its time limit
    assert status(folder) is None
    assert read(folder)[0]["loss"][-2:] == [(4, 2.0), (5, 2.5)]
