"""Studies with packs: their rows equal those of separate trials, despite interruptions."""

import os
import signal
from types import SimpleNamespace

import pytest
import torch

from activemem import load_study, run_study
from activemem.engine import Ended, EpochFinished, Machine, Started
from activemem.engine.objectives import StepShape
from activemem.engine.packs import Packer, StackedSteps, packer
from activemem.engine.run import GridCohorts, Worker
from activemem.engine.trial import Checkpoint, Job, MachineError, Training, failures
from activemem.storage import Store
from activemem.studies.planning import GPU_CONTEXT, step_memory

from ...study_texts import replaced, study_text

FACTORS = {"mixer": ["sa(heads=2)"], "task": ["reverse"], "seed": [0, 1, 2]}
MORE = {**FACTORS, "mixer": ["sa(heads=2)", "conv(k=3)"], "task": ["reverse", "not"]}
MIXED = {**FACTORS, "task": ["reverse", "not"], "seed": [0, 1]}
TRAIN = {"epochs": 3, "steps_per_epoch": 7, "curriculum": {"start": 3, "grow_at": 0.3}}


@pytest.fixture(autouse=True)
def _cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def study():
    return load_study(study_text(train=TRAIN, factors=FACTORS, model={"dropout": 0.1}))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def run(study, store, notes, pack=4, **options):
    machine = {name: options.pop(name) for name in ("time_limit_s", "checkpoint_every_s") if name in options}
    return run_study(study, store, Machine(pack=pack, **machine), notes, local=True, **options)


def final_metrics(store):
    """Return the final metrics by trial, without machine-dependent ones."""
    return {
        row["trial"]: {
            each["name"]: each["value"] for each in row["metrics"] if each["name"] != "tokens_per_s"
        }
        for row in store.trials().to_dicts()
    }


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for trial, metrics in expected.items():
        assert found[trial] == pytest.approx(metrics, abs=1e-6)


def packed_steps(store):
    return dict(store.trials().select("trial", "packed_steps").iter_rows())


def test_a_packed_study_has_the_rows_of_one_that_is_not(tmp_path, notes):
    factors = {**MORE, "task": ["reverse"]}
    study = load_study(study_text(train=TRAIN, factors=factors, model={"dropout": 0.1}))
    alone, packed = Store(tmp_path / "alone"), Store(tmp_path / "packed")
    run(study, alone, notes, "off")
    assert run(study, packed, notes).done == 6
    assert_equal(final_metrics(packed), final_metrics(alone))
    assert set(packed_steps(alone).values()) == {0}
    counts = packed_steps(packed).values()
    assert max(counts) == 21 and sum(counts) > 6 * 21 / 2  # lengths part, and meet again
    assert not list(packed.files.checkpoints_folder().glob("*"))


def test_trials_are_handed_out_by_their_form():
    study = load_study(study_text(train=TRAIN, factors=MORE))
    jobs = [Job(trial=trial, attempt=0, run="run") for trial in study.trials]
    source, sizes = GridCohorts(jobs, pack=4), []
    while (cohort := source.next_cohort()) is not None:
        name, tasks = cohort
        sizes.append(len(tasks))
        assert len({job.trial.settings.model.recipe for job in tasks}) == 1
        source.cohort_ended(name, completed=True)
    assert sizes == [3, 3, 3, 3]  # two recipes, two tasks with different vocabularies


@pytest.mark.usefixtures("returning_handlers")
def test_a_pack_that_was_stopped_is_continued_separately_and_the_other_way_round(
    study, tmp_path, notes, monkeypatch
):
    alone, packed = Store(tmp_path / "alone"), Store(tmp_path / "packed")
    run(study, alone, notes, "off")
    step, taken = StackedSteps.step, []

    def interrupting(steps):
        step(steps)
        taken.append(1)
        if len(taken) in (3, 12):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(StackedSteps, "step", interrupting)
    assert run(study, packed, notes).stopped
    amid = [
        torch.load(path, weights_only=True)["state"]["epoch"]["taken"]
        for path in packed.files.checkpoints_folder().glob("*/state.pt")
    ]
    assert 3 in amid
    assert run(study, packed, notes, "off", max_trials=1).ran == 1
    assert run(study, packed, notes).stopped
    assert run(study, packed, notes).done == 3
    assert_equal(final_metrics(packed), final_metrics(alone))


