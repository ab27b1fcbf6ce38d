"""`docs/how-to/plug-ins*.md`: their files work from the command line."""

import json
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from activemem.plugins import extra_names

from ..forked_commands import run_command, run_program
from ..study_texts import study_text

FOLDER = Path(__file__).parents[2] / "docs" / "how-to"
PAGES = (
    "plug-ins",
    "plug-ins-tasks",
    "plug-ins-training",
    "plug-ins-loss",
    "plug-ins-results",
    "plug-ins-kinds",
)
PAGE = "".join((FOLDER / f"{name}.md").read_text(encoding="utf-8") for name in PAGES)
FILES = dict(re.findall(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
BLOCK, CENTRED, COMMANDS, RECALL, BOTTLES, MOVING, QUIET, PROBING, ORG, SEARCHING, KINDS, DESIGN, TRACKER = (
    re.findall(r"^```\n(activemem .*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
)

ADAM = {"name": "adam", "lr": 0.01}


@pytest.fixture
def folder(tmp_path):
    """Return a folder with the files of the pages."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def command(folder, line):
    return run_command(*line.split()[1:], cwd=folder)


def test_a_block_in_one_file_is_counted_planned_and_trained(folder):
    show, plan, run = (shlex.split(line)[1:] for line in BLOCK.splitlines())
    shown = run_command(*show, cwd=folder)
    # 16 × 3 weights and a map; nobody has stated any of it
    assert re.search(r"├─ smoothing\(taps=3\) +336 +0.6 .* 2 ← · → 0", shown.stdout), shown.stderr
    planned = run_command(*plan, "--json", cwd=folder)
    models = json.loads(planned.stdout)["models"]
    assert models[0]["parameters"] < models[1]["parameters"]
    small = ("--set", "factors.seed=[0]", "--set", "train.epochs=1", "--set", "train.steps_per_epoch=2")
    trained = run_command(*run, *small, "--local", cwd=folder)
    assert trained.returncode == 0, trained.stderr
    before = {each["trial"]["id"] for each in json.loads(planned.stdout)["trials"]}
    path = folder / "smoothing.py"
    path.write_text(path.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")
    planned = run_command(*plan, "--json", cwd=folder)
    after = {each["trial"]["id"] for each in json.loads(planned.stdout)["trials"]}
    assert len(before) == 2 * len(before & after)  # those of `sa` stay
    (shown,) = re.findall(r"^```\n(  stale  .*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    told = run_command(*plan, *small, cwd=folder).stdout
    assert shown in told


def test_a_block_that_sees_both_sides_sees_only_the_past_in_a_causal_model(folder):
    verify, show = (shlex.split(line)[1:] for line in CENTRED.splitlines())
    verified = run_command(*verify, "--json", cwd=folder)
    assert verified.returncode == 0, verified.stderr
    checks = {each["name"]: each["passed"] for each in json.loads(verified.stdout)["checks"]}
    assert (checks["no leak"], checks["reach"]) == (True, True)
    for options, reach in (((), "3 ← · → 3"), (("--causal",), "3 ← · → 0")):
        shown = run_command(*show, *options, cwd=folder)
        assert re.search(rf"─ centred\(side=3\) .* {reach} ", shown.stdout), shown.stderr


def test_a_block_that_cannot_be_is_a_fault_of_its_file(folder):
    path = folder / "smoothing.py"
    text = path.read_text(encoding="utf-8")
    for wrong, fault in (
        (text.replace('"smoothing"', '"conv"'), "'conv' is already"),
        (
            text.replace('"smoothing"', '"two words"'),
            "got 'two words'",
        ),
        (text.replace("(Block)", "(torch.nn.Module)"), "expected a class derived from Block"),
    ):
        path.write_text(wrong, encoding="utf-8")
        done = run_command("recipe", "check", "sa", "--plugin", "smoothing.py", cwd=folder)
        assert (done.returncode, fault in " ".join(done.stderr.split())) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("right", "wrong", "fault"),
    [
        (
            "bias=False",
            "bias=no",
            "smoothing.py:{line}: block 'smoothing': NameError: name 'no' is not defined",
        ),
        ("self.output(", "self.outputs(", "smoothing.py:{line}: block 'smoothing': AttributeError"),
        (
            ".mT)\n",
            ".mT)[:, 1:]\n",
            "got (3, 19, 16)",
        ),
    ],
)
def test_a_block_whose_code_fails_is_named_with_its_line(folder, right, wrong, fault):
    path = folder / "smoothing.py"
    before, found, after = path.read_text(encoding="utf-8").partition(right)
    path.write_text(before + (wrong if found else "") + after, encoding="utf-8")
    line = before.count("\n") + 1
    show = shlex.split(BLOCK.splitlines()[0])[1:]
    done = run_command(*show, cwd=folder)
    assert fault.format(line=line) in " ".join(done.stderr.split()), done.stderr
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


@pytest.mark.slow  # on Ray
def test_the_commands_of_the_page_train_and_show_its_metric_on_a_cluster(folder):
    run, table, listed = (command(folder, line) for line in COMMANDS.splitlines())
    assert (run.returncode, table.returncode, listed.returncode) == (0, 0, 0), run.stderr
    assert "2 of 2 trials done" in run.stderr
    assert "Probability of what is predicted: one seed." in table.stdout
    assert re.search(r"conv\(k=3\) +\*?0\.\d\d\d", table.stdout)
    assert "confidence ↑" in listed.stdout
    assert "Probability of what is predicted · confidence.py" in " ".join(listed.stdout.split())


def test_an_optimiser_and_a_schedule_are_named_in_a_study(folder):
    assert command(folder, MOVING).returncode == 0
    wrong = command(folder, f"{MOVING.strip()} --set train.schedule.every=0")
    assert wrong.returncode == 2
    assert "schedule.every: " in " ".join(wrong.stderr.split())


def test_a_corpus_is_checked_listed_and_part_of_a_trial_id(folder):
    (folder / "texts" / "bottles").mkdir(parents=True)
    song = "".join(f"{number} green bottles hanging on the wall\n" for number in range(1000, 0, -1))
    (folder / "texts" / "bottles" / "bottles.txt").write_text(song, encoding="utf-8")
    check, listed = (command(folder, line) for line in BOTTLES.splitlines())
    assert check.stdout + check.stderr == "bottles: as published\n"
    assert "none · bottles.py · traditional" in listed.stdout
    text = (folder / "sure.toml").read_text(encoding="utf-8").partition("[factors]")[0]
    text = text.replace('"reverse"', '"language_model"\ncorpus = "bottles"\ncontext = 8')
    text = text.replace("{mixer}", "conv(k=3)").replace("curriculum = { start = 5 }\n", "")
    (folder / "song.toml").write_text(text, encoding="utf-8")
    (folder / "activemem.toml").write_text('data = "texts"\nplugins = ["bottles.py"]\n', encoding="utf-8")
    run = command(folder, "activemem study run song.toml --local")
    assert "1 of 1 trial done" in run.stderr
    (folder / "bottles.py").write_text(FILES["bottles.py"] + "# edited\n", encoding="utf-8")
    plan = command(folder, "activemem study plan song.toml")
    assert "(bottles.py" in " ".join(plan.stdout.split())


def test_norms_and_positions_are_planned_and_trained(folder):
    plan, run = (
        command(folder, f"activemem study {verb} parts.toml --plugin parts.py")
        for verb in ("plan", "run --local")
    )
    assert (plan.returncode, run.returncode) == (0, 0), run.stderr
    assert "4 of 4 trials done" in run.stderr


def test_positions_for_shorter_sequences_are_reported_before_anything_runs(folder):
    plan = command(
        folder,
        "activemem study plan recall.toml --plugin key_recall.py --plugin parts.py "
        "--set model.position=learnt --set task.length=100",
    )
    assert re.search(r"learnt .*\b64\b.*\b100\b", " ".join(plan.stderr.split()))


@pytest.mark.heavy
def test_a_search_is_sampled_and_given_up_by_a_plug_in(folder):
    run, samplers, schedulers = (command(folder, line) for line in SEARCHING.splitlines())
    assert (run.returncode, samplers.returncode, schedulers.returncode) == (0, 0, 0), run.stderr
    assert re.search(r"^  greedy +Bergstra et al. 2011 · searching.py$", samplers.stdout, re.MULTILINE)
    assert re.search(r"^  patient +here · searching.py$", schedulers.stdout, re.MULTILINE)
    assert re.search("4 of 4 trials done|pruned by patient", run.stderr)


def test_a_tracker_gets_each_epoch_once(folder):
    (folder / "activemem.toml").write_text(
        'plugins = ["jsonl.py"]\ntrack = { jsonl = "runs" }\n', encoding="utf-8"
    )
    run = command(folder, KINDS.splitlines()[0])
    assert run.returncode == 0, run.stderr
    files = sorted(folder.glob("runs/ends/*.jsonl"))
    lines = [[json.loads(line) for line in file.read_text().splitlines()] for file in files]
    assert [[each.get("epoch") for each in trial] for trial in lines] == [[1, 2, None]] * 4
    assert {trial[-1]["status"] for trial in lines} == {"done"}
    assert (folder / "runs/ends/ends.csv").exists()
    again = command(folder, TRACKER.splitlines()[1])
    assert "0 trials" in again.stdout, again.stdout + again.stderr
    unknown = command(folder, "activemem study export ends --to jsnl --out runs")
    assert "unknown tracker 'jsnl'; nearest: jsonl" in unknown.stderr


@pytest.mark.heavy
def test_a_probe_measures_trained_models_once(folder):
    run, probe, query = (run_command(*shlex.split(line)[1:], cwd=folder) for line in PROBING.splitlines())
    assert (run.returncode, probe.returncode, query.returncode) == (0, 0, 0), run.stderr + probe.stderr
    assert re.search(r"certainty\[3\] +4$", query.stdout, re.MULTILINE), query.stdout + query.stderr
    assert "parts: 4 of 4 trials probed" in probe.stderr
    again = command(folder, PROBING.splitlines()[1])
    assert "4 stored before" in again.stderr
    (folder / "certainty.py").write_text(FILES["certainty.py"] + "# edited\n", encoding="utf-8")
    assert "4 of 4 trials probed" in command(folder, PROBING.splitlines()[1]).stderr


def test_the_page_lists_each_plug_in_that_comes_with_activemem():
    rows = re.findall(r"^\| (`.*?`) \| ", PAGE.partition("## Plug-ins that come with")[2], re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(extra_names()) <= listed


def test_a_study_names_the_file_with_its_kinds_of_table_and_figure(folder):
    run, table, curve = (command(folder, line) for line in KINDS.splitlines())
    assert (run.returncode, table.returncode, curve.returncode) == (0, 0, 0), run.stderr + table.stderr
    assert "Loss in training at the length reached, nats per token: range over seeds." in " ".join(
        table.stdout.split()
    )
    assert re.search(r"^  conv\(k=3\) +\d\.\d+ +\d\.\d+$", table.stdout, re.MULTILINE)
    assert (folder / "ends-every.png").stat().st_size > 1000
    drawn = json.loads(command(folder, "activemem curve render ends --json").stdout)
    assert len(drawn["curves"][0]["panels"][0]["content"]["data"]) == 4
    # a store alone may be somebody else's: it loads no file
    (folder / "ends.toml").unlink()
    shown = command(folder, "activemem table render ends")
    assert (shown.returncode, "unknown kind 'extremes'" in shown.stderr) == (2, True)
    assert command(folder, "activemem table render ends --plugin extremes.py").returncode == 0


def test_a_design_chooses_the_cells_and_a_failing_one_is_reported_with_its_line(folder):
    plan, listed = (command(folder, line) for line in DESIGN.splitlines())
    assert "2 mixers × 2 seeds = 4 trials" in plan.stdout, plan.stderr
    assert re.search(r"^  corners +all combinations .*\n? *.* · corners.py$", listed.stdout, re.MULTILINE)
    path, text = folder / "corners.py", FILES["corners.py"]
    path.write_text(text.replace("levels[-1]", "levels[9]"), encoding="utf-8")
    wrong = command(folder, DESIGN.splitlines()[0])
    assert "corners.py:9: design 'corners': IndexError" in " ".join(wrong.stderr.split())
    path.write_text(text.replace("    def choose_cells", "    def choose"), encoding="utf-8")
    assert "expected a definition of choose_cells" in command(folder, DESIGN.splitlines()[0]).stderr


def test_a_kind_without_its_library_says_how_to_install_it_and_other_faults_have_a_line(folder):
    path, text = folder / "extremes.py", FILES["extremes.py"]
    assert command(folder, KINDS.splitlines()[0]).returncode == 0
    line = "        values, rows = results.values(self.value), []\n"
    path.write_text(text.replace(line, f"        import not_here.part\n{line}"), encoding="utf-8")
    shown = command(folder, "activemem table render ends.toml")
    assert shown.returncode == 0, shown.stderr
    told = "This needs not_here, which is not installed: pip install not_here"
    assert told in " ".join(shown.stdout.split())
    path.write_text(text.replace("results.values(self.value), []", "1 / 0, []"), encoding="utf-8")
    shown = command(folder, "activemem table render ends.toml")
    number = text[: text.index(line)].count("\n") + 1
    assert f"extremes.py:{number}: kind 'extremes': ZeroDivisionError" in shown.stderr


def test_without_its_plug_in_the_metric_of_the_study_is_unknown(folder):
    plan = command(folder, "activemem study plan sure.toml")
    assert plan.returncode == 2
    assert "unknown metric 'confidence'" in plan.stderr


def test_a_task_is_one_file_of_at_most_60_lines(folder):
    assert len(FILES["key_recall.py"].splitlines()) <= 60
    show, run, table = (
        command(folder, f"{line} {words}")
        for line, words in zip(RECALL.splitlines(), ("", "--local", ""), strict=True)
    )
    assert (show.returncode, run.returncode, table.returncode) == (0, 0, 0), run.stderr
    assert "plug-in  key_recall.py, sha256 " in show.stdout
    assert "2 of 2 trials done" in run.stderr
    assert re.search(r"^  sa( +\*?0\.\d\d\d\*?){3}$", table.stdout, re.MULTILINE)
    in_org = command(folder, ORG)
    assert re.search(r"^\| sa\(.*\)( \| 0\.\d\d\d){3} \|$", in_org.stdout, re.MULTILINE), in_org.stderr


def test_the_plan_reports_what_does_not_see_far_enough_for_the_task(folder):
    plan = command(folder, "activemem study plan recall.toml --plugin key_recall.py")
    words = " ".join(plan.stdout.split())
    assert re.search(r"conv\(k=3\) on key_recall: .* 4 .* depend on 14", words)


def test_the_keys_of_a_plug_in_task_are_checked_before_anything_runs(folder):
    text = (folder / "recall.toml").read_text(encoding="utf-8")
    wrong = text.replace("pairs = 3\n", 'pairs = "3"\nkeys = 2\n', 1)
    (folder / "wrong.toml").write_text(wrong, encoding="utf-8")
    plan = command(folder, "activemem study plan wrong.toml --plugin key_recall.py")
    assert plan.returncode == 2
    assert "unknown key 'keys' of key_recall" in plan.stderr
    assert 'pairs = "3"' in plan.stderr


def test_a_loss_term_and_a_callback_are_named_in_a_study(folder):
    listed, shown, run, table = (
        command(folder, f"{line} {words}")
        for line, words in zip(QUIET.splitlines(), ("", "", "--local", ""), strict=True)
    )
    assert listed.stdout == (
        "[[train.loss_terms]]\n"
        "  activity   Mean square of what layers add (Merity et al. 2017) · activity.py\n"
    )
    assert "  kind     metric\n" in shown.stdout  # that the callback reports
    assert "  kind     callback\n  source   Chizat et al. 2019, On lazy training\n" in shown.stdout
    assert (run.returncode, table.returncode) == (0, 0), run.stderr
    assert "2 of 2 trials done" in run.stderr
    rows = re.findall(
        r"^  (\S+) +\*?(\d\.\d+)\*? +\*?(\d+\.\d+)\*? +\*?(\d\.\d+)", table.stdout, re.MULTILINE
    )
    assert [weight for weight, *_ in rows] == ["0.0", "1.0"], table.stdout
    assert float(rows[1][2]) < 0.5 * float(rows[0][2])  # the activations
    assert all(0 < float(drift) < 5 for *_, drift in rows)


def test_without_their_plug_ins_a_term_and_a_callback_are_unknown(folder):
    plan = command(folder, "activemem study plan quiet.toml --plugin activity.py")
    assert plan.returncode == 2
    assert "unknown callback 'drift'" in " ".join(plan.stderr.split())


def test_changed_code_of_a_term_makes_its_trials_others(folder):
    words = "--plugin activity.py --plugin drift.py --results results"
    assert command(folder, f"activemem study run quiet.toml {words} --local").returncode == 0
    text = (folder / "activity.py").read_text(encoding="utf-8")
    (folder / "activity.py").write_text(text.replace("square().mean()", "abs().mean()"), encoding="utf-8")
    plan = command(folder, f"activemem study plan quiet.toml {words}")
    told = " ".join(plan.stdout.split())
    assert "stale 2 stored trials" in told
    assert "(activity.py)" in told
    assert "2 to run" in told


@pytest.mark.heavy
def test_every_part_of_a_page_passes_the_tests_of_the_page(folder):
    passed = {"certainty": 3, "key_recall": 10, "moving": 7, "parts": 20, "quiet": 8, "searching": 8}
    (folder / "org.py").unlink()  # in this folder `copy` would import it as a package of Jython's
    words = ["-q", "-rp", "-p", "no:cacheprovider", *(f"test_{name}.py" for name in passed)]
    done = run_program("pytest", *words, cwd=folder)
    assert done.returncode == 0, done.stdout
    assert Counter(re.findall(r"^PASSED test_(\w+)", done.stdout, re.MULTILINE)) == passed


def test_a_task_with_a_loss_of_its_own_is_learnt_by_it(folder):
    text = study_text(
        study={"name": "sum"},
        model={"recipe": "conv(k=3) >> mean_pool"},
        task={"name": "noisy_sum", "dev_examples": 200},
        train={"curriculum": None, "batch_size": 32, "steps_per_epoch": 60, "optimizer": ADAM},
        table=[{"name": "sum", "rows": "seed", "value": "dev_loss"}],
    )
    (folder / "sum.toml").write_text(text, encoding="utf-8")
    run = command(folder, "activemem study run sum.toml --plugin noisy_sum.py --local --results results")
    assert "1 of 1 trial done" in run.stderr, run.stderr
    table = command(folder, "activemem table render sum --plugin noisy_sum.py --results results")
    loss = float(re.search(r"^  0 +\*?(\d\.\d+)", table.stdout, re.MULTILINE)[1])
    assert 1.5 < loss < 2.2  # of the median 1.9, of the mean 3.0
