"""Studies that really run, in this process and in others."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from activemem import open_study
from activemem.storage import Store

from ...forked_commands import start_command
from ...study_texts import SEARCH_OF_RUNGS, study_text
from ..store_factories import make_partial_store

LONG = ("--set", "train.epochs=100000", "--set", "factors.seed=[0]")
NAN = ("--set", "train.optimizer={name='sgd', lr=1e30}", "--set", "train.epochs=3")


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def without_times(text):
    """Replace times in a text by a placeholder."""
    return re.sub(r"in \d+(\.\d)? (s|min)\b", "in ?", text)


def test_a_run_prints_a_line_for_each_trial_and_a_summary_at_the_end(run, tiny, golden):
    result = run("study", "run", tiny, "--local", "--max-trials", "2")
    assert (result.exit_code, result.stdout) == (0, "")
    first, second, *rest = without_times(result.stderr).splitlines()
    assert re.match(r"1/8   done    .*not      .*max_length ", first)
    assert re.match(r"2/8   done    .*reverse  .*max_length ", second)
    golden(rest)


def test_results_in_rays_copy_of_a_working_directory_are_refused(run, tiny, tmp_path, monkeypatch):
    text, folder = Path(tiny).read_text(encoding="utf-8"), tmp_path / "working_dir_files/_ray_pkg_0123abcd"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    Path("mine.toml").write_text(text, encoding="utf-8")
    for given in ([], ["--results", "there"], ["--results", str(folder / "there")]):
        refused = run("study", "run", "mine.toml", "--local", "--max-trials", "1", *given)
        assert refused.exit_code == 2
        assert "expected an absolute path that stays, such as --results /shared" in refused.stderr
        assert [each.name for each in folder.iterdir()] == ["mine.toml"]
    kept = run("study", "run", "mine.toml", "--local", "--max-trials", "1", "--results", f"{tmp_path}/kept")
    assert kept.exit_code == 0
    assert len(Store(tmp_path / "kept").trials()) == 1


def test_the_same_command_again_runs_only_what_is_missing(run, tiny, golden):
    begun = run("study", "run", tiny, "--local", "--max-trials", "6", "--results", "a b")
    assert begun.stderr.startswith(f"new store: {Path('a b').resolve()}\n")
    result = run("study", "run", tiny, "--local", "--results", "a b")
    assert result.exit_code == 0
    told, _, table = without_times(result.stderr).partition("\n\n")
    assert table.startswith("Longest length with") and "–" not in table.partition("mixer")[2]
    *lines, summary, see = told.splitlines()
    assert [line[:11] for line in lines] == ["7/8   done ", "8/8   done "]
    assert summary == "tiny: 8 of 8 trials done · 0 left · 2 trials ended in ?"
    golden(see)
    again = run("study", "run", tiny, "--local", "--results", "a b")
    assert without_times(again.stderr).splitlines()[0].endswith("0 left · 0 trials ended in ?")


def test_a_part_of_a_study_runs_alone_and_the_study_stays_whole(run, tiny):
    wrong = run("study", "run", tiny, "--local", "--only", "task=nod", "--only", "mixer=conv")
    assert (wrong.exit_code, wrong.stderr.splitlines()[2:]) == (
        2,
        ["  --only | task=nod", "                ^^^  unknown level 'nod' of task; nearest: not"],
    )
    assert not Path("results").exists()
    result = run("study", "run", tiny, "--local", "--only", "task=not", "--only", "mixer=conv")
    *lines, summary, more, _ = without_times(result.stderr).splitlines()
    assert [line.split()[2:7] for line in lines] == [
        ["conv", "not", "seed", seed, "max_length"] for seed in "01"
    ]
    assert f"{summary} {more.strip()}" == (
        "tiny: 2 of 8 trials done · 6 left · 0 of the 2 trials of this part left · 2 trials ended in ?"
    )
    assert run("study", "status", "tiny").stdout.splitlines()[1] == "2 of 8 trials done · 6 left"


def test_a_study_with_failed_trials_ends_with_status_one_and_says_why(run, tiny, golden):
    result = run("study", "run", tiny, "--local", "--max-trials", "2", "--json", *NAN)
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert (told["counts"], told["left"]) == ({"failed": 2}, 6)
    assert told["failure_reasons"] == [["not a number at epoch 1", 2]]
    assert told["run"] == {"stopped": False, "reason": None, "given_up": [], "resume": None}
    golden(without_times(result.stderr).splitlines())


def test_failed_trials_are_tried_again_by_asking(run, tiny):
    run("study", "run", tiny, "--local", "--max-trials", "1", *NAN)
    left_alone = run("study", "run", tiny, "--local", "--max-trials", "1", *NAN)
    assert left_alone.stderr.startswith("2/8   failed ")
    again = run("study", "run", tiny, "--local", "--max-trials", "1", "--retry-failed", *NAN)
    assert again.stderr.startswith("2/8   failed ")
    assert "2 failed · 6 left · 1 trial ended" in again.stderr


def test_a_search_ends_with_its_best_points(run, tiny):
    text = Path(tiny).read_text(encoding="utf-8").partition("[factors]")[0]
    text = text.replace("{mixer}", "conv(k={k})").replace("{task}", "not").replace('"tiny"', '"hunt"')
    text += (
        '[factors]\nseed = [0, 1]\n[search]\ntrials = 2\nmetric = "loss"\ndirection = "min"\n'
        '[search.space]\nk = "integer(2, 3)"\n'
    )
    Path("hunt.toml").write_text(text, encoding="utf-8")
    result = run("study", "run", "hunt.toml", "--local")
    assert result.exit_code == 0
    told = without_times(result.stderr).splitlines()
    lines, (summary, best, second), note = told[:4], told[4:7], told[7:]
    assert [line[:12] for line in lines] == [f"{place}/4   done  " for place in range(1, 5)]
    assert summary == "hunt: 4 of 4 trials done · 0 left · 4 trials ended in ?"
    found = [re.fullmatch(r"  loss (\d\.\d+)   k=\d", line) for line in (best, second)]
    assert float(found[0][1]) <= float(found[1][1])
    assert run("study", "status", "hunt").stdout.splitlines()[2:] == [best, second, *note]
    assert note[0].startswith("  note   loss is measured ")
    more = run("study", "run", "hunt.toml", "--local", "--set", "search.trials=3")
    spent = "0 left · its space of 2 points "
    assert (more.exit_code, spent in more.stderr) == (0, True)
    assert spent in run("study", "status", "hunt").stdout


def test_the_streams_of_a_process_are_kept_apart(process, tiny):
    ran = process("study", "run", tiny, "--local", "--max-trials", "1")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert [line[:12] for line in ran.stderr.splitlines()] == ["1/8   done  ", "tiny: 1 of 8", "see: activem"]
    table = process("table", "render", "--format", "csv")
    assert (table.returncode, table.stderr) == (0, "")
    assert table.stdout.startswith("row,column,value,")
    wrong = process("study", "run", "nothing", "--local")
    assert (wrong.returncode, wrong.stdout, wrong.stderr[:16]) == (2, "", "nothing: 1 fault")


@pytest.mark.heavy
def test_a_stream_that_cannot_carry_a_sign_shows_another(run_python, tiny):
    make_partial_store(tiny)
    words = ("-m", "activemem", "study", "status", "tiny")
    result = run_python(*words, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (result.returncode, result.stderr) == (0, "")
    assert "6 of 8 trials done | 1 failed | 1 left" in result.stdout
    shown = run_python("-m", "activemem", "recipe", "show", "4 * (sa + conv(k=3))", PYTHONIOENCODING="ascii")
    assert "4 x " in shown.stdout
    assert "|- sa" in shown.stdout
    compared = run_python("-m", "activemem", "recipe", "compare", "2 * sa", "sa", PYTHONIOENCODING="ascii")
    assert " -49 %" in compared.stdout
    assert "?" not in shown.stdout + compared.stdout


def begin(*arguments):
    """Start a study in its own process, and return once it has trained for a while."""
    running = start_command("study", "run", "tiny.toml", *arguments)
    deadline = time.monotonic() + 600
    while not any(Path("results").glob("checkpoints/*/state.pt")):
        assert running.poll() is None and time.monotonic() < deadline, running.communicate()
        time.sleep(0.05)
    return running


def epochs_of(trial):
    """Return the number of epochs in a trial's checkpoint, which may be replaced at any time."""
    path = next(path for path in map(trial.__truediv__, 2 * ("state.pt", "previous.pt")) if path.exists())
    try:
        return torch.load(path, weights_only=True)["run"]["epoch"]
    except FileNotFoundError:
        return epochs_of(trial)


