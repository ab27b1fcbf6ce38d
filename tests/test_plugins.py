"""Plug-ins: loaded once, owned by name, and withdrawn on errors."""

import hashlib
import re
import subprocess
import sys
from importlib import import_module

import pytest

from activemem import PluginError, StudyError, analyse, load_plugin, load_study
from activemem.plugins import Registry, load_plugin_files, loaded_files, unload_plugin
from activemem.studies import METRICS

from .study_texts import study_text

METRIC = """
from activemem import register_metric

@register_metric("{name}", title="Something", kinds=["regression"])
class Something:
    def update(self, outputs, targets): pass
    def compute(self): return 1.0
"""

BLOCK = """
import torch
from activemem import Block, register_block

@register_block("scaled", parameters=(), channelwise=True)
class Scaled(Block):
    def __init__(self, *, width, causal):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones({rows}, width))

    def forward(self, x, mask=None):
        return x * self.weight.sum(0)
"""


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a plug-in file."""

    def write_file(name, text):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


def test_a_file_is_loaded_once_and_owns_what_it_registers(write):
    path = write("mine.py", METRIC.format(name="mine"))
    assert load_plugin(path) is load_plugin(str(path))
    assert METRICS["mine"].title == "Something"
    assert METRICS.owner("mine") == "mine.py"
    assert METRICS.owner("loss") == "activemem"
    source = METRICS.source("mine")
    assert source is not None
    assert source.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert METRICS.source("loss") is None
    assert path.resolve() in [file.path for file in loaded_files()]


def test_modules_beside_a_plug_in_that_it_imports_are_reported_once(write, caplog):
    path = write("mine.py", "import json, activemem\ndef later():\n    from helper import SCALE\n")
    write("json.txt", "")
    load_plugin(path)
    assert caplog.text == ""
    unload_plugin(path)
    write("helper.py", "SCALE = 1.0")
    for _ in range(2):
        load_plugin(path)
    told = "mine.py imports helper.py, whose changes do not change trial ids: move this code into mine.py"
    assert [record.message for record in caplog.records] == [told]


@pytest.fixture
def extras(tmp_path, monkeypatch):
    """Return a folder in place of that of the plug-ins that come with the package."""
    folder = tmp_path / "extras"
    folder.mkdir()
    monkeypatch.setattr("activemem.plugins.EXTRAS", folder)
    return folder


def test_a_name_is_that_of_a_plug_in_of_this_package(extras, golden):
    (extras / "shipped.py").write_text(METRIC.format(name="shipped_metric"), encoding="utf-8")
    (extras / "other.py").write_text("1 / 0", encoding="utf-8")
    assert load_plugin("shipped") is load_plugin(extras / "shipped.py")
    assert METRICS.owner("shipped_metric") == "shipped.py"
    with golden.raises(PluginError):
        load_plugin("other")
    with golden.raises(PluginError):
        load_plugin("shiped")


def test_a_plug_in_of_this_package_is_not_imported_as_a_part_of_it():
    with pytest.raises(ImportError, match=r"by its name: activemem\.load_plugin\(NAME\)"):
        import_module("activemem.extras.ranks")


def test_a_study_names_its_plug_ins_which_load_with_it(extras, tmp_path, golden):
    metric = METRIC.replace(', kinds=["regression"]', "")
    (extras / "shipped.py").write_text(metric.format(name="shipped_metric"), encoding="utf-8")
    (tmp_path / "below").mkdir()
    (tmp_path / "mine.py").write_text(metric.format(name="mine"), encoding="utf-8")
    table = [{"name": "both", "rows": "seed", "value": ["mine", "shipped_metric"]}]
    keys = {"study": {"plugins": ["shipped", "../mine.py"]}, "table": table}
    keys |= {"model": {"recipe": "conv(k=3)"}, "task": {"name": "not"}}
    file = tmp_path / "below" / "mine.toml"
    file.write_text(study_text(**keys), encoding="utf-8")
    study = load_study(file)
    assert {"mine", "shipped_metric"} <= {*METRICS}
    bare = study_text(**{**keys, "study": {}})
    assert [trial.id for trial in study.trials] == [trial.id for trial in load_study(bare).trials]
    file.write_text(study_text(**{**keys, "study": {"plugins": ["shiped", "mine.py", 3]}}), encoding="utf-8")
    unload_plugin(tmp_path / "mine.py")
    with pytest.raises(StudyError) as error:
        load_study(file)
    golden(str(error.value).replace(str(tmp_path), "FOLDER"))


def test_an_unknown_name_that_is_a_plug_in_of_this_package_is_recognised(extras):
    (extras / "shipped.py").write_text(METRIC.format(name="inside"), encoding="utf-8")
    table = [{"name": "it", "rows": "seed", "value": "inside"}]
    with pytest.raises(StudyError, match=re.escape("activemem.load_plugin('shipped')")):
        load_study(study_text(table=table))


def test_the_names_of_a_broken_plug_in_are_withdrawn(write):
    path = write("broken.py", METRIC.format(name="half") + "\n1 / 0\n")
    with pytest.raises(PluginError, match=re.escape("broken.py:9: ZeroDivisionError: division by zero")):
        load_plugin(path)
    assert "half" not in METRICS
    path.write_text(METRIC.format(name="half"), encoding="utf-8")
    load_plugin(path)
    assert "half" in METRICS


@pytest.mark.parametrize(
    "text",
    [
        "def (",
        "import nowhere_to_be_found",
        "raise SystemExit(0)",
        METRIC.format(name="loss"),
        METRIC.format(name="a b"),
        METRIC.format(name="x").replace("regression", "vision"),
        "from activemem import GeneratedTask\n\nclass Task(GeneratedTask):\n    chance = 0.5",
    ],
)
def test_faults_of_a_plug_in_are_reported_with_the_line(write, text, golden):
    with golden.raises(PluginError):
        load_plugin(write("bad.py", text))


def test_a_plug_in_that_does_not_exist_is_named(tmp_path, golden):
    with golden.raises(PluginError):
        load_plugin(tmp_path / "nothing.py")


def test_a_changed_file_is_not_loaded_next_to_its_earlier_version(write, golden):
    path = write("mine.py", METRIC.format(name="mine"))
    load_plugin(path)
    path.write_text(METRIC.format(name="other"), encoding="utf-8")
    with golden.raises(PluginError):
        load_plugin(path)


def test_a_block_that_was_loaded_again_has_the_costs_of_its_new_code(write):
    counts = []
    for rows in (1, 2):
        path = write("mine.py", BLOCK.format(rows=rows))
        load_plugin(path)
        counts.append(analyse("scaled", d_model=8, vocab=4, length=5).parameters)
        unload_plugin(path)
    assert counts[1] == counts[0] + 8


def test_another_process_needs_the_source_alone(write, tmp_path):
    path = write("mine.py", METRIC.format(name="mine"))
    load_plugin(path)
    files = loaded_files()
    path.unlink()
    unload_plugin(path)
    load_plugin_files(files)
    assert "mine" in METRICS


def test_a_registry_has_its_own_names_and_those_of_others(golden):
    registry = Registry("thing", {"one": 1})
    registry.register("two", 2)
    assert dict(registry) == {"one": 1, "two": 2}
    registry.register("two", 3)  # as if a notebook's cell was run again
    assert (registry["two"], registry.owner("two")) == (3, "test_plugins.py")
    with golden.raises(ValueError):
        registry.register("one", 3)
    with pytest.raises(KeyError):
        registry.owner("three")


def test_a_name_can_stand_for_another_item_for_a_while():
    registry = Registry("thing", {"one": 1})
    with registry.replaced("one", 2), registry.replaced("new", 3):
        assert dict(registry) == {"one": 2, "new": 3}
    assert dict(registry) == {"one": 1}
    registry.unregister("one")
    registry.unregister("never")
    assert "one" not in registry


def test_built_in_names_have_no_plug_in_even_if_a_plug_in_has_loaded_them(tmp_path):
    (tmp_path / "first.py").write_text("import activemem.studies.catalog.tasks\n1 / 0\n", encoding="utf-8")
    program = (
        "from activemem.plugins import PluginError, load_plugin\n"
        "try: load_plugin('first.py')\n"
        "except PluginError: pass\n"
        "from activemem.studies.catalog.tasks import TASKS\n"
        "print(TASKS.owner('sort'))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("activemem\n", "")


def test_a_python_program_is_told_how_to_load_a_plug_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = study_text(factors={"mixer": ["unheard_of", "sa"]})
    for settings, told in (
        ("", "A name from a plug-in needs its file: activemem.load_plugin(FILE)"),
        ('plugins = ["mine.py"]', f"activemem.load_plugin({str(tmp_path / 'mine.py')!r})"),
    ):
        (tmp_path / "activemem.toml").write_text(settings, encoding="utf-8")
        with pytest.raises(StudyError) as caught:
            load_study(text)
        (note,) = caught.value.__notes__
        assert note.endswith(told)
        assert told not in str(caught.value)  # a command's user has another way


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def f(x):\n    return x +* 2\n", "p.py:2: SyntaxError: invalid syntax at '*', in 'return x +* 2'"),
        ("a = 1\nb = 'open\n", "p.py:2: SyntaxError: unterminated string literal (detected at line 2) at "),
        ("import no_such_module\n", "p.py:1: ModuleNotFoundError: No module named 'no_such_module', in "),
        ("def f():\n    return {}['key']\n\nf()\n", "p.py:2: KeyError: 'key', in \"return {}['key']\""),
    ],
)
def test_an_error_of_a_plug_in_is_told_with_its_line_once(tmp_path, source, message):
    path = tmp_path / "p.py"
    path.write_text(source, encoding="utf-8")
    with pytest.raises(PluginError) as error:
        load_plugin(path)
    assert str(error.value).startswith(message)
    assert str(error.value).count("p.py") == 1
