"""A worker that does not see the store leaves in it what one that sees it does, also when another goes on."""

import pytest
import ray

from activemem.engine.core.events import Ended, EpochFinished
from activemem.engine.core.resources import Machine
from activemem.engine.run.cohorts import Worker, sequentially
from activemem.engine.run.ray_connection import RAY_ENVIRONMENT
from activemem.engine.run.remote_store import RemoteWorker, StorePlace, start_keeper
from activemem.engine.trial.outcome import Job
from activemem.engine.trial.training import Training
from activemem.storage import Store
from activemem.studies.planning.shorter_trials import ShorterTrial, ShorterTrials
from activemem.studies.study import load_study

# Ray 2.50 leaves files open.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.heavy,  # a cluster of its own
]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Ray on this machine, set up as a run does it, for as long as the tests here."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in RAY_ENVIRONMENT.items():
            patch.setenv(name, value)
        ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


def job(study, shorter=None):
    return Job(
        trial=study.trials[0], attempt=0, run="run", keep_weights=True, keep_checkpoint=True, shorter=shorter
    )


def values(store, trial):
    (row,) = store.trials().filter(trial=trial).to_dicts()
    timed = {"started", "finished", "seconds", "peak_mib", "metrics"}
    metrics = store.metrics([trial]).select("step", "epoch", "name", "value").rows()
    known = {name: value for name, value in row.items() if name not in timed}
    return known, [each for each in metrics if each[2] != "tokens_per_s"]


def test_a_remote_worker_leaves_what_one_beside_the_store_does(tmp_path, tiny):
    study, beside = load_study(tiny), Store(tmp_path / "beside")
    list(sequentially(Worker(beside, Machine()).attempts([job(study)])))

    remote = Store(tmp_path / "remote")
    place = StorePlace(root=str(remote.root), marker="/nowhere", keeper=start_keeper(remote))
    assert not place.is_seen()
    (first,) = RemoteWorker(place, Machine(), Training).attempts([job(study)])
    for _ in range(3):
        first.advance()
    assert remote.checkpoint_note(study.trials[0].id).epoch == 2
    first.release()
    events = list(sequentially(RemoteWorker(place, Machine(), Training).attempts([job(study)])))
    assert [event.epoch for event in events if isinstance(event, EpochFinished)] == [3, 4]
    assert isinstance(events[-1], Ended)
    trial = study.trials[0].id
    assert values(remote, trial) == values(beside, trial)
    assert remote.weights_file(trial).is_file()
    assert not remote.trials_with_checkpoint([trial])
    assert remote.final_checkpoints() == {trial}

    longer = load_study(tiny, overrides=("train.epochs=6",))
    for store, worker in (
        (beside, Worker(beside, Machine())),
        (remote, RemoteWorker(place, Machine(), Training)),
    ):
        shorter = ShorterTrials(store).find(longer.trials[0])
        assert shorter == ShorterTrial(trial=trial, epochs=4)
        events = list(sequentially(worker.attempts([job(longer, shorter)])))
        assert [event.epoch for event in events if isinstance(event, EpochFinished)] == [4, 5, 6]
    both = [values(store, longer.trials[0].id) for store in (remote, beside)]
    assert both[0] == both[1]
    assert both[0][0]["continued_from"] == trial


def test_the_last_state_is_kept_though_the_worker_is_lost_before_its_row(tmp_path, tiny):
    study, store = load_study(tiny), Store(tmp_path / "remote")
    place = StorePlace(root=str(store.root), marker="/nowhere", keeper=start_keeper(store))
    (lost,) = RemoteWorker(place, Machine(), Training).attempts([job(study)])
    epochs, event = study.trials[0].settings.train.epochs, None
    while not (isinstance(event, EpochFinished) and event.epoch == epochs):
        event = lost.advance()
    assert store.trials().height == 0
    lost.release()
    list(sequentially(RemoteWorker(place, Machine(), Training).attempts([job(study)])))
    assert store.final_checkpoints() == {study.trials[0].id}