def test_ctrl_c_ends_a_run_cleanly_and_prints_the_command_that_continues_it(process, tiny, golden):
    running = begin("--local", *LONG)
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=600)
    assert (running.returncode, stdout) == (130, "")
    golden(without_times(stderr).splitlines())
    (trial,) = Path("results/checkpoints").iterdir()
    before = epochs_of(trial)
    running = begin("--local", *LONG)
    while epochs_of(trial) == before:
        time.sleep(0.05)
    running.terminate()
    running.communicate(timeout=600)
    assert epochs_of(trial) > before > 0
    done = process("study", "run", tiny, "--local")
    assert (done.returncode, "8 of 8 trials done · 0 left" in done.stderr) == (0, True)


@pytest.mark.heavy
def test_the_best_epoch_is_the_same_after_a_kill(process, run):
    table = {"lengths": [3, 6], "curriculum": None, "keep": "best", "epochs": 600, "steps_per_epoch": 2}
    task = {"name": "reverse", "test_lengths": [9], "test_examples": 8, "dev_examples": 10}
    text = study_text(
        study={"name": "best", "title": "The best epoch"},
        model={"recipe": "conv(k=3) >> ff(8)", "d_model": 8},
        task=task,
        train={**table, "optimizer": {"name": "adam", "lr": 0.2}},
        factors={"seed": [0]},
    )
    Path("tiny.toml").write_text(text, encoding="utf-8")
    running = begin("--local")
    (trial,) = Path("results/checkpoints").iterdir()
    while epochs_of(trial) < 3:
        time.sleep(0.01)
    running.kill()
    running.communicate(timeout=600)
    assert 3 <= epochs_of(trial) < 600
    assert process("study", "run", "tiny.toml", "--local").returncode == 0
    assert run("study", "run", "tiny.toml", "--local", "--results", "whole").exit_code == 0
    rows = [open_study("best", place).trials.row(0, named=True) for place in ("results", "whole")]
    assert 1 <= rows[0]["best_epoch"] <= 600
    names = ("best_epoch", "dev_loss", "test_loss", "test_accuracy", "loss")
    assert [rows[0][name] for name in names] == [rows[1][name] for name in names]


