import pytest

from activemem.cli.progress import Progress
from activemem.engine.events import Advanced, Ended, Started

from .trials import trial


def follow(progress, *events):
    """Tell a progress of (time, event) pairs."""
    for now, event in events:
        progress.hear(event, now)


def epochs(each, times, first=1):
    """One event for each epoch of a trial, at the given times."""
    return [(now, Advanced(trial=each.id, epoch=epoch, metrics={})) for epoch, now in enumerate(times, first)]


def test_nothing_is_expected_before_the_first_epoch_has_ended():
    each, progress = trial(), Progress(total=1, held={})
    progress.announce([each])
    follow(progress, (0.0, Started(trial=each.id, epoch=0)))
    assert progress.left_s() is None


def test_the_epochs_of_a_running_trial_count():
    each, progress = trial(epochs=10), Progress(total=1, held={})
    progress.announce([each])
    follow(progress, (0.0, Started(trial=each.id, epoch=0)), *epochs(each, [1.0, 2.0, 3.0, 4.0]))
    assert progress.left_s() == pytest.approx(6.0)


def test_the_time_left_shrinks_while_an_epoch_lasts_and_never_below_nothing():
    each, progress = trial(epochs=10), Progress(total=1, held={})
    progress.announce([each])
    follow(progress, (0.0, Started(trial=each.id, epoch=0)), *epochs(each, [1.0, 2.0, 3.0, 4.0]))
    progress.pass_time(4.5)
    assert progress.left_s() == pytest.approx(5.5)
    progress.pass_time(1000.0)
    assert progress.left_s() == 0.0


def test_trials_that_wait_are_expected_to_cost_what_others_of_their_recipe_do():
    first, second, progress = trial(seed=0, epochs=2), trial(seed=1, epochs=2), Progress(total=2, held={})
    progress.announce([first, second])
    follow(progress, (0.0, Started(trial=first.id, epoch=0)), *epochs(first, [5.0, 10.0]))
    follow(progress, (10.0, Ended(trial=first.id, status="done")))
    assert progress.left_s() == pytest.approx(10.0)


def test_a_slow_recipe_makes_only_its_own_trials_look_slow():
    slow = [trial("cgru(k=3)", seed=seed, epochs=2) for seed in range(10)]
    fast = [trial("sa", seed=seed, epochs=2) for seed in range(10)]
    progress, now = Progress(total=20, held={}), 0.0
    progress.announce([*slow, *fast])
    for each, seconds in [*((each, 50.0) for each in slow[:9]), *((each, 1.0) for each in fast[:9])]:
        follow(progress, (now, Started(trial=each.id, epoch=0)))
        follow(progress, *epochs(each, [now + seconds, now + 2 * seconds]))
        now += 2 * seconds
        follow(progress, (now, Ended(trial=each.id, status="done")))
    mean = (100 + 2) / 2
    assert progress.left_s() == pytest.approx((900 + mean) / 10 + (18 + mean) / 10)


def test_workers_share_what_is_left_and_no_trial_is_split():
    trials = [trial(seed=seed, epochs=10) for seed in range(4)]
    progress = Progress(total=4, held={})
    progress.announce(trials)
    for each in trials[:2]:
        follow(progress, (0.0, Started(trial=each.id, epoch=0)))
    follow(progress, *[event for each in trials[:2] for event in epochs(each, [5.0])])
    assert progress.left_s() == pytest.approx((45 + 45 + 50 + 50) / 2)
    for each in trials[:3]:
        follow(progress, (5.0, Ended(trial=each.id, status="failed", reason="out of memory")))
    assert progress.left_s() == pytest.approx(50)


def test_short_trials_that_are_heard_of_in_bundles_still_cost_what_they_took():
    trials = [trial(seed=seed, epochs=1) for seed in range(30)]
    progress = Progress(total=30, held={})
    progress.announce(trials)
    progress.hear(Started(trial=trials[0].id, epoch=0), 0.0)
    for number, each in enumerate(trials[:20]):
        now = 0.5 * (number // 5 + 1)  # five trials a bundle, a bundle every half a second
        follow(progress, *epochs(each, [now]), (now, Ended(trial=each.id, status="done")))
        follow(progress, (now, Started(trial=trials[number + 1].id, epoch=0)))
    assert progress.left_s() == pytest.approx(10 * 0.1, rel=0.05)


def test_a_trial_that_goes_on_counts_from_where_it_was():
    each, progress = trial(epochs=10), Progress(total=1, held={})
    progress.announce([each])
    follow(progress, (0.0, Started(trial=each.id, epoch=6)), *epochs(each, [1.0, 2.0], first=7))
    assert progress.left_s() == pytest.approx(2.0)


def test_outcomes_of_earlier_runs_count_and_those_that_are_tried_again_do_not():
    failed, done, new = (trial(seed=seed) for seed in range(3))
    progress = Progress(total=3, held={failed.id: "failed", done.id: "done"})
    assert dict(progress.counts) == {"failed": 1, "done": 1}
    progress.announce([failed, new])
    assert dict(progress.counts) == {"done": 1}
    follow(progress, (0.0, Ended(trial=failed.id, status="done")))
    assert (dict(progress.counts), progress.total) == ({"done": 2}, 3)


def test_trials_of_a_search_that_nobody_knows_yet_are_expected_to_be_pruned_as_often_as_others():
    trials = [trial(seed=seed, epochs=10) for seed in range(2)]
    progress = Progress(total=10, held={}, to_come=10)
    progress.announce(trials)
    for each, last in zip(trials, (10, 5), strict=True):
        follow(progress, (0.0, Started(trial=each.id, epoch=0)))
        follow(progress, (0.0, Advanced(trial=each.id, epoch=last, metrics={})))
    follow(progress, *[(0.0, Ended(trial=each.id, status="done")) for each in trials[:1]])
    progress.pass_time(15.0)
    follow(progress, (15.0, Ended(trial=trials[1].id, status="pruned", reason="given up")))
    assert progress.left_s() == pytest.approx(8 * 10.0 * 0.75 / 2)
