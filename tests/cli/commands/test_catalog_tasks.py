"""Tasks: all are listed, and each is shown with its keys."""

import json
import re
import tomllib

from activemem.studies.catalog.tasks import TASKS, task_names

OWN_PARTS = r' +with \[\[train\.\w+\]\] name = "\w+":\s+\w+(, \w+)*\n'
"""A line about a loss term or a callback that another test registered in this process."""


def test_every_task_is_listed_with_its_whole_summary(run):
    result = run("list", "tasks")
    lines = result.stdout.splitlines()
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == list(task_names())
    assert max(map(len, lines)) <= 80
    assert " ".join(result.stdout.split()) == " ".join(
        f"{name} {TASKS.get(name).summary}" for name in task_names()
    )
    assert len({TASKS.get(name).summary for name in task_names()}) == len(list(task_names()))


def test_an_algorithmic_task_is_shown_with_its_lengths(run, golden):
    shown = run("show", "reverse").stdout
    golden(re.sub(OWN_PARTS, "", shown))


def test_a_task_is_shown_with_its_metrics_and_the_keys_that_bring_them(run):
    regression = json.loads(run("show", "sequence_regression", "--json").stdout)["metrics"]
    assert (regression["test_mae"], "test_accuracy" in regression) == ("", False)
    text = json.loads(run("show", "language_model", "--json").stdout)["metrics"]
    assert (text["test_bpc"], text["test_perplexity"]) == ("", '[task] tokens = "words"')


def test_the_examples_of_the_paper_are_shown(run):
    shown = {name: run("show", name).stdout for name in ("addition", "multiply")}
    assert "  example  1 0 1 1 2 0 0 1 1 to 0 0 0 0 0 1 1 1 0: 11 + 3 = 14, Table 2\n" in shown["addition"]
    assert "  example  1 0 1 0 1 2 0 1 1 0 0 to 0 0 0 1 1 1 1 1 1 0 0: 21 · 12 = 252," in shown["multiply"]
    assert json.loads(run("show", "multiply", "--json").stdout)["example"] == {
        "input": "1 0 1 0 1 2 0 1 1 0 0",
        "target": "0 0 0 1 1 1 1 1 1 0 0",
        "meaning": "21 · 12 = 252, Table 3",
    }


def test_a_drawn_example_has_each_target_below_its_token(run, golden):
    lines = run("show", "mqar").stdout.splitlines()
    golden([line for line in lines if line.startswith(("  symbols ", "           each "))])
    rows = {label: [line[11:] for line in lines if line[2:8] == label] for label in ("input ", "target")}
    assert max(map(len, lines)) <= 80
    values, answers = {}, {}
    for above, below in zip(rows["input "], rows["target"], strict=True):
        assert len(above) == len(below)
        ends = [found.end() for found in re.finditer(r"\S+", above)]
        assert ends == [found.end() for found in re.finditer(r"\S+", below)]
        tokens = above.split()
        values |= dict(zip(tokens[:8:2], tokens[1:8:2], strict=True)) if not values else {}
        asked = zip(tokens, below.split(), strict=True)
        answers |= {key: target for key, target in asked if target != "·"}
    assert answers == values  # each key is asked once, to its value


def test_the_keys_that_a_task_takes_are_explained(run, golden):
    shown = run("show", "recall_addition").stdout
    golden(shown.partition("  [task]\n")[2])


def test_the_list_as_json_has_every_key(run, golden):
    listed = {one["name"]: one for one in json.loads(run("list", "tasks", "--json").stdout)["names"]}
    golden(listed["translation"]["needs"])
    assert {"corpus", "tokens", "beam"} <= set(listed["translation"]["keys"])
    assert (listed["addition"]["symbols"], listed["addition"]["growth"]) == (3, 2)


def test_an_unknown_task_is_reported_with_the_nearest(run, golden):
    result = run("show", "revers")
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)


def test_a_name_like_no_other_is_reported_with_a_few_of_the_nearest(run):
    result = run("show", "nosuch")
    first, hint = result.stderr.splitlines()
    assert (result.exit_code, result.stdout) == (2, "")
    assert re.fullmatch(r"unknown name 'nosuch'; \d+ are known, the most similar: \w+(, \w+){4}", first)
    assert hint == "All known names: activemem list KIND. A name from a plug-in needs its file: --plugin FILE"


def test_the_keys_of_a_first_study_are_those_that_study_new_writes(run, tmp_path):
    listed = run("list", "keys").stdout
    assert run("study", "new", str(tmp_path / "first.toml")).exit_code == 0
    written = tomllib.loads((tmp_path / "first.toml").read_text())
    for table in ("study", "model", "task", "train"):
        assert f"[{table}]" in listed
        assert all(f"  {key} " in listed for key in written[table])
    names = json.loads(run("list", "keys", "--json").stdout)["names"]
    assert {"table": "[train]", "key": "epochs"}.items() <= next(
        each for each in names if each["key"] == "epochs"
    ).items()
