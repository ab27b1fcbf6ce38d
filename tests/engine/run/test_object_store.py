"""A study in a bucket gives the results of one in a folder, despite kills and several drivers."""

import subprocess

import polars as pl
import pytest

from activemem import load_study, open_study, run_study
from activemem.engine import Machine, Run
from activemem.engine.core.models import read_model_file
from activemem.engine.trial.outcome import Job
from activemem.engine.trial.resumable_attempt import Claims
from activemem.storage import Store, StoreError

from ...forked_commands import run_command, start_command
from ...storage.objects.s3_server import S3Server
from ...waiting import wait_for
from .four_drivers import STUDY, TRIALS, run_four_drivers
from .test_other_drivers import values

ADDRESS = "s3://bucket/shared"
KEPT = STUDY.replace("[model]", "keep_weights = true\n\n[model]", 1)


@pytest.fixture
def server(monkeypatch):
    with S3Server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Return the store of an undisturbed run in a folder."""
    store = Store(tmp_path_factory.mktemp("alone") / "results")
    run_study(load_study(KEPT), store, Machine(), local=True)
    return store


def table(store):
    return str(open_study(load_study(KEPT), store).table())


def assert_as(store, alone):
    """Assert equal tables, rows, metrics and weights, and one attempt per trial."""
    assert (table(store), values(store)) == (table(alone), values(alone))
    for trial in alone.trials()["trial"]:
        ours, others = (read_model_file(each.files.weights_file(trial)).weights for each in (store, alone))
        assert all(bool((ours[name] == others[name]).all()) for name in others)
    assert not store.upkeep.check().findings


def left(server, folder):
    return [key for key in server.objects if key.startswith(f"shared/{folder}/")]


@pytest.mark.heavy
def test_a_study_in_a_bucket_survives_kills_and_ends_as_in_a_folder(tmp_path, server, alone):
    (tmp_path / "shared.toml").write_text(KEPT, encoding="utf-8")
    words = ("study", "run", "shared.toml", "--local", "--results", ADDRESS)
    first = start_command(*words, cwd=tmp_path, stderr=subprocess.STDOUT)
    wait_for(
        lambda: (len(left(server, "trials")) >= 3 and left(server, "checkpoints")) or first.poll() is not None
    )
    first.kill()
    output, _ = first.communicate()
    before = Store(ADDRESS).trials()
    assert 3 <= before.height < TRIALS, output
    again = run_command(*words, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    store = Store(ADDRESS)
    assert_as(store, alone)
    assert store.trials().join(before, on=["trial", "attempt", "finished"]).height == before.height
    assert not left(server, "checkpoints")
    assert len(left(server, "trials")) == 1  # merged
    assert left(server, "leases") == ["shared/leases/sweeps"]
    assert not left(server, "unfinished")


@pytest.mark.slow  # CI has the faults of tests/chaos in a bucket
def test_four_drivers_of_which_two_are_killed_train_each_trial_once(tmp_path, server, alone):
    run_four_drivers(tmp_path, KEPT, ADDRESS)
    store = Store(ADDRESS)
    assert_as(store, alone)
    assert not left(server, "checkpoints")


def test_the_last_states_of_a_study_in_a_bucket_are_resumed_from_elsewhere(tiny, server):
    text = tiny.replace('["not", "reverse"]', '["not"]').replace("seed = [0, 1]", "seed = [0]")
    shorter, longer = (load_study(text, overrides=(f"train.epochs={epochs}",)) for epochs in (2, 4))
    run_study(shorter, Store(ADDRESS), local=True)
    assert Store(ADDRESS).files.trials_with_final_checkpoint() == {trial.id for trial in shorter.trials}
    run_study(longer, Store(ADDRESS), local=True)
    run_study(longer, Store("s3://bucket/whole"), local=True)
    trials = [trial.id for trial in longer.trials]
    ours, whole = (Store(place).metrics(trials) for place in (ADDRESS, "s3://bucket/whole"))
    without_times = pl.col("name") != "tokens_per_s"
    assert ours.filter(without_times).equals(whole.filter(without_times))
    rows = Store(ADDRESS).trials().filter(pl.col("trial").is_in(trials))
    assert set(rows["continued_from"]) == {trial.id for trial in shorter.trials}
    assert Store(ADDRESS).upkeep.check().findings == ()


def test_a_server_that_fails_in_mid_study_stops_it_and_no_trial_fails(tiny, server, notes):
    study, store = load_study(tiny), Store(ADDRESS)

    def stop_serving(event):
        server.buckets.pop("bucket", None)

    notes.hear = stop_serving
    objects = server.objects
    with pytest.raises(ValueError, match="NoSuchBucket"):
        run_study(study, store, Machine(), notes, local=True)
    server.buckets["bucket"] = {key: each for key, each in objects.items() if "/leases/" not in key}
    assert Store(ADDRESS).trials().height == 0
    assert run_study(study, Store(ADDRESS), Machine(), local=True).done == 8


def test_nothing_is_trained_where_the_server_has_no_conditional_writes(tiny, server, notes):
    server.heeds.clear()
    with pytest.raises(StoreError, match="ignores If-None-Match"):
        run_study(load_study(tiny), Store(ADDRESS), Machine(), notes, local=True)
    assert notes.events == []


def test_a_driver_that_planned_before_another_ended_and_removed_its_leases_trains_nothing_again(tiny, server):
    study, store = load_study(tiny), Store(ADDRESS)
    first, second = (Job(trial=trial, attempt=0, run="early") for trial in study.trials[:2])
    claims = Claims(store, "early")
    lease = claims.claim(second)  # by when it has read the store
    run_study(study, Store(ADDRESS), Machine(), local=True, trial_ids={first.trial.id})
    assert left(server, "leases") == [f"shared/leases/{second.trial.id}-0", "shared/leases/sweeps"]
    assert claims.claim(first) == Run(trial=first.trial.id, attempt=0, status="done")
    lease.release()
