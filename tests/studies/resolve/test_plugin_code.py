"""Changed plug-in code is reported; only its digest identifies it."""

import os
import runpy
import subprocess
import sys

import pytest

from activemem import PluginError, load_plugin
from activemem.grammar.norms import NORMS
from activemem.studies import Trial
from activemem.studies.resolve.trial import code_fault, code_here

from ...notebook import Notebook
from ...product_classes import ROOT
from .test_trial import settings


def coded(code):
    return settings().model_copy(update={"code": {"block conv": code}})


def test_settings_without_plug_ins_have_no_code_and_fit_everywhere():
    assert (code_here(settings()), code_fault(settings())) == ({}, None)


def test_a_machine_with_other_code_says_what_was_expected():
    assert code_fault(coded("mine.py 0123456789abcdef")) == (
        "expected the code of mine.py 01234567, got no block conv"
    )


def test_the_id_covers_the_digest_and_not_the_name_of_the_file():
    ids = [
        Trial(study="s", levels={}, settings=coded(code)).id
        for code in ("mine.py 0123456789abcdef", "other.py 0123456789abcdef", "mine.py 1123456789abcdef")
    ]
    assert ids[0] == ids[1] != ids[2]
    assert ids[0] != Trial(study="s", levels={}, settings=settings()).id


def test_a_trial_keeps_the_code_that_it_was_made_with():
    trial = Trial(study="s", levels={}, settings=coded("mine.py 0123456789abcdef"))
    assert Trial.from_json(trial.to_json()) == trial


def test_a_norm_and_positions_of_plug_ins_are_part_of_the_id(tmp_path):
    path = tmp_path / "own_parts.py"
    path.write_text(PARTS, encoding="utf-8")
    load_plugin(path)
    named = settings(model__norm_kind="own_norm", model__position="own_positions")
    assert code_here(named).keys() == {"norm own_norm", "position own_positions"}
    assert all(code.startswith("own_parts.py ") for code in code_here(named).values())


def test_only_the_metric_that_ends_a_training_is_part_of_the_id(tmp_path):
    path = tmp_path / "own_metrics.py"
    path.write_text(METRIC, encoding="utf-8")
    load_plugin(path)
    assert code_here(settings()) == {}
    followed = settings(train__early_stopping={"metric": "dev_own_count", "patience": 2})
    assert code_here(followed)["metric dev_own_count"].startswith("own_metrics.py ")
    assert code_here(settings(train__early_stopping={"metric": "dev_loss", "patience": 2})) == {}
    older = followed.model_copy(update={"code": {"metric dev_own_count": "own_metrics.py 0123456789abcdef"}})
    assert "own_metrics.py 01234567" in (code_fault(older) or "")
    assert code_fault(older, trains=False) is None, "a trained model does without it"


@pytest.fixture
def notebook():
    """Return a notebook whose cells may register `own_norm`."""
    yield Notebook()
    NORMS.unregister("own_norm")


def own_code():
    return code_here(settings(model__norm_kind="own_norm"))["norm own_norm"]


def test_a_cell_of_a_notebook_is_part_of_the_id_and_can_be_run_again(notebook):
    cell = PARTS.partition("@register_position")[0]
    codes = []
    for text in (cell, cell, cell.replace("return 0", "return 1")):
        notebook.run(text)
        codes.append(own_code())
    assert codes[0] == codes[1] != codes[2]
    assert all(code.startswith("the notebook cell of norm own_norm ") for code in codes)


def test_a_loop_does_not_replace_a_part_by_one_that_would_have_the_same_id(notebook):
    register = "@register_norm('own_norm', source='here')"
    norm = f"    {register}\n    class Norm(Base):\n        def build(self, width, eps): return k"
    notebook.run(BASE)
    with pytest.raises(PluginError, match="same ids: give each a name of its own"):
        notebook.run(f"for k in (1, 2):\n{norm}")
    notebook.run(f"for k in (1,):\n{norm}", f"for k in (2,):\n{norm}")


def test_other_cells_are_no_part_of_the_id(notebook):
    cell = PARTS.partition("@register_position")[0].replace("return 0", "return SCALE")
    notebook.run("SCALE = 1", cell)
    first = own_code()
    notebook.run("SCALE = 2")
    assert own_code() == first


def test_code_without_source_is_part_of_the_id_too(notebook):
    def run(text):  # as the magic %%time of a cell does
        exec(compile(text, "<timed exec>", "exec"), notebook.globals)

    cell = PARTS.partition("@register_position")[0]
    run(cell)
    first = own_code()
    run(cell)
    assert own_code() == first
    run(cell.replace("return 0", "return 1"))
    assert own_code() != first


@pytest.mark.heavy
def test_the_code_of_a_program_without_a_file_is_the_same_in_another_process(notebook):
    program = (
        "from tests.studies.resolve.test_plugin_code import own_code\n"
        + PARTS.partition("@register_position")[0].replace("return 0", "return width in {'a', 'b', 'c', 'd'}")
        + "print(own_code())"
    )
    codes = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "1234"
    }
    assert len(codes) == 1
    assert codes.pop().startswith("the unsaved code of norm own_norm ")


def test_the_code_of_a_script_is_its_text(notebook, tmp_path, monkeypatch):
    path, codes = tmp_path / "program.py", []
    cell = PARTS.partition("@register_position")[0].replace("return 0", "return SCALE")
    path.write_text("import os\nSCALE = int(os.environ['SCALE'])\n" + cell, encoding="utf-8")
    for scale in ("1", "2"):
        monkeypatch.setenv("SCALE", scale)
        runpy.run_path(str(path), run_name="__main__")
        codes.append(own_code())
    path.write_text(f"{path.read_text(encoding='utf-8')}# a comment\n", encoding="utf-8")
    runpy.run_path(str(path), run_name="__main__")
    codes.append(own_code())
    assert codes[0] == codes[1] != codes[2]
    assert all(code.startswith("the script program.py ") for code in codes)


BASE = "from activemem import PluginNorm, register_norm\n\nclass Base(PluginNorm): pass"
PARTS = """
from activemem import PluginNorm, PluginPosition, register_norm, register_position

@register_norm("own_norm", source="here")
class Norm(PluginNorm):
    def parameters(self, width):
        return 0
    def saved(self, width):
        return 0
    def build(self, width, eps):
        raise NotImplementedError

@register_position("own_positions", source="here")
class Positions(PluginPosition):
    def build(self, width):
        raise NotImplementedError
"""
METRIC = """
from activemem import register_metric

@register_metric("own_count", title="a count", higher_is_better=True, kinds=["causal_tagging"])
class Count:
    def update(self, outputs, targets):
        pass
    def compute(self):
        return 1.0
"""