def test_an_unreachable_cluster_is_reported_before_anything_starts(run, tiny):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = (
            f"127.0.0.1:{bound.getsockname()[1]}"  # bound and not listening: nobody else can answer there
        )
        result = run("study", "run", tiny, "--address", address)
    assert (result.exit_code, result.stdout) == (2, "")
    assert re.fullmatch(rf"address: .* at {address}, got: .*refused\n", result.stderr)


def test_a_folder_that_cannot_be_made_is_reported_before_anything_starts(run, tiny):
    result = run("study", "run", tiny, "--results", f"{tiny}/results")
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert f"because {Path(tiny).absolute()} is a file" in line
    assert line.endswith("Choose another folder: --results DIR")


def test_a_complete_study_in_a_store_that_takes_no_file_is_shown_as_complete(run, tiny):
    assert run("study", "run", tiny, "--local").exit_code == 0
    Path("results/unfinished").rmdir()
    Path("results/unfinished").touch()  # even a superuser cannot write into a file
    done = run("study", "run", tiny, "--local")
    assert done.exit_code == 0
    assert "results takes no new file, and nothing is left to train" in done.stderr
    assert "tiny: 8 of 8 trials done" in done.stderr
    more = run("study", "run", tiny, "--local", "--set", "train.epochs=3")
    assert (more.exit_code, "results cannot be stored here" in more.stderr) == (2, True)


