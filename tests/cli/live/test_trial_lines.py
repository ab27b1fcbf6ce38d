from pathlib import Path

import pytest
from rich.console import Console

from activemem import load_study
from activemem.cli.live import display
from activemem.cli.views.trial_lines import MAX_RUNNING_LINES, Headline, TrialNameColumns, headline_of
from activemem.engine.core.events import StudyProgress
from activemem.storage import Store

from ...event_factories import make_event, planned
from ...study_texts import study_text
from ..trial_factories import make_trial

METRICS = {"loss": 0.01, "accuracy": 0.998, "length": 19.0, "max_length": 18.0, "tokens_per_s": 1e4}

PLAIN = Headline(load_study(study_text(task={"name": "reverse"}, factors={"mixer": ["sa"]})))
"""The headline of a study without a metric of its own."""


def running(*trials, total=144):
    """Return a progress in which these trials have trained 61 of 100 epochs of one second."""
    progress = StudyProgress(total=total, stored={f"{number:016x}": "done" for number in range(60)})
    progress.on_event(planned(*trials), 0.0)
    for each in trials:
        progress.on_event(make_event("started", trial=each.id, epoch=60), 0.0)
    for each in trials:
        progress.on_event(make_event("epoch", trial=each.id, epoch=61, metrics=METRICS), 1.0)
    return progress


def counts(progress):
    running, left_s = len(progress.running), progress.remaining_s()
    return display.format_counts(progress.counts, progress.total, running, left_s)


def ended_line(event, trial, count, columns, headline):
    outcome = event.run.status, event.run.reason, event.run.metrics
    return display.format_ended(trial, *outcome, count=count, columns=columns, headline=headline)


PAIR = (
    make_trial("sa + persistent_conv(k=20)", "multiply", 1, epochs=100),
    make_trial("sa", "not", epochs=100, dropout=0.1),
)


def test_counts_say_what_ended_what_runs_and_what_time_is_left():
    progress = running(*PAIR)
    progress.on_event(
        make_event("ended", trial=PAIR[1].id, status="failed", reason="not a number at epoch 62"), 1.0
    )
    assert counts(progress) == "61/144   1 running · 1 failed   ETA 39 s"


def test_running_trials_are_below_each_other_within_eighty_columns():
    assert display.format_running(running(*PAIR).running.values(), TrialNameColumns(PAIR), 80) == [
        "  sa + pers…conv  multiply       seed 1  epoch 61/100  length 19  accuracy 0.998",
        "  sa              not       0.1  seed 0  epoch 61/100  length 19  accuracy 0.998",
    ]


def test_more_running_trials_than_lines_are_counted():
    trials = [make_trial(seed=seed, epochs=100) for seed in range(9)]
    lines = display.format_running(running(*trials).running.values(), TrialNameColumns(trials), 80)
    assert (len(lines), lines[-1]) == (MAX_RUNNING_LINES + 1, "  and 3 more")


def test_a_trial_that_has_just_started_has_no_metrics_yet():
    each, progress = make_trial(seed=2), StudyProgress(total=1, stored={})
    progress.on_event(planned(each), 0.0)
    progress.on_event(make_event("started", trial=each.id, epoch=0), 0.0)
    assert display.format_running(progress.running.values(), TrialNameColumns([each]), 80) == [
        "  sa  sort  seed 2  epoch 0/10"
    ]
    assert counts(progress) == "0/1   1 running   ETA –"


def test_a_finished_trial_is_one_line():
    event = make_event("ended", trial=PAIR[0].id, status="done", metrics=METRICS)
    assert ended_line(event, PAIR[0], (61, 144), TrialNameColumns(PAIR[:1]), PLAIN) == (
        " 61/144   done    sa + persistent_conv  multiply  seed 1  max_length 18.0  best trial 18.0"
    )


@pytest.mark.parametrize(
    ("epoch", "step", "deaths", "place"),
    [
        (3, 150, 0, "epoch 3"),
        (0, 20, 0, "step 20"),
        (0, 0, 2, "step 0, where 2 processes died"),
        (3, 4 * PAIR[0].common.train.steps_per_epoch, 0, "the end of epoch 4"),
    ],
    ids=["after epochs", "amid the first", "after deaths", "before an evaluation"],
)
def test_a_trial_that_continues_says_where(epoch, step, deaths, place, capsys):
    progress, console = StudyProgress(total=1, stored={}), Console(stderr=True, highlight=False)
    shown = display.Display("small", progress, console, TrialNameColumns(), PLAIN)
    shown(planned(*PAIR[:1]))
    shown(make_event("started", trial=PAIR[0].id, epoch=epoch, step=step, deaths=deaths))
    line = f"continues sa + persistent_conv  multiply  seed 1 from {place}\n"
    assert capsys.readouterr().err == line


def test_a_failed_trial_says_why_without_its_traceback():
    event = make_event(
        "ended", trial=PAIR[0].id, status="failed", reason="ValueError: no (at epoch 3)\nTraceback\n  ..."
    )
    assert ended_line(event, PAIR[0], (61, 144), TrialNameColumns(PAIR[:1]), PLAIN) == (
        " 61/144   failed  sa + persistent_conv  multiply  seed 1  ValueError: no (at epoch 3)"
    )


