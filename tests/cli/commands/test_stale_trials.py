"""The source of plug-ins is part of a trial's id: changed code trains again, and the plan says so."""

import json
import re
import shutil
from pathlib import Path

import pytest

from activemem.storage import Store

BLOCK = """
from activemem import register_metric
from activemem.blocks import Block, register_block
from activemem.grammar import Reach, Role, Spec, register

register(
    Spec(
        name="scaled", role=Role.CHANNEL, summary="it", equation="y = 2 x", source="here",
        reach=lambda *_: Reach(left=0, right=0),
    )
)

@register_block("scaled")
class Scaled(Block):
    @classmethod
    def build(cls, settings, context):
        return cls()

    def forward(self, x, mask=None):
        return 2 * x
"""

STUDY = """
[study]
name = "scaling"
title = "A block of one's own"

[model]
recipe = "{mixer}"
d_model = 8

[task]
name = "not"

[train]
optimizer = { name = "adam", lr = 1e-2 }
batch_size = 4
epochs = 1
steps_per_epoch = 2
curriculum = { start = 5 }

[factors]
mixer = ["conv(k=3) >> scaled", "conv(k=3)"]

[[table]]
name = "lengths"
rows = "mixer"
value = "max_length"

[[curve]]
name = "losses"
kind = "line"
x = "epoch"
value = "loss"
series = "mixer"

[[claim]]
name = "it helps"
holds = "loss[mixer=conv(k=3) >> scaled] < loss[mixer=conv(k=3)]"
"""

READ_PAGE = """
import sys, threading, urllib.request
from activemem import load_plugin
from activemem.reporting.serve.http_server import Access
from activemem.reporting.serve.http_server import PageServer
from activemem.storage import Store

load_plugin(sys.argv[1])
server = PageServer(Store("results"), Access(host="127.0.0.1"), 0, look_s=1.0)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://127.0.0.1:{server.port}/study/scaling").read().decode())
"""


@pytest.fixture
def scaling():
    """Write a plug-in with a block, and a study of it, to the working directory."""
    Path("scaled.py").write_text(BLOCK, encoding="utf-8")
    Path("scaling.toml").write_text(STUDY, encoding="utf-8")
    return ("scaling.toml", "--plugin", "scaled.py")


def trials(process, *options):
    """Return the ids and statuses in a plan, first those with plug-ins."""
    plan = json.loads(process("study", "plan", *options, "--json").stdout)
    return [each["trial"]["id"] for each in plan["trials"]], [each["status"] for each in plan["trials"]]


@pytest.mark.heavy
def test_an_edited_block_makes_stored_trials_other_ones_which_are_trained_again_or_kept(
    process, run_python, scaling
):
    run = ("study", "run", *scaling, "--local", "--set", "study.keep_weights=true")
    assert process(*run).returncode == 0
    (block, ours), statuses = trials(process, *scaling)
    assert statuses == ["done", "done"]
    shutil.copytree("results", "kept")
    Path("scaled.py").write_text(BLOCK.replace("2 * x", "3 * x"), encoding="utf-8")
    (edited, same), statuses = trials(process, *scaling)
    assert (edited != block, same == ours, statuses) == (True, True, ["missing", "done"])
    told = " ".join(process("study", "plan", *scaling).stdout.split())
    (left_out,) = re.findall(r"stale (1 stored trial .*\(scaled\.py\))", told)
    for command in ("study status", "table render", "claim check", "curve render", "report build"):
        shown = process(*command.split(), *scaling).stdout
        shown = Path(shown.strip()).read_text("utf-8") if shown.endswith((".svg\n", ".html\n")) else shown
        line = left_out.partition(" (")[0] if command == "curve render" else left_out  # a figure wraps it
        assert line in " ".join(shown.split()), command
    served = run_python("-c", READ_PAGE, "scaled.py").stdout.split("<section")
    told = [page.split('"')[1] for page in served if left_out in page]
    assert told == ["claims", "tables", "figures", "progress"]
    again = process(*run)
    assert "2 of 2 trials done · 0 left · 1 trial ended" in again.stderr
    shown = " ".join(process("table", "render", "scaling", "--plugin", "scaled.py").stdout.split())
    assert shown.count("with scaled.py ") == 1
    assert "stale" not in process("study", "plan", *scaling).stdout

    kept = " ".join(process(*run, "--results", "kept", "--keep-stale").stderr.split())
    assert left_out in kept
    assert "are reused" in kept
    assert "2 of 2 trials done · 0 left · 0 trials ended" in kept
    shown = process("table", "render", *scaling, "--results", "kept").stdout
    assert "1 trial of another version of scaled.py, reused by" in " ".join(shown.split())
    store = Store("kept")
    for frame in (store.trials(), store.metrics(), store.outputs()):
        of_both = [frame.filter(trial=trial).drop("trial").rows() for trial in (block, edited)]
        assert of_both[0] == of_both[1]
    assert store.files.weights_file(edited).read_bytes() == store.files.weights_file(block).read_bytes()
    assert not store.upkeep.copy_outcome(block, edited)


