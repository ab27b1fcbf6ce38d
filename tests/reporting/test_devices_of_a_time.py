"""Results of trainings of a set time are compared on one device only."""

from dataclasses import replace

import pytest

from activemem import StudyResults
from activemem.reporting import ClaimError, CurveError, TableError
from activemem.storage import Store
from activemem.studies import make_plan

from .conftest import made_row
from .target_factories import FAST, store_course, study

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


TIME = "seconds_to[dev_loss <= 1.5]"
SPEEDUP = {"kind": "speedup", "name": "to", "rows": "mixer", "baseline": "sa"}
OVER_TIME = {"name": "time", "kind": "line", "value": "dev_loss", "series": "mixer", "x": "seconds"}
SOONER = "{0}[dev_loss <= 1.5, mixer=sa] < {0}[dev_loss <= 1.5, mixer=conv(k=3)]"
SHOWN_IN_SECONDS = [
    {"table": [{"name": "to", "rows": "mixer", "value": ["dev_loss", TIME]}]},
    {"table": [{"name": "all", "rows": "mixer", "value": "seconds"}]},
    {"table": [{**SPEEDUP, "value": TIME}]},
    {"curve": [{"name": "bars", "kind": "bar", "x": "mixer", "value": TIME}]},
    {"curve": [OVER_TIME]},
    {"curve": [{"name": "cost", "kind": "pareto", "value": "dev_loss", "x": "seconds", "series": "mixer"}]},
    {"claim": [{"name": "sooner", "holds": SOONER.format("seconds_to")}]},
    {"claim": [{"name": "faster", "holds": f"speedup(sa over conv(k=3), {TIME}) > 1"}]},
    {"claim": [{"name": "shorter", "holds": "seconds[mixer=sa] < seconds[mixer=conv(k=3)]"}]},
]


def of_mixers_on(tmp_path, devices, **shown):
    """Return the results of a study whose two mixers trained on these devices."""
    found, store = study(**shown), Store(tmp_path)
    for trial in found.trials:
        store_course(store, trial, FAST, device=devices[str(trial.levels["mixer"])])
    return StudyResults(found, store)


def shown_by(results):
    now = results.now
    return [*now.tables(), *now.curves(), *now.claims()]


@pytest.mark.parametrize("shown", SHOWN_IN_SECONDS, ids=str)
def test_seconds_of_two_devices_are_refused(shown, tmp_path):
    two = of_mixers_on(tmp_path / "two", {"sa": "one", "conv(k=3)": "another"}, **shown)
    told = "seconds.* 3 trials on another; 3 trials on one"
    with pytest.raises((TableError, CurveError, ClaimError), match=told):
        shown_by(two)
    assert len(shown_by(of_mixers_on(tmp_path / "one", {"sa": "one", "conv(k=3)": "one"}, **shown))) == 1


@pytest.mark.parametrize(
    "shown",
    [
        {"table": [{"name": "to", "rows": "mixer", "value": TIME, "select": {"mixer": "sa"}}]},
        {"table": [{**SPEEDUP, "value": "steps_to[dev_loss <= 1.5]"}]},
        {"curve": [{**OVER_TIME, "x": "step"}]},
        {"claim": [{"name": "sooner", "holds": SOONER.format("steps_to")}]},
        {"claim": [{"name": "soon", "holds": "seconds[mixer=sa] < 100"}]},
    ],
    ids=str,
)
def test_results_of_two_devices_are_shown_where_time_is_not_compared(shown, tmp_path):
    results = of_mixers_on(tmp_path, {"sa": "one", "conv(k=3)": "another"}, **shown)
    assert len(shown_by(results)) == 1


def test_a_plan_names_the_device_of_stored_trials_and_how_to_train_on_another(stored):
    results = stored("one", seconds=5)
    told = " ".join(str(make_plan(results.study, results.store)).split())
    assert "stored 6 trials on one" in told
    assert "activemem study forget tiny" in told
    results = stored("one", steps_per_epoch=2)
    assert "stored 6 trials" not in str(make_plan(results.study, results.store))
