"""Results of trainings of a set time are compared on one device only."""

from dataclasses import replace

import pytest

from activemem.reporting.claims.verdicts import ClaimError
from activemem.reporting.curves.curve import CurveError
from activemem.reporting.results import StudyResults
from activemem.reporting.tables.table import TableError
from activemem.storage import Store
from activemem.studies.planning.plan import make_plan

from .conftest import made_row
from .target_factories import study

CLAIM = [{"name": "sa is ahead", "holds": "dev_loss[mixer=sa] < dev_loss[mixer=conv(k=3)]"}]
TABLE = [{"name": "all", "rows": "mixer", "value": ["dev_loss", "steps"]}]
CURVE = [{"name": "bars", "kind": "bar", "x": "mixer", "value": "dev_loss"}]


@pytest.fixture
def stored(tmp_path):
    """Return a function that stores a study whose two mixers trained on these devices."""

    def results(*devices, **train):
        shown = {"claim": CLAIM, "table": TABLE, "curve": CURVE}
        found = study(train={"curriculum": None, "epochs": 2, "steps_per_epoch": None, **train}, **shown)
        store = Store(tmp_path)
        for number, trial in enumerate(found.trials):
            device = devices[list(found.factors["mixer"]).index(trial.levels["mixer"]) % len(devices)]
            row = made_row(trial, {"dev_loss": 1.0 + number, "loss": 1.0}, number)
            store.write(replace(row, device=device, settings=trial.settings.model_dump_json()), [])
        return StudyResults(found, store)

    return results


def test_results_of_two_devices_are_refused_everywhere(stored):
    results = stored("one", "another", seconds=5)
    told = "only results of one device can be compared, got 3 trials on another; 3 trials on one"
    for error, show in (
        (TableError, results.table),
        (CurveError, results.curve),
        (ClaimError, results.check_claims),
    ):
        with pytest.raises(error, match=told):
            show()


def test_results_of_one_device_are_compared_with_their_steps(stored):
    results = stored("one", seconds=5)
    assert [row[1].text for row in results.table().cells] == ["4", "4"]
    assert len(results.check_claims()) == len(results.curves()) == 1


def test_results_of_a_number_of_steps_may_be_of_several_devices(stored):
    results = stored("one", "another", steps_per_epoch=2)
    assert len(results.tables()) == len(results.check_claims()) == 1


def test_a_plan_names_the_device_of_stored_trials_and_how_to_train_on_another(stored):
    results = stored("one", seconds=5)
    told = " ".join(str(make_plan(results.study, results.store)).split())
    assert "stored 6 trials on one: they count only on that device; to train on another, first run" in told
    assert "activemem study forget tiny" in told
    results = stored("one", steps_per_epoch=2)
    assert not make_plan(results.study, results.store).timed_devices