@pytest.mark.parametrize("factors", [pytest.param(FACTORS, marks=pytest.mark.heavy), MIXED])
def test_epochs_of_a_pack_that_a_kill_loses_are_trained_again_to_the_same_rows(
    factors, tmp_path, notes, monkeypatch
):
    monkeypatch.setattr(
        "activemem.engine.run.worker.MIN_CHECKPOINT_INTERVAL_S", 1e9
    )  # on a busy machine an epoch takes seconds
    study = load_study(study_text(train=TRAIN, factors=factors, model={"dropout": 0.1}))
    alone, packed = Store(tmp_path / "alone"), Store(tmp_path / "packed")
    run(study, alone, notes, "off")

    def events(run, gone):
        worker = Worker(packed, Machine(pack=4))
        jobs = [Job(trial=trial, attempt=0, run=run, gone=gone) for trial in study.trials]
        return worker.events(worker.attempts(jobs))

    first = events("killed", -1)
    while not isinstance(event := next(first), EpochFinished) or event.epoch < 2:
        pass  # then it is forgotten, as by a kill
    assert not list(packed.files.checkpoints_folder().glob("*/state.pt"))
    told = list(events("later", 0))
    assert [event.epoch for event in told if isinstance(event, Started)] == [0] * len(study.trials)
    assert_equal(final_metrics(packed), final_metrics(alone))
    assert max(packed_steps(packed).values()) == 14  # each is alone in the epoch that a process died in


@pytest.mark.heavy
def test_a_trial_that_fails_fails_alone(tmp_path, notes):
    alone, packed = Store(tmp_path / "alone"), Store(tmp_path / "packed")
    text = study_text(train=TRAIN, factors={**MIXED, "lr": [1e-3, 1e30]})
    wild = load_study(replaced(text, ("lr = 1e-3", 'lr = "{lr}"')))
    run(wild, alone, notes, "off")
    run(wild, packed, notes)
    told = {store: dict(store.trials().select("trial", "reason").iter_rows()) for store in (alone, packed)}
    assert told[packed] == told[alone]
    assert {reason for reason in told[alone].values() if reason} >= {"not a number at epoch 1"}
    assert_equal(final_metrics(packed), final_metrics(alone))


def test_an_exception_in_a_pack_is_the_failure_of_one_trial(study, store, notes, monkeypatch, caplog):
    real = Training.begin_step

    def begin(training):
        real(training)
        if training.settings.seed == 1 and training.step == 9:
            raise ValueError("no such thing")

    monkeypatch.setattr(Training, "begin_step", begin)
    summary = run(study, store, notes)
    assert (summary.done, summary.failed) == (2, 1)
    row = next(row for row in store.trials().to_dicts() if row["status"] == "failed")
    assert row["seed"] == 1
    assert row["reason"].splitlines()[0] == "ValueError: no such thing at epoch 2"
    assert "together they fail: ValueError: no such thing" in caplog.text


@pytest.mark.parametrize(
    ("trials", "room", "sizes", "ways", "packed"),
    [
        (4, 2, [4, *[2] * 6], ["at most 2"], [21] * 4),
        (4, 1, [4, 2], ["at most 2", "one by one"], [0] * 4),
        pytest.param(*(3, 2, [3, 2, 2, 2], ["at most 2"], [0, 21, 21]), marks=pytest.mark.heavy),
    ],
)
def test_a_pack_that_memory_is_too_short_for_is_halved_until_each_trains_separately(
    trials, room, sizes, ways, packed, tmp_path, notes, monkeypatch, caplog
):
    study = load_study(study_text(train=TRAIN, factors={**FACTORS, "seed": [*range(trials)]}))
    alone, together = Store(tmp_path / "alone"), Store(tmp_path / "packed")
    run(study, alone, notes, "off")
    tried, real, step = [], packer.take_steps_together, StackedSteps.step

    def take_steps(members):
        tried.append(len(members))
        real(members)

    def out_of_memory(steps):
        step(steps)
        if tried[-1] > room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")

    monkeypatch.setattr(packer, "take_steps_together", take_steps)
    monkeypatch.setattr(StackedSteps, "step", out_of_memory)
    assert run(study, together, notes).done == trials
    assert tried == sizes
    assert_equal(final_metrics(together), final_metrics(alone))
    assert sorted(packed_steps(together).values()) == packed
    told = [line for line in caplog.messages if "together they fail: OutOfMemoryError: " in line]
    assert all(way in line for way, line in zip(ways, told, strict=True))


