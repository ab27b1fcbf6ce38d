import json
import os
import re
import time
from pathlib import Path

import pytest

from activemem import load_study
from activemem.storage import Store, trial_files

from ..store_factories import make_partial_store, store_outcome


def test_a_plan_says_what_runs_what_it_costs_and_what_cannot_be_learnt(run, tiny, steps_of_a_second, golden):
    make_partial_store(tiny)
    result = run("study", "plan", tiny)
    assert (result.exit_code, result.stderr) == (0, "")
    golden(result.stdout)
    ordered = run("study", "plan", tiny, "--set", "study.order=file").stdout
    assert re.search(r"^  order +.*order of the file", ordered, re.MULTILINE)


def test_a_plan_with_overrides_counts_other_trials(run, tiny, golden):
    make_partial_store(tiny)
    result = run("study", "plan", tiny, "--set", "train.epochs=3", "--set", "factors.seed=[0, 1, 2]")
    golden(result.stdout.splitlines()[1])


def test_a_plan_as_json_has_every_trial(run, tiny, steps_of_a_second):
    make_partial_store(tiny)
    page = json.loads(run("study", "plan", tiny, "--json").stdout)
    assert (page["total"], page["left"], page["counts"]) == (8, 1, {"done": 6, "failed": 1})
    assert page["estimate"] == {"seconds": 5.0, "basis": "at most", "expected": None}
    assert [each["status"] for each in page["trials"]] == ["done"] * 6 + ["failed", "missing"]
    assert page["trials"][0]["trial"]["levels"] == {
        "mixer": "sa(heads=1, head_width=4)",
        "task": "not",
        "seed": 0,
    }
    (limit,) = page["reach_limits"]
    assert (limit["labels"], limit["left"], limit["right"]) == (["conv(k=3)"], 1, 1)
    assert limit["max_lengths"] == {"reverse": 2}


@pytest.mark.usefixtures("steps_of_a_second")
def test_a_plan_of_a_shipped_study_needs_no_file(run, golden):
    result = run("study", "plan", "quickstart")
    assert result.exit_code == 0
    golden(result.stdout.splitlines()[1])
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_steps_that_could_not_be_measured_are_measured_again(run, tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    step = "activemem.engine.run.step_times._measure_step"

    def fail(*_):
        raise RuntimeError("no memory for a moment")

    changed = ("study", "plan", tiny, "--set", "train.steps_per_epoch=7")
    monkeypatch.setattr(step, fail)
    assert "no estimate" in run(*changed).stdout
    monkeypatch.setattr(step, lambda *_: 1.0)
    assert "at most" in run(*changed).stdout


@pytest.mark.parametrize("command", ["plan", "status"])
def test_an_unknown_study_is_reported_with_the_nearest(run, command, golden):
    result = run("study", command, "algoritmic")
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)


def test_a_status_without_results_names_the_store_and_the_command_that_fills_it(run, tiny, golden):
    result = run("study", "status", tiny, "--results", "elsewhere")
    golden(result.stderr)


def test_the_state_of_a_run_with_overrides_can_be_asked_for(run, tiny):
    make_partial_store(tiny)
    changed = ("--set", "train.epochs=3")
    assert run("study", "status", tiny).stdout.splitlines()[1].startswith("6 of 8 trials done")
    assert run("study", "status", tiny, *changed).stdout.splitlines()[1].startswith("0 of 8 trials done")
    fault = run("study", "watch", tiny, "--set", "train.epoch=3")
    assert (fault.exit_code, "nearest: epochs" in fault.stderr) == (2, True)


def test_the_command_that_fills_a_store_names_the_file_that_the_study_ran_from(run, tiny):
    file = Path(tiny).rename("my trials.toml")
    record = {"text": file.read_text(encoding="utf-8"), "path": str(file.absolute())}
    Store("results").records.save("tiny", record)
    result = run("study", "status", "tiny")
    assert result.stderr.endswith("train it: activemem study run 'my trials.toml'\n")


