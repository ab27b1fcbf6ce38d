import pytest

from activemem.cli import drawing
from activemem.cli.columns import Columns
from activemem.cli.progress import Progress
from activemem.engine.events import Advanced, Ended, Started

from .trials import trial

METRICS = {"loss": 0.01, "accuracy": 0.998, "length": 19.0, "max_length": 18.0, "tokens_per_s": 1e4}


def running(*trials, total=144):
    """A progress in which these trials have trained 61 of 100 epochs, a second each."""
    progress = Progress(total=total, held={f"{number:016x}": "done" for number in range(60)})
    progress.announce(trials)
    for each in trials:
        progress.hear(Started(trial=each.id, epoch=60), 0.0)
    for each in trials:
        progress.hear(Advanced(trial=each.id, epoch=61, metrics=METRICS), 1.0)
    return progress


PAIR = (
    trial("sa + persistent_conv(k=20)", "multiply", 1, epochs=100),
    trial("sa", "not", epochs=100, dropout=0.1),
)


@pytest.mark.parametrize(
    ("done", "full", "empty"),
    [(0.0, "", "──────────"), (0.55, "━━━━━╸", "────"), (1.0, "━━━━━━━━━━", ""), (1.2, "━━━━━━━━━━", "")],
)
def test_the_full_and_the_empty_part_of_a_bar_differ_in_shape(done, full, empty):
    assert drawing.bar(done, 10) == (full, empty)


def test_the_heading_counts_and_fits_eighty_columns():
    progress = running(*PAIR)
    progress.hear(Ended(trial=PAIR[1].id, status="failed", reason="not a number at epoch 62"), 1.0)
    line = "".join(drawing.heading("algorithmic", progress, 80))
    assert line == ("algorithmic ━━━━━━━━━━━───────────────  61/144   1 running · 1 failed   ETA 39 s")


@pytest.mark.parametrize("width", [80, 72])
def test_the_heading_of_a_long_name_shortens_its_bar(width):
    assert len("".join(drawing.heading("a-study-with-a-long-name", running(*PAIR), width))) <= width


def test_running_trials_stand_below_each_other_within_eighty_columns():
    assert drawing.running(running(*PAIR), Columns(PAIR), 80) == [
        "  sa + persist…t_conv  multiply       seed 1  epoch 61/100  length 19  acc 0.998",
        "  sa                   not       0.1  seed 0  epoch 61/100  length 19  acc 0.998",
    ]


def test_more_running_trials_than_lines_are_counted():
    trials = [trial(seed=seed, epochs=100) for seed in range(9)]
    lines = drawing.running(running(*trials), Columns(trials), 80)
    assert (len(lines), lines[-1]) == (drawing.MOST_RUNNING + 1, "  and 3 more")


def test_a_trial_that_has_just_started_has_no_metrics_yet():
    each, progress = trial(seed=2), Progress(total=1, held={})
    progress.announce([each])
    progress.hear(Started(trial=each.id, epoch=0), 0.0)
    assert drawing.running(progress, Columns([each]), 80) == ["  sa  sort  seed 2  epoch 0/10"]
    assert drawing.heading("small", progress, 80)[-1] == "  0/1   1 running   ETA –"


def test_a_finished_trial_is_one_line():
    progress = running(*PAIR)
    event = Ended(trial=PAIR[0].id, status="done", metrics=METRICS)
    progress.hear(event, 2.0)
    assert drawing.ended(event, PAIR[0], progress, Columns(PAIR[:1])) == (
        " 61/144   done    sa + persistent_conv  multiply  seed 1  max 18  acc 0.998"
    )


def test_a_failed_trial_says_why_without_its_traceback():
    progress = running(*PAIR)
    event = Ended(trial=PAIR[0].id, status="failed", reason="ValueError: no (at epoch 3)\nTraceback\n  ...")
    progress.hear(event, 2.0)
    assert drawing.ended(event, PAIR[0], progress, Columns(PAIR[:1])) == (
        " 61/144   failed  sa + persistent_conv  multiply  seed 1  ValueError: no (at epoch 3)"
    )


def test_lines_that_are_written_one_by_one_stand_below_each_other():
    pair = (trial("sa + conv(k=20)", "multiply"), trial("sa", "not"))
    progress, columns = running(*pair), Columns(pair)
    lines = []
    for each in pair:
        event = Ended(trial=each.id, status="done", metrics=METRICS)
        progress.hear(event, 2.0)
        lines.append(drawing.ended(event, each, progress, columns))
    assert lines == [
        " 61/144   done    sa + conv(k=20)  multiply  seed 0  max 18  acc 0.998",
        " 62/144   done    sa               not       seed 0  max 18  acc 0.998",
    ]
