"""What a plan says of designs, equal parameters and budgets."""

import json
import os
from pathlib import Path

import pytest
import torch

from activemem.blocks.core.linear_maps import onednn_has_wider_vectors
from activemem.cli import plan_costs
from activemem.engine.core import gpus
from activemem.grammar.vocabulary.convolutions import GAIN, GAIN_BESIDE_WIDER_VECTORS
from activemem.studies.planning.memory_estimates import step_memory
from activemem.studies.study import load_study

from ...study_texts import study_text

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

EQUAL = """\
equal · Equal parameters
4 mixers × 2 tasks = 8 trials · 0 in the store · 8 to run

  mixer           filter  residual  parameters  GFLOPs/step   memory  est./trial
  sa                 512         0   1,603,428         13.4  59.5 MB           –
  conv(k=20)         256      −512   1,602,916         12.2  51.4 MB           –
  highway_conv     1,021       −12   1,603,416         12.2  75.0 MB           –
  sa + conv(k=3)     320      −256   1,603,172         13.4  62.8 MB           –

  in all   no estimate before a first trial has run on this machine: activemem
           study run … --max-trials 1

  where  this machine's CPU: torch finds no GPU here

  match  filter solved for the parameters of mixer=sa, filter=512; largest
         residual −512, 0.032 %

  memory a step of highway_conv(k=4) holds 75.0 MB: weights 6.4 MB, gradients
         6.4 MB, optimiser 12.8 MB, activations at 14 tokens 49.3 MB

  note   highway_conv(k=4): 4 layers reach 4 to the left, so no length beyond 6
         on sort, 5 on reverse can be learnt
"""

OVER = """\
equal · Equal parameters
2 cells × 1 seed = 2 trials · 0 in the store · 2 to run · 2 over budget

  mixer        parameters   GFLOPs/step    memory   est. per trial
  sa            1,319,700          11.3   48.6 MB                –
  conv(k=20)    1,582,356          12.1   51.1 MB                –

  in all   no estimate before a first trial has run on this machine: activemem
           study run … --max-trials 1

  where  this machine's CPU: torch finds no GPU here

  memory a step of conv(k=20) holds 51.1 MB: weights 6.3 MB, gradients 6.3 MB,
         optimiser 12.7 MB, activations at 14 tokens 25.8 MB

  over   highway_conv(k=20): 2,893,588 parameters, at most 1,600,000; 1 trial
         not run

  over   cgru(k=20): 4,204,820 parameters, at most 1,600,000; 1 trial not run
"""


@pytest.fixture(autouse=True)
def _one_processor(request, monkeypatch):
    """Every processor takes frequencies at the same sizes here."""
    if "processors" not in request.fixturenames:
        monkeypatch.setattr(plan_costs, "_cpu_gain", lambda: GAIN)


@pytest.fixture
def study():
    """The study's file, in the working directory."""
    Path("equal.toml").write_text(STUDY, encoding="utf-8")
    return "equal.toml"


def test_a_plan_of_equal_parameters_has_the_solved_sizes_and_what_they_miss(run, study):
    result = run("study", "plan", study)
    assert (result.exit_code, result.stdout, result.stderr) == (0, EQUAL, "")


def test_a_plan_of_equal_parameters_as_json_has_every_size(run, study):
    models = json.loads(run("study", "plan", study, "--json").stdout)["models"]
    assert [model["match"] for model in models] == [
        {"name": "filter", "value": value, "target": 1_603_428, "residual": residual}
        for value, residual in ((512, 0), (256, -512), (1021, -12), (320, -256))
    ]


PLAIN = STUDY.replace(
    'match = "parameters"\nbaseline = { mixer = "sa", filter = 512 }\n', "max_parameters = 1_600_000\n"
)
PLAIN = (
    PLAIN.replace("{filter}", "256")
    .replace('"highway_conv(k=4)", "sa + conv(k=3)"', '"highway_conv(k=20)", "cgru(k=20)"')
    .replace(', "reverse"', "")
)


def test_a_plan_tells_what_is_over_budget_and_not_run(run):
    Path("budget.toml").write_text(PLAIN, encoding="utf-8")
    result = run("study", "plan", "budget.toml")
    assert (result.exit_code, result.stdout, result.stderr) == (0, OVER, "")
    page = json.loads(run("study", "plan", "budget.toml", "--json").stdout)
    assert page["total"] == 2
    assert [each["trials"] for each in page["refused"]] == [1, 1]
    assert page["refused"][1] == {
        "label": "cgru(k=20)",
        "recipe": "4 * (cgru(k=20) >> ff(256))",
        "trials": 1,
        "parameters": 4_204_820,
        "step_flops": page["refused"][1]["step_flops"],
        "excess": "4,204,820 parameters, at most 1,600,000",
    }


