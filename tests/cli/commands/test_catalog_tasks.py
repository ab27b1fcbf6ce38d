"""Tasks: all are listed, and each is shown with its keys."""

import json
import re

from activemem.studies.catalog.tasks import TASKS, task_names

OWN_PARTS = r' +with \[\[train\.\w+\]\] name = "\w+":\s+\w+(, \w+)*\n'
"""A line about a loss term or a callback that another test registered in this process."""


def test_every_task_is_listed_with_its_whole_summary(run):
    result = run("list", "tasks")
    key, *lines = result.stdout.splitlines()
    assert (result.exit_code, key, result.stderr) == (0, "[task] name", "")
    assert [line.split()[0] for line in lines if not line.startswith("   ")] == list(task_names())
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines).split()) == " ".join(
        f"{name} {TASKS.get(name).summary}" for name in task_names()
    )
    assert len({TASKS.get(name).summary for name in task_names()}) == len(list(task_names()))


def test_an_algorithmic_task_is_shown_with_its_lengths(run, golden):
    shown = run("show", "reverse").stdout
    golden(re.sub(OWN_PARTS, "", shown))


def test_a_task_is_shown_with_its_metrics_and_the_keys_that_bring_them(run):
    def metrics(task):
        (shown,) = json.loads(run("show", task, "--json").stdout)["names"]
        return shown["facts"]["metrics"].split("\n")

    always, *others = metrics("sequence_regression")
    assert ("test_mae" in always, any("test_accuracy" in each for each in (always, *others))) == (True, False)
    always, *others = metrics("language_model")
    assert "test_bpc" in always
    (words,) = (each for each in others if each.startswith('with [task] tokens = "words": '))
    assert "test_perplexity" in words


def test_the_examples_of_the_paper_are_shown(run):
    shown = {name: run("show", name).stdout for name in ("addition", "multiply")}
    assert "  example  1 0 1 1 2 0 0 1 1 to 0 0 0 0 0 1 1 1 0: 11 + 3 = 14, Table 2\n" in shown["addition"]
    assert "  example  1 0 1 0 1 2 0 1 1 0 0 to 0 0 0 1 1 1 1 1 1 0 0: 21 · 12 = 252," in shown["multiply"]


def test_a_drawn_example_has_each_target_below_its_token(run, golden):
    lines = run("show", "mqar").stdout.splitlines()
    golden([line for line in lines if line.startswith(("  symbols ", "           each "))])
    assert max(map(len, lines)) <= 80
    first = next(number for number, line in enumerate(lines) if line.startswith("  example"))
    last = next(number for number, line in enumerate(lines) if "each target is below" in line)
    drawn = [line[11:] for line in lines[first:last]]
    values, answers = {}, {}
    for above, below in zip(drawn[::2], drawn[1::2], strict=True):
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


def test_a_task_as_json_has_every_key(run):
    (shown,) = json.loads(run("show", "translation", "--json").stdout)["names"]
    assert shown["facts"]["needs"] == "a sequence of another length"
    assert {"corpus", "tokens", "beam"} <= {each["key"] for each in shown["keys"]}


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