def test_a_store_without_results_names_the_one_next_to_the_study_file(run, tiny, monkeypatch):
    make_partial_store(tiny)
    Path("below").mkdir()
    monkeypatch.chdir("below")
    beside = f"{Path('../results').resolve()}: --results ../results"
    assert beside in run("study", "status", f"../{tiny}").stderr
    assert beside in run("study", "status", "tiny").stderr


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_name_that_only_the_store_knows_is_answered_with_its_file(run, tiny, command, golden):
    make_partial_store(tiny)
    golden(run("study", command, "tiny").stderr)
    Path(tiny).rename("other.toml")
    golden(run("study", command, "tiny").stderr)


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_wrong_study_file_is_reported_with_all_its_faults(run, tiny, command, golden):
    text = Path(tiny).read_text(encoding="utf-8")
    text = text.replace("batch_size", "batchsize").replace("conv(k=3)", "cov(k=3)")
    Path("wrong.toml").write_text(text, encoding="utf-8")
    result = run("study", command, "wrong.toml", "--set", "train.epoch=3")
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)
    assert not Path("results").exists()


def test_status_counts_and_says_why_trials_failed(run, tiny, golden):
    make_partial_store(tiny)
    result = run("study", "status", "tiny")
    assert (result.exit_code, result.stderr) == (0, "")
    golden(result.stdout)


def test_status_leaves_a_traceback_out(run, tiny):
    make_partial_store(tiny, reason="KeyError: 'x' (at epoch 1)\nTraceback (most recent call last):\n  ...")
    assert run("study", "status", "tiny").stdout.splitlines()[2] == "  1 failed   KeyError: 'x' (at epoch 1)"


def test_a_trial_that_sees_the_future_needs_an_edit_before_it_is_trained_again(run, tiny):
    make_partial_store(tiny, reason="sees the future: output 2 depends on inputs after position 4 of 9")
    told = run("study", "status", "tiny").stdout
    assert "--retry-failed" not in told
    assert "edit the plug-in that sees the future, then: activemem study run tiny.toml\n" in told


def test_status_as_json(run, tiny):
    store = make_partial_store(tiny)
    page = json.loads(run("study", "status", "tiny", "--json").stdout)
    assert page == {
        "schema": 3,
        "study": "tiny",
        "title": "A study of seconds",
        "total": 8,
        "left": 1,
        "spent": None,
        "counts": {"done": 6, "failed": 1},
        "stored": dict(store.trials().select("trial", "status").iter_rows()),
        "added": {},
        "started": {},
        "progress": {},
        "missing_weights": [],
        "failure_reasons": [["not a number at epoch 1", 1]],
        "stale": {},
        "other_versions": {"trials": 0, "notes": []},
        "best": [],
        "left_out": [],
        "run": None,
    }
    assert store.damaged == ()


def test_a_name_means_the_study_as_it_last_ran_and_a_path_the_file(run, tiny):
    store = make_partial_store(tiny)
    text = Path(tiny).read_text(encoding="utf-8")
    store.records.save("tiny", {"text": text, "overrides": ["factors.seed=[0]"], "path": tiny})
    by_name, by_path = (run("study", "status", what).stdout.splitlines()[1] for what in ("tiny", f"./{tiny}"))
    assert by_name == "3 of 4 trials done · 1 failed · 0 left"
    assert by_path == "6 of 8 trials done · 1 failed · 1 left"


def test_a_trial_that_has_a_checkpoint_counts_as_begun(run, tiny, golden):
    store = make_partial_store(tiny)
    left = json.loads(run("study", "plan", tiny, "--json").stdout)["trials"][-1]["trial"]["id"]
    store.files.checkpoint_dir(left).mkdir(parents=True)
    assert run("study", "status", "tiny").stdout.splitlines()[1] == "6 of 8 trials done · 1 failed · 1 left"
    (store.files.checkpoint_dir(left) / "state.pt").touch()
    golden(run("study", "status", "tiny").stdout.splitlines()[1])


