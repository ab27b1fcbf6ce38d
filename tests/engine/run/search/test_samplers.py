"""Samplers and schedulers conform, the suites find what does not, and what a plug-in raises has its name."""

from collections import Counter
from functools import partial

import optuna
import pytest
from optuna.trial import TrialState

from activemem import PluginError, load_plugin, register_sampler, register_scheduler
from activemem.engine.run.search import conformance
from activemem.engine.run.search.samplers.factory import make_sampler
from activemem.engine.run.search.samplers.optuna_space import suggest
from activemem.engine.run.search.samplers.quasi_random import QuasiRandomSampler
from activemem.engine.run.search.schedulers.factory import make_pruner
from activemem.studies.catalog.samplers import SAMPLERS, SCHEDULERS
from activemem.studies.schema.search_settings import SearchSettings
from activemem.studies.study import load_study

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


GP = pytest.param("gp", marks=pytest.mark.slow)


@pytest.mark.parametrize("check", conformance.SAMPLER_CHECKS)
@pytest.mark.parametrize(
    "name", ["tpe", "evolution", "gp_trees", "random", "quasi_random", "cmaes", "nsga2", GP]
)
def test_a_sampler_conforms(name, check):
    check(name)


@pytest.mark.parametrize("check", conformance.SCHEDULER_CHECKS)
@pytest.mark.parametrize("name", ["asha", "hyperband", "median", "none"])
def test_a_scheduler_conforms(name, check):
    check(name)


def unseeded(seed):
    return optuna.samplers.RandomSampler()


def impatient():
    return optuna.pruners.ThresholdPruner(lower=2.0)


@pytest.fixture(autouse=True, scope="module")
def _registered():
    """What is registered here is known to the tests of this file alone."""
    register_sampler("unseeded", source="a test")(unseeded)
    register_scheduler("impatient", source="a test")(impatient)
    yield
    SAMPLERS.unregister("unseeded")
    SCHEDULERS.unregister("impatient")


def test_the_suites_find_what_a_sampler_and_a_scheduler_do_not_keep_to():
    with pytest.raises(AssertionError, match="the same seed proposes other points"):
        conformance.sampler_seed_decides("unseeded")
    with pytest.raises(AssertionError, match="the best of 25 points is given up after epoch 1"):
        conformance.best_point_is_kept("impatient")
    with pytest.raises(AssertionError, match="the only point is given up after epoch 1"):
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

@register_scheduler("broken_scheduler", source="here")
def broken_scheduler():
    raise RuntimeError("no such scheduler")
"""


def test_what_a_plug_in_raises_is_told_with_its_name(tmp_path):
    path = tmp_path / "broken_searching.py"
    path.write_text(BROKEN, encoding="utf-8")
    load_plugin(path)
    searched = load_study(conformance.STUDY)

    def settings(**changes):
        return SearchSettings(trials=1, metric="accuracy", direction="max", **changes)

    with pytest.raises(PluginError, match="sampler 'no_sampler': expected an optuna BaseSampler, got int"):
        make_sampler(settings(sampler="no_sampler"), searched)
    with pytest.raises(PluginError, match=r"broken_searching.py: scheduler .* RuntimeError: no such sch"):
        make_pruner(settings(scheduler="broken_scheduler"))
    study = optuna.create_study(sampler=make_sampler(settings(sampler="broken_sampler"), searched))
    with pytest.raises(PluginError, match=r"^broken_searching.py: sampler 'broken_sampler': KeyError: 'ke"):
        study.ask().suggest_int("kernel", 1, 3)


def test_a_scheduler_compares_points_from_the_first_rung_on_and_lets_one_of_so_many_go_on(monkeypatch):
    monkeypatch.setattr(
        conformance,
        "make_pruner",
        lambda settings: make_pruner(settings.model_copy(update={"min_fidelity": 2, "reduction": 2})),
    )
    ends = conformance._given_up("asha", [[place / 10] * 9 for place in range(8, 0, -1)])
    assert ends == [None, *[2] * 7]


QUASI_RANDOM = (
    conformance.STUDY.replace("{mixer}", "{mixer} + conv(k={kernel})", 1)
    .replace("conv(k={kernel}) + conv(k={other})", "conv(3)")
    .replace('other = "integer(2, 64, log=true)"\n', "")
)
"""Dimensions that all points take but one, of which half have a head."""


def ask_for_points(study, searched, count):
    """So many new points; those that are over the budget come to nothing, as in a search."""
    points = []
    while len(points) < count:
        trial = study.ask()
        values = searched.choose(partial(suggest, trial))
        fits = searched.budget.allows(searched.trial_for(values).settings)
        study.tell(trial, len(points) if fits else None, state=None if fits else TrialState.FAIL)
        points += [values] if fits else []
    return points


def test_quasi_random_points_fill_a_space_evenly():
    searched = load_study(
        QUASI_RANDOM.replace('kernel = "integer(2, 8', 'kernel = "integer(2, 16').replace("1e-1,", "1.0,")
    )
    study = optuna.create_study(sampler=QuasiRandomSampler(searched, seed=3))
    values = ask_for_points(study, searched, 64)
    assert Counter(each["kernel"] for each in values) == dict.fromkeys(range(2, 17, 2), 8)
    assert Counter((each["mixer"], each["rate"] < 1e-2) for each in values).keys() == {
        (mixer, low) for mixer in ("sa(heads={heads})", "conv(3)") for low in (True, False)
    }
    assert sum(each["rate"] < 1e-2 for each in values) == 32


def test_quasi_random_points_go_on_where_they_stopped_by_the_points_alone():
    searched = load_study(QUASI_RANDOM, ["study.max_parameters=1_000"])
    whole = optuna.create_study(sampler=QuasiRandomSampler(searched, seed=3))
    points = ask_for_points(whole, searched, 40)
    assert len(whole.trials) == len(points), "a point over the budget was proposed"
    again = optuna.create_study(sampler=QuasiRandomSampler(searched, seed=3))
    again.add_trials([trial for trial in whole.trials[:25] if trial.state == TrialState.COMPLETE])
    assert ask_for_points(again, searched, 15) == points[25:]
    assert len(again.trials) == 40
