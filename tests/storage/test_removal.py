"""Removing trials and renaming studies: complete, and rejected during training."""

from dataclasses import replace

import pytest

from activemem.storage import Store, StoreError
from activemem.storage.store import open_layout

from .factories import (
    fill_store,
    make_metric_rows,
    make_outputs,
    make_trial_id,
    make_trial_row,
)

ONE, TWO, THREE = map(make_trial_id, (1, 2, 3))


@pytest.fixture
def full(root):
    """Return a store of three trials, two of them merged, with files of all kinds."""
    store = fill_store(root, [1, 2])
    store.upkeep.compact()
    row = make_trial_row(3)
    store.write(row, make_metric_rows(), make_outputs("a"))
    store.write_probes(row, make_metric_rows()[:1])
    for number in (1, 3):
        for path in (
            store.files.weights_file(make_trial_id(number)),
            store.files.checkpoint_dir(make_trial_id(number)) / "state.pt",
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"1234")
    return store


def test_forgotten_trials_are_removed_from_all_files_and_the_rest_stays(full, root):
    before = full.metrics([TWO]).rows()
    told = full.upkeep.forget("alpha", {ONE, THREE}, dry=True)
    assert len(Store(root).trials()) == 3
    assert full.upkeep.forget("alpha", {ONE, THREE}) == replace(told, removed=True)
    assert (told.trials, dict(told.rows)) == (
        (ONE, THREE),
        {"trials": 2, "metrics": 8, "probes": 1, "outputs": 1},
    )
    assert (len(told.files), told.bytes) == (4, 16)
    assert not any((root / path).exists() for path in told.files)
    assert Store(root).trials()["trial"].to_list() == [TWO]
    assert (Store(root).metrics().rows(), len(Store(root).outputs())) == (before, 0)
    assert list(open_layout(root).leases.iterdir()) == []
    assert full.upkeep.check().findings == ()
    full.write(make_trial_row(1), make_metric_rows())
    assert Store(root).trials()["trial"].to_list() == [ONE, TWO]


def test_nothing_is_forgotten_while_somebody_trains_it(full):
    before = full.metrics().rows(), set(full.trials()["study"])
    lease = full.leases("a run").claim(TWO, 1)
    with pytest.raises(StoreError, match=f"{TWO} is still training: process"):
        full.upkeep.forget("alpha", {ONE, TWO})
    assert (full.metrics().rows(), set(full.trials()["study"])) == before
    lease.release()
    assert full.upkeep.forget("alpha", {ONE, TWO}).trials == (ONE, TWO)


def test_files_of_a_trial_that_another_study_has_run_too_stay(full):
    full.write(make_trial_row(1, study="beta", attempt=1), [])
    assert full.upkeep.forget("alpha", {ONE}).files == ()
    assert full.files.weights_file(ONE).exists()
    assert full.trials().filter(trial=ONE)["study"].to_list() == ["beta"]


def test_a_trial_that_another_study_needs_becomes_a_trial_of_that_study(full, root):
    before = full.metrics([THREE]).rows()
    told = full.upkeep.forget("alpha", {ONE, THREE}, {THREE: "beta", TWO: "beta"})
    assert (told.trials, told.passed_on, dict(told.rows)) == (
        (ONE,),
        {"beta": 1},
        {"trials": 1, "metrics": 4},
    )
    again = Store(root)
    assert again.trials().select("trial", "study").rows() == [(TWO, "alpha"), (THREE, "beta")]
    assert (again.metrics([THREE]).rows(), len(again.outputs())) == (before, 1)
    assert again.files.weights_file(THREE).exists()
    assert not again.files.weights_file(ONE).exists()
    assert full.upkeep.forget("alpha", {ONE, THREE}, {THREE: "beta"}).trials == ()
