"""A worker that does not see the store leaves in it what one that sees it does, also when another goes on."""

import pytest
import ray

from activemem.engine.core.events import Ended, EpochFinished
from activemem.engine.core.resources import Machine
from activemem.engine.run.cohorts import Worker, sequentially
from activemem.engine.run.ray_cluster import RAY_ENVIRONMENT
from activemem.engine.run.remote_store import RemoteWorker, StorePlace, start_keeper
from activemem.engine.trial.outcome import Job
from activemem.engine.trial.training import Training
from activemem.storage import Store
from activemem.studies.study import load_study

# Ray 2.50 leaves files open.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def cluster(monkeypatch):
    """Ray on this machine, set up as a run does it, for as long as the test."""
    for name, value in RAY_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def job(study):
    return Job(trial=study.trials[0], attempt=0, run="run", keep_weights=True)


def values(store):
    row = store.trials().to_dicts()[0]
    timed = {"started", "finished", "seconds", "peak_mib", "metrics"}
    metrics = store.metrics().select("step", "epoch", "name", "value").rows()
    known = {name: value for name, value in row.items() if name not in timed}
    return known, [each for each in metrics if each[2] != "tokens_per_s"]


def test_a_remote_worker_leaves_what_one_beside_the_store_does(tmp_path, tiny, cluster):
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
    assert values(remote) == values(beside)
    assert remote.weights_file(study.trials[0].id).is_file()
    assert not remote.has_checkpoint(study.trials[0].id)