def test_a_plan_of_another_design_counts_cells(run):
    text = PLAIN.replace("max_parameters = 1_600_000", 'design = "one_at_a_time"').replace(
        '"sort"', '"sort", "copy"'
    )
    Path("around.toml").write_text(text + "seed = [0, 1, 2]\n", encoding="utf-8")
    lines = run("study", "plan", "around.toml").stdout.splitlines()
    assert lines[1] == "5 cells × 3 seeds = 15 trials · 0 in the store · 15 to run"


@pytest.mark.parametrize("name", ["n_epochs", "passes"])
def test_a_factor_whose_name_has_no_plural_is_counted_by_its_levels(run, study, name):
    text = Path(study).read_text(encoding="utf-8")
    text = text.replace("epochs = 10", f'epochs = "{{{name}}}"').replace(
        "[factors]", f"[factors]\n{name} = [5, 6]"
    )
    Path(study).write_text(text, encoding="utf-8")
    assert f"2 levels of {name} × 4 mixers × 2 tasks" in run("study", "plan", study).stdout


def test_a_part_is_planned_by_itself(run, tiny):
    told = run("study", "plan", tiny, "--only", "mixer=conv", "--only", "task=not").stdout.splitlines()
    assert told[1] == "2 mixers × 2 tasks × 2 seeds = 8 trials, 2 in this part · 0 in the store · 2 to"
    assert [line.split()[0] for line in told[5:6]] == ["conv(k=3)"]
    page = json.loads(run("study", "plan", tiny, "--only", "task=not", "--json").stdout)
    assert (page["total"], page["part"], page["left"], len(page["trials"])) == (8, 4, 4, 4)
    wrong = run("study", "plan", tiny, "--only", "task=nod")
    assert (wrong.exit_code, wrong.stderr) == (
        2,
        "tiny: 1 fault\n\n  task=nod: no such level; nearest: not\n",
    )


WIDE = study_text(
    study={"name": "wide", "title": "Wide convolutions"},
    model={"recipe": "2 * ({mixer} >> ff(128))", "d_model": 64},
    task={"name": "reverse"},
    train={"batch_size": 32, "lengths": [20, 20], "curriculum": None},
    factors={"mixer": ["conv(k=20)"], "seed": [0]},
)


def test_a_plan_tells_what_this_machine_s_cpu_holds_and_of_a_gpu_what_that_one_does(run, monkeypatch):
    Path("wide.toml").write_text(WIDE, encoding="utf-8")
    settings = load_study(WIDE).trials[0].settings
    on_cpu, on_gpu = step_memory(settings, cpu_gain=GAIN).total, step_memory(settings, device="gpu").total

    def told(*options):
        page = json.loads(run("study", "plan", "wide.toml", "--json", *options).stdout)
        return page["models"][0]["memory"]

    assert told() == on_cpu > 1.2 * on_gpu
    assert told("--device-memory", "24GB") == on_gpu
    monkeypatch.setattr(gpus, "has_gpu", lambda: True)
    assert told() == on_gpu
    monkeypatch.setenv("ACTIVEMEM_GPUS", "0")
    assert told() == on_cpu


@pytest.mark.parametrize(
    ("processors", "gain"),
    [
        ("vendor_id : AuthenticAMD\nflags : avx2 avx512f avx512bw\n", GAIN_BESIDE_WIDER_VECTORS),
        ("vendor_id : AuthenticAMD\nflags : avx2\n", GAIN),
        ("vendor_id : GenuineIntel\nflags : avx2 avx512f avx512bw\n", GAIN),
        (None, GAIN),
    ],
)
def test_a_plan_knows_without_torch_where_frequencies_must_promise_more(tmp_path, processors, gain):
    if processors is not None:
        (tmp_path / "cpuinfo").write_text(processors, encoding="utf-8")
    assert plan_costs._cpu_gain(tmp_path / "cpuinfo") == gain


@pytest.mark.skipif(
    not torch.backends.mkl.is_available() or "ATEN_CPU_CAPABILITY" in os.environ,
    reason="what torch says of itself, and a plan does not know",
)
def test_a_plan_and_blocks_ask_as_much_of_frequencies_on_this_machine(monkeypatch):
    monkeypatch.undo()
    gain = GAIN_BESIDE_WIDER_VECTORS if onednn_has_wider_vectors() else GAIN
    assert plan_costs._cpu_gain() == gain