def test_a_rejected_run_leaves_no_files(run, tiny, monkeypatch, golden):
    monkeypatch.setenv("ACTIVEMEM_GPUS", "2")
    refused = run("study", "run", tiny, "--local")
    golden(refused.stderr)
    assert refused.exit_code == 2
    assert not Path("results").exists()


@pytest.mark.heavy
def test_ray_runs_a_study_without_a_word_of_its_own(process, tiny, golden):
    result = process(
        "study", "run", tiny, "--ray", "--set", "factors.task=['not']", "--set", "factors.seed=[0]"
    )
    assert (result.returncode, result.stdout) == (0, "")
    first, *lines = without_times(result.stderr).splitlines()
    assert first.startswith("starting Ray …")
    assert "--local" in first
    assert [line[:13] for line in lines[:2]] == ["1/2   done   ", "2/2   done   "]
    assert {line[14:28] for line in lines[:2]} == {"sa(heads=1, he", "conv(k=3)     "}  # as workers end them
    golden(lines[2:4])


def test_a_part_of_a_study_is_forgotten(run, tiny, golden):
    run("study", "run", tiny, "--local", "--max-trials", "5")
    part = ("study", "forget", "tiny", "--only", "seed=0")
    golden(run(*part, "--dry-run").stdout.splitlines()[0])
    assert run(*part).stdout.splitlines()[0] == "tiny: 4 trials removed"
    golden(run(*part).stdout)


def test_a_study_that_runs_under_a_new_name_takes_the_trials_of_the_old_one(run, tiny):
    run("study", "run", tiny, "--local")
    text = Path(tiny).read_text(encoding="utf-8").replace('name = "tiny"', 'name = "small"')
    Path("small.toml").write_text(text, encoding="utf-8")
    Path(tiny).unlink()
    assert "0 trials ended" in run("study", "run", "small.toml", "--local").stderr
    forgotten = run("study", "forget", "tiny", "--yes").stdout
    assert "8 trials" in forgotten
    assert "small" in forgotten
    assert set(Store("results").trials()["study"]) == {"small"}
    assert run("study", "status", "small").stdout.splitlines()[1] == "8 of 8 trials done · 0 left"


FORGET_TWICE = """
from activemem.cli.app import main
from activemem.storage import Store
for _ in range(2):
    try:
        main()
    except SystemExit as end:
        print(f"{len(Store('results').trials())} trials, exit status {end.code or 0}")
"""


def test_a_terminal_is_asked_before_a_longer_training_is_removed(tiny):
    store = make_partial_store(tiny)
    ours, theirs = os.openpty()
    os.write(ours, b"n\ny\n")
    command = [sys.executable, "-c", FORGET_TWICE, "study", "forget", "tiny"]
    done = subprocess.run(command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, check=False)
    told = re.findall(r"\d trials, exit status \d", done.stdout.decode())
    assert told == ["7 trials, exit status 1", "0 trials, exit status 0"]
    assert store.trials().is_empty()
    assert "Remove 7 trials of tiny, which took 7.0 min?" in os.read(ours, 4096).decode()
    os.close(ours)
    os.close(theirs)


def test_trials_of_another_version_of_a_study_are_forgotten_only_with_all(run, tiny, golden):
    few = ("--local", "--only", "seed=0")
    run("study", "run", tiny, *few)
    run("study", "run", tiny, *few, "--set", "train.epochs=1")
    part = ("study", "forget", tiny, "--only", "seed=0")
    assert run(*part).stdout.splitlines()[0] == "tiny: 4 trials removed"
    golden(run(*part).stdout)
    assert run("study", "forget", tiny).stdout.splitlines()[0] == "tiny: 4 trials removed"


