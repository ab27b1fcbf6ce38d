"""Watching a study that runs elsewhere, from its store alone, without affecting it."""

import io
import json
import re
import signal
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from rich.console import Console

from activemem import load_study
from activemem.cli.live import watch
from activemem.reporting.serve.study_now import BegunTrial, StudyNow
from activemem.storage import CheckpointNote, Store

from ...forked_commands import start_command
from ...reporting.conftest import made_row

NAN = (
    *("--set", "train.optimizer={name='sgd', lr=1e30}"),
    *("--set", "factors.seed=[0]", "--set", "factors.task=['not']"),
)


def test_a_run_in_another_process_is_watched_from_before_it_begins_until_it_ends(tiny):
    watching = start_command("study", "watch", tiny)
    assert watching.stderr.readline().startswith("no trial of tiny")
    assert watching.stderr.readline() == "tiny   0/8   0 running   ETA –\n"
    running = start_command("study", "run", tiny, "--local")
    told, wrote = running.communicate(timeout=600), watching.communicate(timeout=600)
    assert (running.returncode, watching.returncode, wrote[0]) == (0, 0, "")
    *lines, summary = wrote[1].splitlines()
    assert lines == told[1].splitlines()[:8]
    assert [line[:11] for line in lines] == [f"{number}/8   done " for number in range(1, 9)]
    assert summary == "tiny: 8 of 8 trials done · 0 left"


def test_ctrl_c_ends_watching_with_a_summary_of_the_study(tiny):
    watching = start_command("study", "watch", tiny)
    assert watching.stderr.readline().startswith("no trial of tiny")
    assert watching.stderr.readline() == "tiny   0/8   0 running   ETA –\n"
    watching.send_signal(signal.SIGINT)
    assert watching.communicate(timeout=600) == ("", "tiny: 0 of 8 trials done · 8 left\n")
    assert watching.returncode == 130


def test_a_study_that_has_ended_is_summed_up_at_once_and_failures_are_its_status(run, tiny, golden):
    run("study", "run", tiny, "--local", *NAN)
    result = run("study", "watch", "tiny")
    assert (result.exit_code, result.stdout) == (1, "")
    golden(result.stderr.splitlines())
    told = json.loads(run("study", "watch", "tiny", "--json").stdout)
    assert (told["counts"]["failed"], told["left"], told["best"]) == (2, 0, [])
    missing = run("study", "watch", "tidy")
    assert (missing.exit_code, "no study of that name" in missing.stderr) == (2, True)


@pytest.fixture
def under_way(tiny, tmp_path):
    """Store a running study: one trial done, one failed, one in training, one abandoned."""
    study, store = load_study(tiny), Store(tmp_path / "results")
    done, failed, running, stopped, *_ = study.trials
    store.write(made_row(done, {"max_length": 20.0, "accuracy": 0.5}, 0), [])
    store.write(made_row(failed, "failed: out of memory\nTraceback", 1), [])

    def at(epoch):
        note = CheckpointNote(
            epoch=epoch, metrics={"loss": 0.5, "length": 9.0}, saved_at=datetime.now(UTC), seconds=1.0
        )
        begun = (
            BegunTrial(trial=running, note=note, held=True),
            BegunTrial(trial=stopped, note=None, held=False),
        )
        return StudyNow(
            study=study,
            store=store,
            outcomes=store.trials(),
            ended=store.trials(),
            begun=begun,
        )

    return at


def test_on_a_terminal_it_is_the_display_of_a_run_with_failures_and_what_nobody_trains(under_way, golden):
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    now = under_way(1)
    drawn = watch._Display(console, now)
    drawn.show(now)
    with console.capture() as capture:
        console.print(drawn.render())
    first, *others = re.sub(r"\x1b\[[0-9;]*m", "", capture.get()).splitlines()
    assert re.fullmatch(r"tiny ━+[╸╺]?━+ 2/8   1 running · 1 failed   ETA 9 s", first.strip())
    golden(others)


def test_a_trial_in_the_first_epoch_of_all_gives_no_estimate(under_way):
    now = under_way(0)
    progress = replace(now, outcomes=now.outcomes.clear())
    assert (len(progress.running), progress.eta_s) == (1, None)


def test_without_a_terminal_epochs_are_printed_from_time_to_time(under_way, capsys, monkeypatch):
    now, later = under_way(0), under_way(1)
    lines = watch._Display(Console(stderr=True), now)
    for each in (now, later):
        lines.show(each)
    head, told = "tiny   2/8   1 running · 1 failed   ETA ", capsys.readouterr().err.splitlines()
    assert [line[: len(head)] for line in told] == [head, "  1 trial begun, but not in training now"]
    monkeypatch.setattr(watch, "MAX_SILENCE_S", 0.0)
    for each in (later, later):
        lines.show(each)
    assert capsys.readouterr().err.count("tiny   2/8") == 1
