"""Searches whose points train their seeds as packs: rows equal those of separate trials."""

import os
import signal

import pytest

from activemem import load_study, run_study
from activemem.engine import Machine
from activemem.engine.packs import StackedSteps
from activemem.storage import Store

from ...study_texts import study_text


def search(epochs=3, points=4, **settings):
    """Return a search over the learning rates of three mixers, with three seeds per point."""
    return load_study(
        study_text(
            model={"recipe": "2 * ({mixer} >> ff(8))", "dropout": 0.1},
            task={"name": "reverse"},
            train={"epochs": epochs, "steps_per_epoch": 5, "optimizer": {"name": "adam", "lr": "{lr}"}},
            factors={"seed": [0, 1, 2]},
            search={"sampler": "random", "trials": points, "metric": "loss", **settings},
            space={"mixer": "choice(conv(k=3), sa(heads=2), lstm)", "lr": "real(1e-4, 1e-2, log=true)"},
        )
    )


@pytest.fixture
def stores(tmp_path):
    return Store(tmp_path / "alone"), Store(tmp_path / "packed")


def run(study, store, notes, pack, **machine):
    return run_study(study, store, Machine(pack=pack, **machine), notes, local=True)


def assert_rows_equal(packed, alone):
    """Assert equal statuses and metrics by trial, without machine-dependent ones."""
    found, expected = (
        {
            row["trial"]: {each["name"]: each["value"] for each in row["metrics"]} | {"status": row["status"]}
            for row in store.trials().to_dicts()
        }
        for store in (packed, alone)
    )
    assert found.keys() == expected.keys()
    for trial, row in expected.items():
        assert found[trial].pop("status") == row.pop("status")
        found[trial].pop("tokens_per_s", None), row.pop("tokens_per_s", None)
        assert found[trial] == pytest.approx(row, rel=1e-6, abs=1e-6)


def packed_steps(store):
    return store.trials()["packed_steps"].to_list()


@pytest.mark.heavy
def test_seeds_of_a_point_train_together_to_the_rows_of_trials_alone(stores, notes):
    alone, packed = stores
    study = search(scheduler="median")
    run(study, alone, notes, "off")
    run(study, packed, notes, 4)
    assert_rows_equal(packed, alone)
    assert len(packed.trials()) == 12
    assert set(packed_steps(alone)) == {0}
    ended = packed.trials().filter(status="done")["packed_steps"].to_list()
    assert ended and set(ended) == {15}


@pytest.mark.usefixtures("returning_handlers")
def test_a_search_that_is_stopped_within_a_pack_resumes_from_there(stores, notes, monkeypatch):
    alone, packed = stores
    study, step, taken = search(epochs=2, points=2), StackedSteps.step, []
    run(study, alone, notes, "off")

    def interrupting(steps):
        step(steps)
        taken.append(1)
        if len(taken) == 8:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(StackedSteps, "step", interrupting)
    assert run(study, packed, notes, 4).stopped
    assert run(study, packed, notes, 4).done == 6
    assert_rows_equal(packed, alone)
    assert len(taken) == 2 * 10