def test_trials_that_another_study_reuses_stay_when_the_first_study_is_forgotten(run, tiny, golden):
    run("study", "run", tiny, "--local", "--only", "seed=0")
    Path("copy.toml").write_text(Path(tiny).read_text(encoding="utf-8").replace('"tiny"', '"copy"', 1))
    assert "4 of 8 trials done" in run("study", "run", "copy.toml", "--local", "--only", "seed=0").stderr
    golden(run("study", "forget", tiny, "--dry-run").stdout)
    golden(run("study", "forget", tiny).stdout)
    assert run("study", "status", "copy.toml").stdout.splitlines()[1] == "4 of 8 trials done · 4 left"
    shared = run("study", "forget", "copy.toml", "--shared")
    assert shared.stdout.splitlines()[0] == "copy: 4 trials removed"


def test_a_run_of_a_part_says_what_is_left_of_it(run, tiny):
    told = run("study", "run", tiny, "--local", "--only", "seed=0", "--max-trials", "1").stderr
    assert "1 of 8 trials done · 7 left · 3 of the 4 trials of this part left" in " ".join(told.split())


def test_trials_of_other_versions_of_a_study_are_counted_and_forgotten_alone(run, tiny, golden):
    few = ("--local", "--only", "seed=0")
    run("study", "run", tiny, *few, "--set", "train.epochs=1")
    run("study", "run", tiny, *few)
    golden(run("study", "status", "tiny").stderr)
    assert json.loads(run("study", "status", "tiny", "--json").stdout)["other_versions"]["trials"] == 4
    assert run("study", "plan", tiny).stderr.endswith("activemem study status tiny.toml --versions\n")
    assert not run("study", "plan", tiny, "--set", "train.epochs=3").stderr.count("--versions")
    golden(run("study", "status", tiny, "--versions").stdout)
    part = ("study", "forget", tiny, "--stale")
    assert run(*part, "--dry-run").stdout.splitlines()[0] == "tiny: 4 trials would be removed"
    assert run(*part, "--only", "seed=0").exit_code == 2
    assert run(*part).stdout.splitlines()[0] == "tiny: 4 trials removed"
    status = run("study", "status", tiny)
    assert (status.stdout.splitlines()[1], status.stderr) == ("4 of 8 trials done · 4 left", "")
    assert run("study", "status", tiny, "--versions").stdout == "the store has no other version of tiny\n"


def test_a_run_with_an_override_does_not_make_the_trials_without_it_stale(run, tiny):
    few = ("--local", "--only", "seed=0")
    run("study", "run", tiny, *few)
    run("study", "run", tiny, *few, "--set", "train.epochs=1")
    forgotten = run("study", "forget", "tiny", "--stale", "--dry-run").stdout
    assert forgotten.splitlines()[0] == "tiny: the store has none of these trials"
    told = " ".join(run("study", "status", "tiny").stderr.split())
    assert "4 stored trials of other versions of tiny are not counted (train.epochs = 2, now 1)" in told


def test_changed_levels_are_named_by_their_factor(run, tiny):
    few, file = ("--local", "--only", "seed=0"), Path(tiny)
    run("study", "run", tiny, *few)
    file.write_text(file.read_text(encoding="utf-8").replace("conv(k=3)", "conv(k=5)"), encoding="utf-8")
    changed = "(mixer = conv(k=3), now sa(heads=1, head_width=4) or conv(k=5))"
    for _ in range(2):  # before and after another run
        told = " ".join(run("study", "status", tiny).stderr.split())
        assert f"2 stored trials of other versions of tiny are not counted {changed}" in told
        run("study", "run", tiny, *few)


def test_the_stale_trials_of_a_search_are_not_known(run, golden):
    Path("rungs.toml").write_text(SEARCH_OF_RUNGS, encoding="utf-8")
    told = run("study", "forget", "rungs.toml", "--stale")
    assert told.exit_code == 2
    golden(told.stderr)


