"""Exports of stored results: complete, and without repetition."""

import pytest

from activemem.engine import run_study
from activemem.storage import Store
from activemem.studies import load_study
from activemem.tracking.contract import open_trackers
from activemem.tracking.export import StudyExport, export_study
from activemem.tracking.feed import Tracking, tracked_trial

from ..event_factories import make_event, planned
from .conftest import TINY
from .recorder import Recorder


def test_an_export_sends_all_epochs_and_ends_and_a_second_export_sends_nothing(trained):
    study, store = trained
    recorder = Recorder()
    assert export_study(study, store, recorder) == StudyExport(trials=4, epochs=12, known=0, tables=1)
    assert set(recorder.status.values()) == {"done"}
    course = store.metrics([study.trials[0].id]).filter(name="loss")["value"].to_list()
    assert [metrics["loss"] for metrics in recorder.epochs[study.trials[0].id].values()] == course
    assert export_study(study, store, recorder) == StudyExport(trials=0, epochs=0, known=4, tables=1)


def test_an_export_replaces_a_trial_that_was_forgotten_and_trained_again(tmp_path):
    pytest.importorskip("tensorboard")
    study, store = load_study(TINY), Store(tmp_path / "results")
    out = {"tensorboard": str(tmp_path / "runs")}
    run_study(study, store, local=True)
    export_study(study, store, open_trackers(out)["tensorboard"])
    store.upkeep.forget("tiny", [study.trials[0].id])
    run_study(study, store, local=True)
    exported = export_study(study, store, open_trackers(out)["tensorboard"])
    assert exported == StudyExport(trials=1, epochs=3, known=3, tables=1)
    (row,) = store.trials().filter(trial=study.trials[0].id).iter_rows(named=True)
    known = open_trackers(out)["tensorboard"].known(tracked_trial(study.trials[0]))
    assert known.ended == pytest.approx(row["finished"].timestamp())


def test_an_export_adds_what_a_run_could_not_send(trained):
    study, store = trained
    recorder, trial = Recorder(), study.trials[0]
    listener = Tracking({"recorder": recorder})
    listener(planned(trial))
    listener(make_event("started", trial=trial.id, epoch=0))
    listener(make_event("epoch", trial=trial.id, epoch=2, metrics={"loss": 0.5}))
    listener.close()
    assert export_study(study, store, recorder) == StudyExport(trials=4, epochs=11, known=0, tables=1)


def test_an_export_sends_the_trials_of_added_seeds(tmp_path):
    study = load_study(TINY.replace("[study]", "[study]\nmax_seeds = 3"))
    store, recorder = Store(tmp_path), Recorder()
    run_study(study.with_later_seeds(), store, local=True)
    assert export_study(study, store, recorder).trials == 6
    assert len(recorder.status) == 6


def test_a_trial_is_named_by_its_levels_and_has_all_settings_in_one_level(trained):
    trial = trained[0].trials[-1]
    shown = tracked_trial(trial)
    assert shown.name == f"mixer=conv_k=3_seed=1-{trial.id}"
    assert shown.settings["mixer"] == "conv(k=3)"
    assert shown.settings["train.optimizer.lr"] == 0.01
    assert shown.settings["train.optimizer.betas"] == "[0.9, 0.999]"
    assert {type(value) for value in shown.settings.values()} <= {str, float, int, bool}
