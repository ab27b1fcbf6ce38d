"""Callbacks of Ray Tune see a study's trials as their own, and their faults lose nothing."""

import pytest

from activemem import load_study, run_study
from activemem.engine import Machine
from activemem.storage import Store

HERE = Machine(gpus=0.0)


def callbacks(fails_at=None):
    """Return a callback of Tune that keeps what it hears; it raises at this result."""
    from ray import tune

    class Kept(tune.Callback):
        configs, results = [], []

        def on_trial_start(self, iteration, trials, trial, **info):
            self.configs.append(dict(trial.config))

        def on_trial_result(self, iteration, trials, trial, result, **info):
            self.results.append(result)
            if len(self.results) == fails_at:
                raise ValueError("a fault of the user's")

    return Kept()


@pytest.mark.heavy
def test_a_callback_of_tune_sees_levels_and_metrics_and_its_exception_ends_a_run_that_continues(
    tiny, tmp_path
):
    study, store = load_study(tiny, ["factors.seed=[0]"]), Store(tmp_path)
    failing = callbacks(fails_at=2)
    with pytest.raises(ValueError, match="a fault of the user's"):
        run_study(study, store, HERE, callbacks=[failing])
    assert set(store.trials()["status"]) <= {"done"}

    left, kept = 4 - len(store.trials()), callbacks()
    summary = run_study(study, store, HERE, callbacks=[kept])
    assert (summary.done, summary.ran) == (4, left)
    assert {(each["mixer"], each["task"], each["seed"]) for each in kept.configs} <= {
        (trial.levels["mixer"], trial.levels["task"], 0) for trial in study.trials
    }
    assert len(kept.configs) == left
    last = [each for each in kept.results if each["done"]]
    assert {each["status"] for each in last} == {"done"}
    assert all({"loss", "accuracy", "epoch"} <= each.keys() for each in last)


@pytest.mark.parametrize(
    ("given", "local"),
    [("tune", None), ([print], None), ([object()], True)],
    ids=["text", "function", "local"],
)
def test_wrong_callbacks_are_refused_before_anything_trains(tiny, tmp_path, given, local, golden):
    with golden.raises(ValueError):
        run_study(load_study(tiny), Store(tmp_path), HERE, callbacks=given, local=local)