def test_lines_that_are_written_one_by_one_are_below_each_other():
    pair = (make_trial("sa + conv(k=20)", "multiply"), make_trial("sa", "not"))
    columns, lines = TrialNameColumns(pair), []
    for count, each in enumerate(pair, 61):
        event = make_event("ended", trial=each.id, status="done", metrics=METRICS)
        lines.append(ended_line(event, each, (count, 144), columns, PLAIN))
    assert lines == [
        " 61/144   done    sa + conv(k=20)  multiply  seed 0  max_length 18.0  best trial 18.0",
        " 62/144   done    sa               not       seed 0  max_length 18.0  best trial 18.0",
    ]


def test_each_finished_trial_shows_the_metric_of_the_first_table_and_the_best_of_its_task():
    best = [
        ("max_length", each.settings.task.model_dump_json(), known)
        for each, known in zip(PAIR, (17.0, 30.0), strict=True)
    ]
    headline, columns = Headline(load_study("quickstart"), best), TrialNameColumns(PAIR)
    lines = [
        ended_line(
            make_event("ended", trial=each.id, status="done", metrics={**METRICS, "max_length": length}),
            each, (61, 144), columns, headline,
        )
        for each, length in zip(PAIR, (18.0, float("nan")), strict=True)
    ]  # fmt: skip
    assert lines[0].endswith("  max_length 18.0  best trial 18.0")
    assert lines[1].endswith("  max_length nan  best trial 30.0")


def test_the_best_trial_of_a_search_is_that_of_the_same_task():
    store, study = Store(Path(__file__).parents[3] / "studies" / "results"), load_study("search-mixers")
    stored = store.trials().filter(study="search-mixers", status="done")
    headline, found = headline_of(study, store), set()
    for trial in {each.settings.task.name: each for each in study.examples}.values():
        metrics = stored.filter(task=trial.settings.task.name)["metrics"].explode().struct.unnest()
        best = metrics.filter(name="dev_accuracy")["value"].max()
        assert headline.words({"dev_accuracy": 0.0}, trial)[1] == f"best trial {best:.3f}"
        found.add(best)
    assert len(found) == 2


TEXT = study_text(
    study={"name": "bare", "title": "No table"},
    model={"recipe": "gru", "d_model": 8},
    task={"name": "language_model", "corpus": "paradise-lost"},
    train={"optimizer": {"name": "adam", "lr": 0.01}, "epochs": 1, "curriculum": None},
    factors={"seed": [0]},
)


@pytest.mark.parametrize(
    ("tokens", "metrics", "words"),
    [
        ("characters", {"dev_loss": 2.0, "dev_bpc": 2.885}, ["dev_bpc 2.885", "best trial 2.500"]),
        ("bpe", {"dev_loss": 2.0, "dev_perplexity": 7.4}, ["dev_perplexity 7.4", "best trial 2.5"]),
    ],
)
def test_a_study_without_a_table_shows_the_main_metric_of_its_task(tokens, metrics, words):
    name = words[0].partition(" ")[0]
    study = load_study(TEXT, [f"task.tokens={tokens}"])
    trial = study.trials[0]
    known = [(name, trial.settings.task.model_dump_json(), 2.5)]
    assert Headline(study, known).words(metrics, trial) == words


@pytest.mark.parametrize(
    ("epochs", "best"),
    [
        ([(3.0, 1.9), (2.0, 1.8)], ["best trial 0.900"]),
        ([(90.0, 80.0), (12.0, 20.0)], []),  # worse than a guess
        ([(3.0, 2.9), (2.0, 2.0), (2.9, 2.8)], []),  # its loss rose
    ],
)
def test_a_diverged_trial_is_not_the_best(epochs, best):
    study = load_study(TEXT, ["task.tokens=characters"])
    (trial,), course = study.trials, [{"loss": loss, "dev_loss": dev} for loss, dev in epochs]
    metrics = {**course[-1], "dev_bpc": 0.9}
    headline = Headline(study)
    assert headline.words(metrics, trial, course) == ["dev_bpc 0.900", *best]


def test_each_point_of_a_search_shows_its_objective_where_less_is_better():
    study = load_study("search-mixers", ["search.metric=loss", "search.direction=min"])
    search, trial = Headline(study), study.examples[0]
    assert [search.words({"loss": loss}, trial)[1] for loss in (0.5, 0.25, 0.75)] == [
        "best trial 0.5000",
        "best trial 0.2500",
        "best trial 0.2500",
    ]
    assert search.words({"loss": float("inf")}, trial) == ["loss ∞", "best trial 0.2500"]


def test_a_trial_of_a_search_shows_every_objective_before_the_values_of_its_point_by_name():
    space = {"layer": "choice(conv(k={k}) >> ff({width}), sa >> ff(8))", "k": "integer(2, 9)"}
    text = study_text(
        model={"recipe": "{layer}"},
        task={"name": "sort"},
        search={"trials": 2, "metric": ["loss", "parameters"]},
        space={**space, "width": "choice(8, 16)", "rate": "real(0.1, 0.2)"},
    )
    study = load_study(text, ["train.optimizer.lr={rate}"])
    trial, _ = study.examples
    event = make_event("ended", trial=trial.id, status="done", metrics=METRICS)
    line = ended_line(event, trial, (1, 2), TrialNameColumns.of(study, [trial]), Headline(study))
    assert line.startswith("1/2   done    loss 0.0100  best trial 0.0100  parameters ")
    assert line.endswith("  layer=conv(k=2) >> ff(8)  k=2  width=8  rate=0.1  seed 0")
