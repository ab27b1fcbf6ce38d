"""Live tracking: each epoch is sent once, in separate threads, and losses are reported."""

import logging
import threading

import pytest

from activemem.tracking import feed
from activemem.tracking.contract import Known
from activemem.tracking.feed import Tracking, tracking

from ..event_factories import make_event, planned
from ..waiting import wait_for
from .recorder import Recorder


@pytest.fixture
def trial(trained):
    return trained[0].trials[0]


def run(listener, trial, *, first=0, last=3, ends=True):
    """Send a trial's events from one epoch to another."""
    listener(planned(trial))
    listener(make_event("started", trial=trial.id, epoch=first))
    for epoch in range(first + 1, last + 1):
        listener(make_event("epoch", trial=trial.id, epoch=epoch, metrics={"loss": 1 / epoch}))
    if ends:
        listener(make_event("ended", trial=trial.id, status="done", metrics={"loss": 0.25}))


def test_a_resumed_trial_continues_and_sends_no_epoch_twice(trial):
    recorder = Recorder()
    for first, last in ((0, 2), (1, 3)):  # the second process goes on from a checkpoint before the last epoch
        listener = Tracking({"recorder": recorder})
        run(listener, trial, first=first, last=last, ends=last == 3)
        assert listener.close() == []
    assert recorder.told == [
        ("begin", trial.id),
        ("log", trial.id, 1),
        ("log", trial.id, 2),
        ("pause", trial.id),
        ("close",),
        ("begin", trial.id),
        ("log", trial.id, 3),
        ("end", trial.id, "done"),
        ("close",),
    ]


def test_a_trial_that_begins_anew_replaces_what_the_tracker_has(trial):
    recorder = Recorder()
    for last in (3, 2):
        listener = Tracking({"recorder": recorder})
        run(listener, trial, last=last)
        assert listener.close() == []
    assert sorted(recorder.epochs[trial.id]) == [1, 2]
    assert recorder.told.count(("log", trial.id, 1)) == 2


def test_epochs_that_no_tracker_received_are_reported_at_the_end(trial, golden):
    listener = Tracking({"recorder": Recorder()})
    run(listener, trial, first=2)
    golden(listener.close())


def test_a_failing_tracker_is_logged_once_gets_nothing_more_and_is_reported_at_the_end(trial, caplog, golden):
    broken = threading.Event()

    def fails(what):
        if broken.is_set():
            raise ConnectionError("the server is gone\nand more")

    recorder, told = Recorder(fails), []
    with (
        caplog.at_level(logging.WARNING),
        tracking({"mlflow": recorder}, told.append) as listener,
    ):
        run(listener, trial, last=1, ends=False)
        wait_for(lambda: recorder.epochs)
        broken.set()
        listener(make_event("epoch", trial=trial.id, epoch=2, metrics={"loss": 0.5}))
        wait_for(lambda: "mlflow" in caplog.text)
        broken.clear()
        listener(make_event("epoch", trial=trial.id, epoch=3, metrics={"loss": 0.5}))
    assert sorted(recorder.epochs[trial.id]) == [1]
    golden(caplog.messages)
    golden(told)


def test_a_tracker_that_hangs_holds_up_neither_the_study_nor_its_end(trial, monkeypatch, golden):
    monkeypatch.setattr(feed, "CLOSE_S", 0.05)
    hanging, released = threading.Event(), threading.Event()

    def hang(what):
        hanging.set()
        released.wait()

    slow, quick = Recorder(hang), Recorder()
    listener = Tracking({"slow": slow, "quick": quick})
    listener(planned(trial))
    listener(make_event("started", trial=trial.id, epoch=0))
    assert hanging.wait(60)
    for epoch in range(1, 5):
        wait_for(lambda: listener._threads[1]._queue.qsize() == 0)
        listener(make_event("epoch", trial=trial.id, epoch=epoch, metrics={}))
    listener(make_event("ended", trial=trial.id, status="done"))
    (line,) = [each for each in listener.close() if each.startswith("slow")]
    released.set()
    golden(line)


def test_a_trial_that_another_driver_has_taken_over_is_left_to_it(trial):
    recorder = Recorder()
    listener = Tracking({"recorder": recorder})
    run(listener, trial, last=1, ends=False)
    listener(make_event("elsewhere", trial=trial.id, attempt=1, status="elsewhere"))
    listener.close()
    assert recorder.told[-2:] == [("pause", trial.id), ("close",)]
    assert recorder.known(listener._trials[trial.id]) == Known(epochs=frozenset({1}))
