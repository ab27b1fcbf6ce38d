"""Designs, equal parameters and budgets in plans."""

import json
import re
from pathlib import Path

import pytest

from activemem import load_study
from activemem.storage import Store

from ...study_texts import study_text
from ..store_factories import store_outcome

STUDY = study_text(
    study={
        "name": "equal",
        "title": "Equal parameters",
        "match": "parameters",
        "baseline": {"mixer": "sa", "filter": 512},
    },
    model={"recipe": "4 * ({mixer} >> ff({filter}))", "d_model": 128},
    train={"batch_size": 32, "epochs": 10, "steps_per_epoch": 100},
    factors={
        "mixer": ["sa", "conv(k=20)", "highway_conv(k=4)", "sa + conv(k=3)"],
        "task": ["sort", "reverse"],
    },
)


@pytest.fixture
def study():
    """Write the study's file to the working directory."""
    Path("equal.toml").write_text(STUDY, encoding="utf-8")
    return "equal.toml"


def test_a_plan_of_equal_parameters_has_the_solved_sizes_and_what_they_miss(
    run, study, steps_of_a_second, golden
):
    result = run("study", "plan", study)
    assert (result.exit_code, result.stderr) == (0, "")
    golden(result.stdout)


def test_a_plan_of_equal_state_has_the_state_of_each_model(run):
    shown = run("study", "plan", "which-mixer-state").stdout
    assert re.search("size +state +parameters", shown)
    assert re.search("gla +18 +7.8 kB +35,917 ", shown)


def test_a_plan_says_which_solved_sizes_are_the_lowest(run, study):
    text = STUDY.replace("filter = 512 }", "filter = 2 }\ntolerance = 0.9")
    Path(study).write_text(text, encoding="utf-8")
    told = " ".join(run("study", "plan", study).stdout.split())
    assert "filter is solved to 1, the lowest value, in conv(k=20)" in told


def test_study_show_has_the_solved_sizes_and_the_baseline_of_the_match(run, study):
    shown = run("study", "show", study).stdout
    assert re.search("study.baseline +mixer=sa\n +filter=512$", shown, re.MULTILINE)
    assert re.search("filter +512 at sa\n +256 at ", shown)
    page = json.loads(run("study", "show", study, "--json").stdout)
    assert list(page["sizes"].values()) == [512, 256, 1021, 320]


def test_study_show_has_the_ladder_and_the_steps_of_each_size(run):
    shown = " ".join(run("study", "show", "lm-ladder-small").stdout.split())
    for words in (
        "study.max_seeds 5 ",
        "ladder.sizes width=[32, 48, 64, 96] heads=[2, 3, 4, 6] ",
        "ladder.tokens_per_parameter 20 ",
        " train.steps_per_epoch ",
        " at width=32, heads=2, filter=84, mixer=attention ",
    ):
        assert words in shown
    page = json.loads(run("study", "show", "lm-ladder-small", "--json").stdout)
    assert len(page["design"]["train.steps_per_epoch"]) == 20


@pytest.mark.usefixtures("steps_of_a_second")
def test_a_plan_of_equal_parameters_as_json_has_every_size(run, study):
    page = json.loads(run("study", "plan", study, "--json").stdout)
    found = [model["size_match"] for model in page["models"]]
    costs = [cost for each in found for cost in each["costs"]]
    assert {(cost["name"], cost["target"]) for cost in costs} == {
        ("parameters", target) for target in (1_582_868, 1_603_428)
    }
    sizes = [each["size"] for each in found]
    assert [(size, cost["amount"] - cost["target"]) for size, cost in zip(sizes, costs, strict=True)] == [
        (512, 0),
        (256, -512),
        (1021, -12),
        (320, -256),
    ]


PLAIN = STUDY.replace(
    'match = "parameters"\nbaseline = { mixer = "sa", filter = 512 }\n',
    'limits.parameters = "<= 1_600_000"\n',
)
PLAIN = (
    PLAIN.replace("{filter}", "256")
    .replace('"highway_conv(k=4)", "sa + conv(k=3)"', '"highway_conv(k=20)", "cgru(k=20)"')
    .replace(', "reverse"', "")
)


def test_a_plan_reports_what_is_over_budget_and_not_run(run, steps_of_a_second, golden):
    Path("budget.toml").write_text(PLAIN, encoding="utf-8")
    result = run("study", "plan", "budget.toml")
    assert (result.exit_code, result.stderr) == (0, "")
    golden(result.stdout)
    page = json.loads(run("study", "plan", "budget.toml", "--json").stdout)
    assert page["total"] == 2
    refused = page["over_budget"]
    assert [each["trials"] for each in refused] == [1, 1]
    assert refused[1]["recipe"] == "4 * (cgru(k=20) >> ff(256))"
    assert refused[1]["parameters"] == 4_204_820
    assert refused[1]["excess"] in " ".join(result.stdout.split())


@pytest.mark.usefixtures("steps_of_a_second")
def test_a_plan_of_another_design_counts_cells(run, golden):
    text = PLAIN.replace('limits.parameters = "<= 1_600_000"', 'design = "one_at_a_time"').replace(
        '"sort"', '"sort", "copy"'
    )
    Path("around.toml").write_text(text + "seed = [0, 1, 2]\n", encoding="utf-8")
    lines = run("study", "plan", "around.toml").stdout.splitlines()
    golden(lines[1])


@pytest.mark.usefixtures("steps_of_a_second")
@pytest.mark.parametrize("name", ["n_epochs", "passes"])
def test_a_factor_whose_name_has_no_plural_is_counted_by_its_levels(run, study, name):
    text = Path(study).read_text(encoding="utf-8")
    text = text.replace("epochs = 10", f'epochs = "{{{name}}}"').replace(
        "[factors]", f"[factors]\n{name} = [5, 6]"
    )
    Path(study).write_text(text, encoding="utf-8")
    assert f"2 levels of {name} × 4 mixers × 2 tasks" in run("study", "plan", study).stdout


def test_a_part_is_planned_by_itself(run, tiny, golden):
    told = run("study", "plan", tiny, "--only", "mixer=conv", "--only", "task=not").stdout.splitlines()
    golden(told[1])
    assert [line.split()[0] for line in told[5:6]] == ["conv(k=3)"]
    page = json.loads(run("study", "plan", tiny, "--only", "task=not", "--json").stdout)
    assert (page["total"], page["subset_size"], page["left"], len(page["trials"])) == (8, 4, 4, 4)
    wrong = run("study", "plan", tiny, "--only", "task=nod")
    heading, _, *lines = wrong.stderr.splitlines()
    assert (wrong.exit_code, heading, lines) == (
        2,
        f"{tiny}: 1 fault",
        ["  --only | task=nod", "                ^^^  unknown level 'nod' of task; nearest: not"],
    )


def test_a_plan_of_seconds_names_no_core_hours(run):
    Path("short.toml").write_text(PLAIN, encoding="utf-8")
    store_outcome(load_study("short.toml").trials[0], Store("results"))
    total = next(line for line in run("study", "plan", "short.toml").stdout.splitlines() if "in all" in line)
    assert "on this machine" in total
    assert "core-hours" not in total