def test_the_status_of_a_study_whose_first_trials_have_begun_does_not_say_to_train_it(run, tiny):
    assert "train it: " in " ".join(run("study", "status", tiny).stderr.split())
    folder = Store("results").files.checkpoint_dir(load_study(tiny).trials[0].id)
    folder.mkdir(parents=True)
    (folder / "state.pt").touch()
    told = run("study", "status", tiny)
    assert told.stdout.splitlines()[1] == "0 of 8 trials done · 8 left, 1 of them begun"
    assert told.stderr == ""


def test_the_progress_of_a_trial_is_reported_with_its_age(run, tiny, golden):
    store = make_partial_store(tiny)
    left = json.loads(run("study", "plan", tiny, "--json").stdout)["trials"][-1]["trial"]["id"]
    folder = store.files.checkpoint_dir(left)
    folder.mkdir(parents=True)
    (folder / "state.pt").touch()
    trial_files.write_note(folder, 2, {"loss": 0.5, "accuracy": 0.25, "length": 9.0, "max_length": 8.0})
    before = time.time() - 36_000
    os.utime(folder / "reached.json", (before, before))
    *_, far, stopped, failed, _, _, _ = run("study", "status", "tiny").stdout.splitlines()
    assert stopped == "  1 trial begun, but not in training now"
    assert far == "  conv  reverse  seed 1  epoch 2/2  length 9  accuracy 0.250  10 h ago"
    golden(failed)
    (only,) = json.loads(run("study", "status", "tiny", "--json").stdout)["progress"].items()
    assert (only[0], only[1]["epoch"], only[1]["metrics"]["accuracy"]) == (left, 2, 0.25)


def test_a_trial_in_training_is_not_called_abandoned_until_its_process_is_silent_for_hours(run, tiny):
    store, trial = make_partial_store(tiny), load_study(tiny).trials[-1].id
    store.files.checkpoint_dir(trial).mkdir(parents=True)
    (store.files.checkpoint_dir(trial) / "state.pt").touch()
    leases = store.leases("run")
    lease = leases.claim(trial, 0)
    told = "  1 trial begun, but not in training now"
    assert told not in run("study", "status", tiny).stdout.splitlines()
    leases.let_go(lease)
    (path,) = (store.root / "leases").glob(f"{trial}-*")
    os.utime(path, (0, 0))
    assert told in run("study", "status", tiny).stdout.splitlines()
    lease.release()
    assert told in run("study", "status", tiny).stdout.splitlines()


def test_a_damaged_file_is_named_on_standard_error_and_its_trial_is_left(process, tiny):
    store = make_partial_store(tiny)
    damaged = sorted(store.root.glob("trials/**/*.parquet"))[0]
    damaged.write_bytes(damaged.read_bytes()[:-20])
    result = process("study", "status", "tiny")
    assert result.returncode == 0
    assert result.stderr.startswith(f"{damaged.relative_to(store.root)} is quarantined: ")
    assert " 2 left" in result.stdout


def test_results_on_the_command_line_name_the_store(run, tiny):
    make_partial_store(tiny, "elsewhere")
    here = run("study", "status", tiny).stdout.splitlines()[1]
    there = run("study", "status", tiny, "--results", "elsewhere").stdout.splitlines()[1]
    assert (here, there) == ("0 of 8 trials done · 8 left", "6 of 8 trials done · 1 failed · 1 left")


def test_the_list_has_shipped_studies_and_those_that_ran(run, tiny, monkeypatch, golden):
    make_partial_store(tiny)
    readings, read = [], Store.trials
    monkeypatch.setattr(Store, "trials", lambda *given, **keys: readings.append(keys) or read(*given, **keys))
    lines = run("study", "list").stdout.splitlines()
    golden(lines[:4])
    (first,) = [line for line in lines if line.startswith("  algorithmic ")]
    assert "  0/144 done   Active memory against" in first
    assert len(readings) < 5  # not once for each study
    page = json.loads(run("study", "list", "--json").stdout)["studies"]
    assert list(page) == [line.split()[0] for line in lines if line.startswith("  ")]
    assert page["tiny"]["status"]["left"] == 1


