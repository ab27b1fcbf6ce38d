"""Samplers and schedulers conform, the suites detect violations, and plug-in errors name the plug-in."""

import re

import optuna
import pytest
from optuna.trial import TrialState

from activemem import (
    PluginError,
    PluginSampler,
    Store,
    StudyError,
    load_plugin,
    load_study,
    register_sampler,
    register_scheduler,
)
from activemem.engine.run.search import conformance
from activemem.engine.run.search.optuna_study import OptunaStudy, make_pruner
from activemem.engine.run.search.stored_points import PointEnd
from activemem.studies import make_plan
from activemem.studies.catalog.samplers import SAMPLERS, SCHEDULERS
from activemem.studies.plan_text import format_plan
from activemem.studies.schema.search_settings import SearchSettings

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


@pytest.mark.parametrize("check", conformance.SAMPLER_CHECKS)
@pytest.mark.parametrize(
    "name",
    [
        *("tpe", "evolution", "gp_trees"),
        *(pytest.param(name, marks=pytest.mark.heavy) for name in ("random", "nsga2")),
    ],
)
def test_a_sampler_conforms(name, check):
    check(name)


@pytest.mark.parametrize("check", conformance.SCHEDULER_CHECKS)
@pytest.mark.parametrize("name", ["asha", "median", "none", "threshold"])
def test_a_scheduler_conforms(name, check):
    check(name)


@pytest.mark.parametrize(
    "sampler",
    ["tpe", "evolution", "gp_trees", "nsga2", "{ name = 'nsga2', population = 36 }", "random"],
)
def test_a_sampler_learns_after_the_points_that_the_plan_says_are_drawn_at_random(sampler, tmp_path):
    planned = load_study(conformance.STUDY, [f"search.sampler={sampler}", "search.trials=70"])
    line = " ".join(format_plan(make_plan(planned, Store(tmp_path), memory=None)).split())
    told = re.search(r"70 points by \w+(?: \(the first (\d+) at random\))? for", line)
    startup = int(told[1] or 0)
    assert startup == planned.search.settings.startup
    assert ("fewer than two populations" in line) is (startup > 35)

    def proposed(sign):
        asked, found = OptunaStudy(planned), []
        for begun in range(startup + 4):
            point, trial, _ = conformance.propose(asked, begun)
            value = sign * float(point.values["rate"])
            asked.tell(point, PointEnd(TrialState.COMPLETE, 1, (value,)), trial)
            found.append(point.values)
        return found

    high, low = proposed(1), proposed(-1)
    assert high[:startup] == low[:startup]
    assert (high == low) is not bool(startup)  # others never learn


def unseeded(seed):
    return optuna.samplers.RandomSampler()


def impatient():
    return optuna.pruners.ThresholdPruner(lower=2.0)


def threshold():
    return optuna.pruners.ThresholdPruner(lower=0.5)


@pytest.fixture(autouse=True, scope="module")
def _registered():
    """Register entries only for the tests of this file."""
    register_sampler("unseeded", source="a test")(unseeded)
    register_scheduler("impatient", source="a test")(impatient)
    register_scheduler("threshold", source="a test")(threshold)
    yield
    SAMPLERS.unregister("unseeded")
    SCHEDULERS.unregister("impatient")
    SCHEDULERS.unregister("threshold")


def test_the_suites_find_violations_of_samplers_and_schedulers(golden):
    with golden.raises(AssertionError):
        conformance.sampler_seed_decides("unseeded")
    with golden.raises(AssertionError):
        conformance.best_point_is_kept("impatient")
    with golden.raises(AssertionError):
        conformance.first_point_is_kept("impatient")


