import pytest

from activemem.engine.core.events import StudyProgress

from ...cli.trial_factories import make_trial
from ...event_factories import make_event, planned


def follow(progress, *events):
    """Feed (time, event) pairs to a progress."""
    for now, event in events:
        progress.on_event(event, now)


def epochs(each, times, first=1):
    """Return one event per epoch of a trial, at the given times."""
    return [
        (now, make_event("epoch", trial=each.id, epoch=epoch, metrics={}))
        for epoch, now in enumerate(times, first)
    ]


def test_nothing_is_expected_before_the_first_epoch_has_ended():
    each, progress = make_trial(), StudyProgress(total=1, stored={})
    progress.on_event(planned(each), 0.0)
    follow(progress, (0.0, make_event("started", trial=each.id, epoch=0)))
    assert progress.remaining_s() is None


def test_the_epochs_of_a_running_trial_count():
    each, progress = make_trial(epochs=10), StudyProgress(total=1, stored={})
    progress.on_event(planned(each), 0.0)
    follow(
        progress, (0.0, make_event("started", trial=each.id, epoch=0)), *epochs(each, [1.0, 2.0, 3.0, 4.0])
    )
    assert progress.remaining_s() == pytest.approx(6.0)


def test_the_time_left_shrinks_while_an_epoch_lasts_and_never_below_nothing():
    each, progress = make_trial(epochs=10), StudyProgress(total=1, stored={})
    progress.on_event(planned(each), 0.0)
    follow(
        progress, (0.0, make_event("started", trial=each.id, epoch=0)), *epochs(each, [1.0, 2.0, 3.0, 4.0])
    )
    progress.advance_clock(4.5)
    assert progress.remaining_s() == pytest.approx(5.5)
    progress.advance_clock(1000.0)
    assert progress.remaining_s() == 0.0


def test_trials_that_wait_are_expected_to_cost_what_others_of_their_recipe_do():
    first, second, progress = (
        make_trial(seed=0, epochs=2),
        make_trial(seed=1, epochs=2),
        StudyProgress(total=2, stored={}),
    )
    progress.on_event(planned(first, second), 0.0)
    follow(progress, (0.0, make_event("started", trial=first.id, epoch=0)), *epochs(first, [5.0, 10.0]))
    follow(progress, (10.0, make_event("ended", trial=first.id, status="done")))
    assert progress.remaining_s() == pytest.approx(10.0)


def test_a_slow_recipe_makes_only_its_own_trials_look_slow():
    slow = [make_trial("cgru(k=3)", seed=seed, epochs=2) for seed in range(10)]
    fast = [make_trial("sa", seed=seed, epochs=2) for seed in range(10)]
    progress, now = StudyProgress(total=20, stored={}), 0.0
    progress.on_event(planned(*slow, *fast), 0.0)
    for each, seconds in [*((each, 50.0) for each in slow[:9]), *((each, 1.0) for each in fast[:9])]:
        follow(progress, (now, make_event("started", trial=each.id, epoch=0)))
        follow(progress, *epochs(each, [now + seconds, now + 2 * seconds]))
        now += 2 * seconds
        follow(progress, (now, make_event("ended", trial=each.id, status="done")))
    mean = (100 + 2) / 2
    assert progress.remaining_s() == pytest.approx((900 + mean) / 10 + (18 + mean) / 10)


def test_workers_share_what_is_left_and_no_trial_is_split():
    trials = [make_trial(seed=seed, epochs=10) for seed in range(4)]
    progress = StudyProgress(total=4, stored={})
    progress.on_event(planned(*trials), 0.0)
    for each in trials[:2]:
        follow(progress, (0.0, make_event("started", trial=each.id, epoch=0)))
    follow(progress, *[event for each in trials[:2] for event in epochs(each, [5.0])])
    assert progress.remaining_s() == pytest.approx((45 + 45 + 50 + 50) / 2)
    for each in trials[:3]:
        follow(progress, (5.0, make_event("ended", trial=each.id, status="failed", reason="out of memory")))
    assert progress.remaining_s() == pytest.approx(50)


def test_short_trials_that_are_heard_of_in_bundles_still_cost_what_they_took():
    trials = [make_trial(seed=seed, epochs=1) for seed in range(30)]
    progress = StudyProgress(total=30, stored={})
    progress.on_event(planned(*trials), 0.0)
    progress.on_event(make_event("started", trial=trials[0].id, epoch=0), 0.0)
    for number, each in enumerate(trials[:20]):
        now = 0.5 * (number // 5 + 1)  # five trials a bundle, a bundle every half a second
        follow(progress, *epochs(each, [now]), (now, make_event("ended", trial=each.id, status="done")))
        follow(progress, (now, make_event("started", trial=trials[number + 1].id, epoch=0)))
    assert progress.remaining_s() == pytest.approx(10 * 0.1, rel=0.05)


def test_a_trial_that_continues_counts_from_where_it_was():
    each, progress = make_trial(epochs=10), StudyProgress(total=1, stored={})
    progress.on_event(planned(each), 0.0)
    follow(progress, (0.0, make_event("started", trial=each.id, epoch=6)), *epochs(each, [1.0, 2.0], first=7))
    assert progress.remaining_s() == pytest.approx(2.0)


def test_outcomes_of_earlier_runs_count_and_those_that_are_tried_again_do_not():
    failed, done, new = (make_trial(seed=seed) for seed in range(3))
    progress = StudyProgress(total=3, stored={failed.id: "failed", done.id: "done"})
    assert dict(progress.counts) == {"failed": 1, "done": 1}
    progress.on_event(planned(failed, new), 0.0)
    assert dict(progress.counts) == {"done": 1}
    follow(progress, (0.0, make_event("ended", trial=failed.id, status="done")))
    assert (dict(progress.counts), progress.total) == ({"done": 2}, 3)


def test_trials_of_a_search_that_nobody_knows_yet_are_expected_to_be_pruned_as_often_as_others():
    trials = [make_trial(seed=seed, epochs=10) for seed in range(2)]
    progress = StudyProgress(total=10, stored={}, unplanned=10)
    progress.on_event(planned(*trials), 0.0)
    for each, last in zip(trials, (10, 5), strict=True):
        follow(progress, (0.0, make_event("started", trial=each.id, epoch=0)))
        follow(progress, (0.0, make_event("epoch", trial=each.id, epoch=last, metrics={})))
    follow(progress, *[(0.0, make_event("ended", trial=each.id, status="done")) for each in trials[:1]])
    progress.advance_clock(15.0)
    follow(progress, (15.0, make_event("ended", trial=trials[1].id, status="given up", reason="pruned")))
    assert progress.remaining_s() == pytest.approx(8 * 10.0 * 0.75 / 2)