def test_an_own_study_with_the_name_of_a_shipped_one_is_listed_among_one_s_own(run, tiny):
    text = Path(tiny).read_text(encoding="utf-8").replace('name = "tiny"', 'name = "quickstart"')
    Path("mine.toml").write_text(text, encoding="utf-8")
    assert run("study", "run", "mine.toml", "--local", "--max-trials", "1").exit_code == 0
    own, others = run("study", "list").stdout.split("\n\n")
    assert own.splitlines()[0].startswith("your studies, in ")
    assert own.splitlines()[1].startswith("  quickstart   1/8 done")
    assert "  quickstart " not in others
    page = json.loads(run("study", "list", "--json").stdout)["studies"]
    assert next(iter(page)) == "quickstart"


@pytest.mark.parametrize("folder", ["trials/tiny", "metrics", "leases", "checkpoints"])
@pytest.mark.parametrize(
    ("command", "what"),
    [
        (("study", "forget", "tiny", "--yes"), "nothing is removed"),
        (("study", "run", "tiny.toml", "--local"), "results cannot be stored here"),
    ],
    ids=["forget", "run"],
)
def test_commands_that_write_name_the_folder_of_another_user_and_the_next_step(
    run, tiny, monkeypatch, command, what, folder
):
    store = make_partial_store(tiny)
    closed, access = store.root / folder, os.access
    closed.mkdir(exist_ok=True)
    before = sorted(store.root.rglob("*"))
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != closed and access(path, mode))
    refused = run(*command)
    assert refused.exit_code == 2
    assert (
        f"results: {what}, because {closed} takes no new file (Permission denied). Its owner, "
        in refused.stderr
    )
    assert "can grant it (chmod g+rwx)" in refused.stderr
    assert sorted(store.root.rglob("*")) == before


def test_a_study_whose_plug_in_is_not_loaded_names_it_everywhere_and_still_has_its_file(run, tiny):
    store = make_partial_store(tiny)
    trial = load_study(tiny).trials[-1]
    store_outcome(trial, store, version="0.1.0 with look.py 0123abcd")
    text = Path(tiny).read_text().replace('"conv(k=3)"', '"looking"')
    store.records.save("tiny", {"text": text, "overrides": []})
    hint = "--plugin look.py"
    (own,) = [line for line in run("study", "list").stdout.splitlines() if line.startswith("  tiny ")]
    assert "   unreadable   " in own
    assert hint in own
    Path("paper.toml").write_text('[paper]\nstudies = ["tiny"]\n')
    told = run("paper", "build", "paper.toml").stderr
    assert "[paper] studies: tiny: " in told
    assert hint in told
    assert "; [factors] mixer: unknown block 'looking'" in told
    assert run("study", "show", "tiny").exit_code == 2
    assert run("study", "show", "tiny", "--toml").stdout == text


def test_trials_whose_plug_in_is_not_loaded_are_named_and_are_not_stale(run, tiny):
    store = make_partial_store(tiny)
    trial, rows = load_study(tiny).trials[-1], {each["trial"]: each for each in store.trials().to_dicts()}
    settings = json.loads(rows[load_study(tiny).trials[0].id]["settings"])
    settings["model"]["recipe"] = "1 * (looking >> ff(8))"
    foreign = json.dumps(settings | {"code": {"block looking": "look.py 0123abcd"}}, separators=(",", ":"))
    store_outcome(trial, store, as_id="f" * len(trial.id), stored=foreign)
    told = (
        "1 stored trial of tiny needs look.py, which is not loaded; to see whether the study has them, load"
    )
    for command in ("status", "plan"):
        result = run("study", command, tiny)
        assert told in result.stderr
        assert "change of activemem" not in result.stderr
        assert "other versions" not in result.stderr
    result = run("study", "forget", tiny, "--stale")
    assert "none of these trials" in result.stdout
    assert told in result.stderr
    assert len(store.trials()) == 8