BROKEN = """
from activemem import register_sampler, register_scheduler

@register_sampler("no_sampler", source="here")
def no_sampler(seed):
    return seed

@register_sampler("broken_sampler", source="here")
def broken_sampler(seed):
    from optuna.samplers import RandomSampler
    class Broken(RandomSampler):
        def sample_independent(self, *arguments):
            raise KeyError("kernel")
    return Broken()

@register_sampler("outside", source="here")
def outside(seed):
    from optuna.samplers import RandomSampler
    class Outside(RandomSampler):
        def sample_independent(self, study, trial, name, distribution):
            found = super().sample_independent(study, trial, name, distribution)
            return 99 if name == "rate" else found
    return Outside(seed=seed)

@register_sampler("in_numpy", source="here")
def in_numpy(seed):
    import numpy
    from optuna.samplers import RandomSampler
    class InNumpy(RandomSampler):
        def sample_independent(self, study, trial, name, distribution):
            found = super().sample_independent(study, trial, name, distribution)
            return numpy.float64(found) if name == "rate" else found
    return InNumpy(seed=seed)

@register_scheduler("broken_scheduler", source="here")
def broken_scheduler():
    raise RuntimeError("no such scheduler")
"""


class WithoutDefault(PluginSampler):
    size: int
    """a number"""

    def build(self, seed):
        return optuna.samplers.RandomSampler(seed=seed)


KEYED = """
from typing import Annotated
from activemem import PluginSampler, register_sampler
from pydantic import Field

@register_sampler("keyed", source="here")
class Keyed(PluginSampler):
    population: Annotated[int, Field(ge=2)] = 20
    '''how many points form a generation'''

    def build(self, seed):
        from optuna.samplers import NSGAIISampler
        return NSGAIISampler(population_size=self.population, seed=seed)
"""


def test_the_keys_of_a_plug_in_s_sampler_are_checked_by_its_class_and_reach_it(tmp_path, golden):
    path = tmp_path / "keyed_searching.py"
    path.write_text(KEYED, encoding="utf-8")
    load_plugin(path)
    for keys in ("population=1", "populations=9", 'population="many"'):
        with golden.raises(StudyError):
            load_study(conformance.STUDY, [f'search.sampler={{name="keyed", {keys}}}'])
    for given, population in (('"keyed"', 20), ('{name="keyed", population=4}', 4)):
        study = load_study(conformance.STUDY, [f"search.sampler={given}"])
        assert OptunaStudy(study)._genetic.population_size == population
    for check in conformance.SAMPLER_CHECKS:
        check("keyed")
    with pytest.raises(ValueError, match="size: expected a default"):
        register_sampler("bare", source="here")(WithoutDefault)


def test_exceptions_of_a_plug_in_are_reported_with_its_name(tmp_path, golden):
    path = tmp_path / "broken_searching.py"
    path.write_text(BROKEN, encoding="utf-8")
    load_plugin(path)

    def asked(*changes):
        return OptunaStudy(load_study(conformance.STUDY, changes))

    with golden.raises(PluginError):
        asked("search.sampler=no_sampler")
    with pytest.raises(PluginError, match=r"broken_searching.py:\d+: scheduler .* RuntimeError: no such sch"):
        asked("search.scheduler=broken_scheduler")
    with pytest.raises(
        PluginError, match=r"^broken_searching.py:\d+: sampler 'broken_sampler': KeyError: 'ke"
    ):
        conformance.propose(asked("search.sampler=broken_sampler"), 0)
    told = r"^broken_searching.py: sampler 'outside': rate: expected a value of real\(.*\), got 99$"
    with pytest.raises(PluginError, match=told):
        conformance.propose(asked("search.sampler=outside"), 0)
    point, *_ = conformance.propose(asked("search.sampler=in_numpy"), 0)
    assert type(point.values["rate"]) is float


def test_a_scheduler_compares_points_from_the_first_rung_on_and_promotes_a_fraction(monkeypatch):
    scheduler = {"name": "asha", "min_fidelity": 2, "reduction": 2}
    settings = SearchSettings(trials=9, metric=("accuracy",), scheduler=scheduler)
    monkeypatch.setattr(
        conformance,
        "make_pruner",
        lambda _: make_pruner(settings),
    )
    ends = conformance._given_up("asha", [[place / 10] * 9 for place in range(8, 0, -1)])
    assert ends == [None, *[2] * 7]