METRIC = """
from activemem import register_metric

@register_metric("halves", title="half of a count", higher_is_better=True, kinds=["tagging"])
class Halves:
    def __init__(self):
        self.count = 0

    def update(self, outputs, targets):
        self.count += len(targets) / 2

    def compute(self):
        return self.count
"""


@pytest.mark.heavy
def test_values_of_an_edited_metric_are_told_wherever_they_are_shown(process, scaling):
    own = (
        STUDY.replace("conv(k=3) >> scaled", "sa")
        .replace('"max_length"', '"halves"')
        .replace("loss", "halves")
    )
    Path("scaling.toml").write_text(own, encoding="utf-8")
    Path("scaled.py").write_text(METRIC, encoding="utf-8")
    assert process("study", "run", *scaling, "--local", "--only", "mixer=sa").returncode == 0
    commands = [("table", "render"), ("claim", "check"), ("report", "build")]

    def shown(command):
        text = process(*command, *scaling).stdout
        return " ".join((Path(text.strip()).read_text("utf-8") if "report" in command else text).split())

    assert not any("another version of" in shown(each) for each in commands)
    Path("scaled.py").write_text(METRIC.replace("/ 2", "/ 4"), encoding="utf-8")
    assert (
        process("study", "run", *scaling, "--local").returncode == 0
    )  # the id of the first trial is the same
    told = "halves was measured by another version of scaled.py in 1 trial: "
    assert all(told in shown(each) for each in commands)
    rows = Store("results").trials()
    assert (
        len(rows) == rows["version"].str.contains(" with scaled.py ").sum() == rows["version"].n_unique() == 2
    )


@pytest.mark.heavy
def test_points_measured_by_an_edited_metric_are_told_of_a_search(process, scaling):
    metric = METRIC.replace('"halves"', '"points_halves"')
    own = STUDY.partition("[factors]")[0].replace("{mixer}", "conv(k={k})").replace('"scaling"', '"searched"')
    search = (
        '[search]\nmetric = "points_halves"\nspace = { k = "integer(2, 9)" }\nsampler = { name = "random" }\n'
    )
    Path("searched.toml").write_text(f"{own}{search}trials = 2\n", encoding="utf-8")
    Path("scaled.py").write_text(metric, encoding="utf-8")
    options = ("searched.toml", "--plugin", "scaled.py")
    assert process("study", "run", *options, "--local").returncode == 0
    Path("scaled.py").write_text(metric.replace("/ 2", "/ 4"), encoding="utf-8")
    told = "points_halves was measured by another version of scaled.py in 2 trials: "
    for command in (("plan",), ("status",), ("run", "--local"), ("show", "--best", "2")):
        ended = process("study", command[0], *options, *command[1:])
        assert told in " ".join((ended.stdout + ended.stderr).split()), command


@pytest.mark.heavy
def test_the_same_source_from_another_path_is_the_same_code(process, scaling):
    found = trials(process, *scaling)
    Path("elsewhere").mkdir()
    shutil.move("scaled.py", "elsewhere/renamed.py")
    assert trials(process, "scaling.toml", "--plugin", "elsewhere/renamed.py") == found


@pytest.mark.heavy
def test_a_note_on_missing_results_names_those_of_another_version_and_what_reuses_them(process, scaling):
    own = STUDY.replace('", "conv(k=3)"]', '"]\nseed = [0, 1]').replace("[study]", "[study]\nmax_seeds = 4")
    own = own.replace("loss[mixer=conv(k=3) >> scaled] < loss[mixer=conv(k=3)]", "loss < 100")
    Path("scaling.toml").write_text(own, encoding="utf-8")
    run = ("study", "run", *scaling, "--local")
    assert process(*run, "--set", "factors.seed=[0, 1, 2]").returncode == 0  # with the seed that may be added
    Path("scaled.py").write_text(f"{BLOCK}# edited", encoding="utf-8")
    Path("paper.toml").write_text('[paper]\nstudies = ["scaling.toml"]', encoding="utf-8")
    Path("main.tex").write_text("A paper.", encoding="utf-8")
    for command in (
        ("table", "render", *scaling),
        ("claim", "check", *scaling),
        ("paper", "check", "main.tex"),
    ):
        told = process(*command, "--plugin", "scaled.py") if "main.tex" in command else process(*command)
        (line,) = (each for each in told.stderr.splitlines() if each.startswith("no trial of scaling "))
        assert re.search(r"; 2 stored trials .*\(scaled\.py\).*--keep-stale", line)
        if "claim" in command:
            words = " ".join(told.stdout.split())
            assert re.search(r"2 of 2 seeds not run, but .*\(study run --keep-stale", words)
    assert "3 stored trials are" in process(*run, "--keep-stale").stderr
    assert len(Store("results").trials()) == 6