@pytest.mark.heavy
def test_the_list_continues_after_an_unreadable_study_and_reports_it(run, tiny):
    text = Path(tiny).read_text().replace("batch_size", "batches")
    make_partial_store(tiny).records.save("tiny", {"text": text, "overrides": []})
    lines = run("study", "list").stdout.splitlines()
    (own,) = [line for line in lines if line.startswith("  tiny ")]
    assert "   unreadable   [train] unknown key 'batches'; nearest: batch_size" in own
    assert len(lines) > 30
    page = json.loads(run("study", "list", "--json").stdout)["studies"]
    assert "[train] unknown key 'batches'; nearest: batch_" in page["tiny"]["error"]


def test_show_lists_every_setting_with_where_it_comes_from(run):
    short = run("study", "show", "memory-degradation-bigrams")
    assert (short.exit_code, short.stderr) == (0, "")
    assert "  train.batch_size              32\n  train.epochs                  35\n" in short.stdout
    told = run("study", "show", "memory-degradation-bigrams", "--sources", "--set", "train.epochs=3")
    assert "  train.optimizer.lr            0.001\n      paper: section 3.2\n" in told.stdout
    assert "  train.epochs                  3\n      ours: " in told.stdout
    data = json.loads(run("study", "show", "memory-degradation-bigrams", "--json").stdout)
    origins = ["default" if each["is_default"] else each["source"]["origin"] for each in data["settings"]]
    paper, ours, defaults = (origins.count(name) for name in ("paper", "ours", "default"))
    counts = [int(number) for number in re.findall(r"\d+", short.stdout.splitlines()[-1])]
    assert counts == [len(origins), paper, 0, ours, defaults]
    assert data["settings"][0] == {
        "name": "model.d_model",
        "value": 50,
        "source": {"origin": "paper", "detail": "section 3.2"},
        "is_default": False,
    }


def test_show_knows_a_study_that_ran_by_its_name(run, tiny):
    make_partial_store(tiny)
    of_file = run("study", "show", tiny).stdout
    Path(tiny).unlink()
    assert run("study", "show", "tiny").stdout == of_file


def test_show_of_a_study_without_sources_says_so(run, tiny):
    told = run("study", "show", tiny, "--sources").stdout
    assert "sources unknown" in told


@pytest.mark.parametrize("loss", ["deleted", "damaged"])
def test_lost_trials_are_not_called_untrained(run, tiny, loss):
    store_outcome(load_study(tiny).trials[0], Store("results"))
    for file in Path("results/trials").rglob("*.parquet"):
        file.unlink() if loss == "deleted" else file.write_bytes(file.read_bytes()[:-9])
    for words in (("study", "status"), ("table", "render")) * 2:
        told = run(*words, tiny).stderr
        assert "are lost or damaged: activemem store check" in told
        assert "train it" not in told


def test_a_dry_run_of_forget_lists_the_trials(run, tiny):
    make_partial_store(tiny)
    dry = run("study", "forget", tiny, "--only", "task=not", "--dry-run").stdout.splitlines()
    assert dry[0] == "tiny: 4 trials would be removed"
    listed = [line.split(maxsplit=1) for line in dry if line.startswith("  done ")]
    levels, epochs, _ = next(each[1] for each in listed if "mixer=sa" in each[1]).split(" · ")
    assert (levels.split("seed=")[0], epochs) == ("mixer=sa(heads=1, head_width=4), task=not, ", "2 epochs")
    assert len(listed) == 4
    gone = run("study", "forget", tiny, "--only", "task=not").stdout
    assert "mixer=" not in gone


def test_a_study_whose_trials_belong_to_another_is_listed(run, tiny):
    store = make_partial_store(tiny)
    text = Path(tiny).read_text(encoding="utf-8").replace('name = "tiny"', 'name = "same"')
    store.records.save("same", {"text": text, "overrides": [], "path": None})
    listed = run("study", "list").stdout.splitlines()
    assert [line.split()[0] for line in listed if line.startswith("  ")][:2] == ["same", "tiny"]