def test_a_trial_that_a_process_died_in_continues_separately(study, tmp_path, notes):
    store = Store(tmp_path / "results")
    suspect = study.trials[0]
    Checkpoint(store, suspect.id).record_start(suspect.to_json(), "a run that is gone", "0")
    run(study, store, notes)
    counts = packed_steps(store)
    assert counts[suspect.id] <= 14  # alone in its first epoch


def test_a_time_limit_ends_trials_and_not_the_study(study, store, notes):
    summary = run(study, store, notes, time_limit_s=1e-9)
    assert summary.failed == 3
    assert all(reason.startswith("time limit of 1e-09") for reason in store.trials()["reason"])


def test_trials_are_saved_within_an_epoch(study, store, notes):
    assert run(study, store, notes, checkpoint_every_s=1e-9).done == 3
    assert max(packed_steps(store).values()) == 21


def test_by_itself_a_pack_on_a_cpu_has_small_trials(study, tmp_path, notes, monkeypatch):
    alone, packed, small = (Store(tmp_path / name) for name in ("alone", "packed", "small"))
    run(study, alone, notes, "off")
    assert run(study, packed, notes, "auto", checkpoint_every_s=1e-9).done == 3
    assert max(packed_steps(packed).values()) > 0
    assert_equal(final_metrics(packed), final_metrics(alone))
    monkeypatch.setattr("activemem.engine.packs.packer.MOST_NUMBERS", 1)
    assert run(study, small, notes, "auto").done == 3
    assert set(packed_steps(small).values()) == {0}


@pytest.mark.parametrize(
    ("recipe", "width", "most"),
    [("sa", 64, 16), ("sa", 256, 1), ("lstm", 16, 16), ("lstm", 64, 1), ("2 * (gru + lstm)", 64, 1)],
)
def test_an_lstm_whose_own_kernel_is_faster_than_a_pack_trains_alone(study, recipe, width, most):
    settings = study.trials[0].settings
    model = settings.model.model_copy(update={"recipe": recipe, "d_model": width})
    start = settings.train.curriculum.model_copy(update={"start": 10})
    train = settings.train.model_copy(update={"batch_size": 32, "curriculum": start})
    training = Training.begin(
        settings.model_copy(update={"model": model, "train": train}), torch.device("cpu")
    )
    assert training.objective.step_shape == StepShape(sequences=32, tokens=10)
    assert Packer(16, fitting=True).most_at_once(training) == most


def test_each_event_is_reported_once_and_in_order(study, store, notes):
    run(study, store, notes)
    for trial in study.trials:
        mine = [event for event in notes.events if event.trial == trial.id]
        assert [event.epoch for event in mine if isinstance(event, EpochFinished)] == [1, 2, 3]
        assert isinstance(mine[-1], Ended)


def test_no_more_trials_take_their_steps_together_than_a_gpu_has_room_for(study):
    settings = study.trials[0].settings
    shape = StepShape(sequences=settings.train.batch_size, tokens=20)
    on_gpu = SimpleNamespace(
        device=torch.device("cuda"), settings=settings, objective=SimpleNamespace(step_shape=shape)
    )
    held = step_memory(settings, 20)
    each = held.total + 2 * (held.weights + held.optimizer) + held.average
    room = int((GPU_CONTEXT + 3.5 * each) / 0.9)
    for device_bytes, most in ((room, 3), (0, 1), (80 * 10**9, 16), (None, 16)):
        assert Packer(16, fitting=True, device_bytes=device_bytes).most_at_once(on_gpu) == most
    assert Packer(8, device_bytes=0).most_at_once(on_gpu) == 8


def test_trials_whose_pack_has_lost_the_gpu_are_tried_separately_by_the_next_run(
    study, store, notes, monkeypatch, golden
):
    monkeypatch.setattr(failures, "_lost", [])

    def fail(*_):
        raise RuntimeError("CUDA error: device-side assert triggered")

    with monkeypatch.context() as patch:
        patch.setattr(packer, "take_steps_together", fail)
        patch.setattr(Training, "advance", fail)
        with golden.raises(MachineError):
            run(study, store, notes)
    assert not notes.of(Ended)
    failures._lost.clear()  # as in another process
    begun = []
    monkeypatch.setattr(
        packer,
        "take_steps_together",
        lambda members: begun.extend(each.training.epoch for each in members),
    )
    assert run(study, store, notes).done == 3
    assert set(begun) == {1, 2}
