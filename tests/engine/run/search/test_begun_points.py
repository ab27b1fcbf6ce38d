"""Incremental counts of a search's spent budget, in which a later attempt replaces an earlier one."""

import threading
from datetime import UTC, datetime

from activemem import load_study
from activemem.engine import Run
from activemem.engine.core.events import NOBODY
from activemem.engine.run.search.conformance import STUDY
from activemem.engine.run.search.search import Search
from activemem.engine.run.search.stored_points import BegunPoints, StoredPoints
from activemem.engine.trial.outcome import trial_row
from activemem.storage import Store
from activemem.studies import find_points
from activemem.studies.planning.status import study_outcomes
from activemem.studies.planning.trials_to_run import budget_exhausted, left_within_budget
from activemem.studies.schema.search_settings import SearchBudget


def test_the_spent_budget_is_that_of_the_attempts_that_count(tmp_path):
    study, store = load_study(STUDY), Store(tmp_path)
    points = StoredPoints(study, store)
    begun = BegunPoints(study, store, points)
    values = {"mixer": "sa(heads={heads})", "heads": 1, "rate": 1e-3}

    def end(heads, attempt, flops, status="done"):
        trial = study.search.trial_of({**values, "heads": heads})
        reason = None if status == "done" else "out of memory"
        run = Run(attempt=attempt, status=status, reason=reason, epoch=1, seconds=1800.0, flops=flops)
        store.write(trial_row(trial, run, started=datetime.now(UTC)), [])
        points.attempts.refresh()
        begun.new()
        return begun.spent.trainings, begun.spent.flops, begun.spent.seconds

    assert end(1, 0, 5.0, "failed") == (1, 5.0, 1800.0)
    assert end(2, 0, 7.0) == (2, 12.0, 3600.0)
    assert end(1, 1, 1.0) == (2, 8.0, 3600.0)
    assert budget_exhausted(SearchBudget(hours=1), begun.spent)
    assert not budget_exhausted(SearchBudget(trainings=3), begun.spent)
    assert budget_exhausted(SearchBudget(trainings=3), begun.spent, running=1)


def test_a_training_that_continues_another_spends_only_what_it_adds(tmp_path):
    study, store = load_study(STUDY, ["search.budget={flops=9.0}"]), Store(tmp_path)
    points = StoredPoints(study, store)
    begun = BegunPoints(study, store, points)
    earlier = None
    for heads, flops in ((1, 5.0), (2, 8.0), (3, 9.0)):
        trial = study.search.trial_of({"mixer": "sa(heads={heads})", "heads": heads, "rate": 1e-3})
        run = Run(status="done", epoch=1, seconds=2 * flops, flops=flops, continued_from=earlier)
        earlier = trial.id
        store.write(trial_row(trial, run, started=datetime.now(UTC)), [])
        points.attempts.refresh()
        begun.new()
        assert (begun.spent.flops, begun.spent.seconds) == (flops, 2 * flops)
        left = left_within_budget(study.search, study_outcomes(study, store.trials()), ())
        assert (left is not None) == (flops == 9.0)
        found = find_points(study, store.trials())
        assert sum(point.seconds for point in found.points) == 2 * flops


def test_gpu_hours_are_those_of_the_shares_of_gpus_that_trainings_had(tmp_path):
    study, store = load_study(STUDY, ["search.budget={gpu_hours=2.25}"]), Store(tmp_path)
    points = StoredPoints(study, store)
    begun = BegunPoints(study, store, points)
    spent = []
    for heads, (gpus, cuda) in enumerate([(0.0, ""), (1.0, "12.8"), (0.25, "12.8"), (None, "12.8")], 1):
        trial = study.search.trial_of({"mixer": "sa(heads={heads})", "heads": heads, "rate": 1e-3})
        device = "8 × X, a share of 0.5"  # its text has no meaning
        run = Run(status="done", epoch=1, seconds=3600.0, device=device, gpus=gpus, cuda_version=cuda)
        store.write(trial_row(trial, run, started=datetime.now(UTC)), [])
        points.attempts.refresh()
        begun.new()
        rows = study_outcomes(study, store.trials())
        left = left_within_budget(study.search, rows, ())
        spent.append(
            (
                begun.spent.gpu_seconds,
                budget_exhausted(study.search.settings.budget, begun.spent),
                left is not None,
            )
        )
    assert spent == [
        (0.0, False, False),
        (3600.0, False, False),
        (1.25 * 3600.0, False, False),
        (2.25 * 3600.0, True, True),
    ]
    assert study.search.settings.budget.words() == "2.25 GPU-hours"


def test_two_drivers_together_begin_no_more_points_than_the_search_has(tmp_path):
    study, store = load_study(STUDY, ["search.trials=7"]), Store(tmp_path)
    searches = [Search(study, store, run, NOBODY) for run in ("one", "other")]
    found = list[str]()

    def begin_all(search):
        while (job := search.next_job()) is not None:
            found.append(job.trial.id)

    drivers = [threading.Thread(target=begin_all, args=(search,)) for search in searches]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert len(found) == len(set(found)) == 7
    assert list((tmp_path / "leases").iterdir()) == []