def test_a_run_prints_what_is_odd_about_its_data_once_before_training(run, tmp_path, golden):
    labels = {"train": ("yes", "no"), "dev": ("no", "maybe"), "test": ("yes", "no")}
    for split, (first, second) in labels.items():
        words = " ".join(labels if split == "train" else [split])
        rows = [{"text": "seen in all", "label": first}, {"text": f"only in {words}", "label": second}]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(json.dumps(each) for each in rows))
    files = {split: f"{split}.jsonl" for split in labels}
    text = study_text(
        model={"recipe": "{mixer} >> mean_pool"},
        task={"name": "sequence_classification", "corpus": files, "tokens": "words"},
        train={"curriculum": None, "epochs": 1, "steps_per_epoch": 1, "batch_size": 2},
        factors={"mixer": ["conv(k=3)", "gru"], "seed": [0]},
    )
    (tmp_path / "study.toml").write_text(text)
    result = run("study", "run", str(tmp_path / "study.toml"), "--local")
    assert result.exit_code == 0, result.stderr
    lines = result.stderr.splitlines()
    golden(lines[:5])
    assert [line[:10] for line in lines[5:7]] == ["1/2   done", "2/2   done"]
    assert "warning" not in "".join(lines[4:])


def test_a_plan_says_that_a_study_s_data_have_changed_since_it_ran(run, tmp_path, golden):
    path, files = tmp_path / "study.toml", {split: f"{split}.jsonl" for split in ("train", "dev", "test")}
    path.write_text(
        study_text(
            model={"recipe": "{mixer} >> mean_pool"},
            task={"name": "sequence_classification", "corpus": files, "tokens": "words"},
            train={"curriculum": None, "epochs": 1, "steps_per_epoch": 1, "batch_size": 2},
            factors={"mixer": ["conv(k=3)"], "seed": [0]},
        )
    )
    rows = [json.dumps({"text": f"row {number}", "label": f"{number % 2}"}) for number in range(20)]
    for name in files.values():
        (tmp_path / name).write_text("\n".join(rows))
    assert run("study", "run", str(path), "--local").exit_code == 0
    (tmp_path / files["train"]).write_text("\n".join(rows[:-1]))
    golden(run("study", "plan", str(path)).stderr)


def test_a_plan_and_a_run_say_when_their_name_was_that_of_another_file(run, tiny, golden):
    options = ("--local", "--max-trials", "1")
    assert "the name tiny" not in run("study", "run", tiny, *options).stderr
    changed = Path(tiny).read_text(encoding="utf-8").replace("A study of seconds", "Another study")
    Path("other.toml").write_text(changed, encoding="utf-8")
    assert not run("study", "plan", tiny).stderr
    golden(run("study", "plan", "other.toml").stderr)
    golden(run("study", "run", "other.toml", *options).stderr.splitlines()[0])


def test_trials_of_another_file_with_the_same_name_are_not_stale(run, tiny):
    few = ("--local", "--only", "seed=0")
    run("study", "run", tiny, *few)
    Path("other.toml").write_text(Path(tiny).read_text(encoding="utf-8"), encoding="utf-8")
    changed = Path("other.toml").read_text(encoding="utf-8").replace("epochs = 2", "epochs = 1")
    Path("other.toml").write_text(changed, encoding="utf-8")
    run("study", "run", "other.toml", *few)
    assert "other versions" not in run("study", "status", "other.toml").stderr
    forgotten = run("study", "forget", "other.toml", "--stale").stdout
    assert forgotten.splitlines()[0] == "tiny: the store has none of these trials"
    assert run("study", "status", tiny).stdout.splitlines()[1] == "4 of 8 trials done · 4 left"
    Path(tiny).unlink()
    forgotten = run("study", "forget", "other.toml", "--stale").stdout
    assert forgotten.splitlines()[0] == "tiny: 4 trials removed"


def test_a_run_trains_the_trials_whose_metrics_are_damaged(run, tiny):
    few = ("--local", "--only", "seed=0")
    run("study", "run", tiny, *few)
    for path in Path("results/metrics/tiny").iterdir():
        path.write_bytes(path.read_bytes()[:-100])
    told = run("study", "run", tiny, *few)
    assert told.exit_code == 0
    words = " ".join(told.stderr.split())
    assert "4 of 8 trials done · 4 left" in words
    assert "4 trials ended" in words
