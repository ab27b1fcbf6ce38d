"""Plug-ins of a command: from options, the environment and activemem.toml; a broken one is only reported."""

from pathlib import Path

from ..study_texts import study_text

METRIC = """
from activemem import register_metric

@register_metric("{name}", title="Something", kinds=["regression"])
class Something:
    def update(self, outputs, targets): pass
    def compute(self): return 1.0
"""


def write(name, text):
    Path(name).write_text(text, encoding="utf-8")


def test_every_source_of_plug_ins_is_loaded_before_the_command(process):
    for name in ("option", "variable", "file"):
        write(f"{name}.py", METRIC.format(name=f"by_{name}"))
    given = process("list", "metrics", "--plugin", "option.py", "--plugin", "variable.py")
    assert "Something · option.py" in given.stdout
    assert "by_variable" in given.stdout
    write("activemem.toml", 'plugins = ["file.py"]')
    Path("below").mkdir()
    assert "Something · file.py" in process("list", "metrics").stdout
    found = process("list", "metrics", ACTIVEMEM_PLUGINS="option.py:variable.py")
    assert ("by_option" in found.stdout, "by_file" in found.stdout) == (True, False)


def test_a_broken_plug_in_is_named_and_everything_else_works(process, tiny, golden):
    write("broken.py", "1 / 0")
    write("fine.py", METRIC.format(name="fine"))
    write("activemem.toml", 'plugins = ["broken.py", "missing.py", "fine.py"]')
    listed = process("list", "metrics")
    assert listed.returncode == 0
    assert "Something · fine.py" in listed.stdout
    broken, missing = listed.stderr.splitlines()
    golden(broken)
    assert missing.startswith("plug-in that cannot")
    assert process("study", "plan", tiny).returncode == 0
    nothing = process("study", "plan", "nothing.toml").stderr.splitlines()
    begin = "  there is no such file; write one to begin with: activemem study new nothing.toml"
    assert nothing == [broken, missing, "nothing.toml: 1 fault", "", begin]


def test_a_broken_plug_in_that_is_asked_for_is_an_error(process, tiny):
    write("broken.py", "1 / 0")
    write("fine.py", METRIC.format(name="fine"))
    given = ("--plugin", "broken.py", "--plugin", "fine.py", "--plugin", "missing.py")
    planned = process("study", "plan", tiny, *given)
    assert (planned.returncode, planned.stdout) == (2, "")
    broken, missing = planned.stderr.splitlines()
    assert broken == "--plugin broken.py: broken.py:1: ZeroDivisionError: division by zero, in '1 / 0'"
    assert missing.startswith("--plugin missing.py: expected a plug-in at missing.py: ")


TASK = """
from activemem import GeneratedTask, TaskSizes, register_task

@register_task("parts", kind="tagging", summary="x to y", source="here")
class Parts(GeneratedTask):
    parts: int = 0
    "how many parts there are"

    @property
    def sizes(self):
        return TaskSizes(tokens=8 // self.parts, vocab=4)

    def draw(self, count, generator):
        raise RuntimeError("not yet")
"""


def test_exceptions_of_a_plug_ins_task_are_reported_with_carets(process):
    write("parts.py", TASK)
    changes = {"model": {"recipe": "ff(8)"}, "task": {"name": "parts"}, "train": {"curriculum": None}}
    write("parts.toml", study_text(**changes))
    planned = process("study", "plan", "parts.toml", "--plugin", "parts.py")
    assert planned.returncode == 2
    assert "parts: sizes: ZeroDivisionError: " in planned.stderr
    assert "^^^" in planned.stderr
    shown = process("show", "parts", "--plugin", "parts.py")
    raised = "parts.py:14: task 'parts': RuntimeError: not yet"
    assert (shown.returncode, shown.stderr) == (2, f"parts: draw: PluginError: {raised}\n")


def test_the_command_that_shows_a_study_has_its_plug_ins(process, tiny):
    write("mine.py", METRIC.format(name="mine"))
    done = process("study", "run", tiny, "--local", "--max-trials", "1", "--plugin", "mine.py")
    assert done.returncode == 0
    assert "activemem table render tiny --plugin mine.py" in " ".join(done.stderr.split())


def test_a_command_that_is_printed_leaves_out_the_plug_ins_that_every_command_loads(process, tiny):
    write("mine.py", METRIC.format(name="mine"))
    write("other.py", METRIC.format(name="other"))
    write("activemem.toml", 'plugins = ["mine.py"]')
    printed = " ".join(process("table", "render", tiny, "--plugin", "other.py").stderr.split())
    assert ("other.py" in printed, "mine.py" in printed) == (True, False)


def test_wrong_settings_are_reported_by_the_commands_that_need_them(process):
    write("activemem.toml", "plugins = 3")
    assert process("list", "metrics").returncode == 0
    shown = process("config", "show")
    assert shown.returncode == 2
    assert "plugins" in shown.stderr


FORMATS = """
from activemem import register_table_format

@register_table_format("broken_format")
def broken(table):
    return table.captions

@register_table_format("no_text")
def no_text(table):
    return 3
"""


def test_a_plug_in_format_in_the_settings_is_loaded_and_reported_if_it_fails(
    process,
):
    write("shapes.py", FORMATS)
    Path("activemem.toml").write_text('plugins = ["shapes.py"]\nformat = "broken_format"\n', encoding="utf-8")
    command = ("table", "render", "--paper", "active-memory-transformer", "--table", "table4")
    broken = process(*command)
    assert broken.stderr.startswith("shapes.py: table format 'broken_format': AttributeError: 'Table' ")
    assert "text, got int" in process(*command, "--format", "no_text").stderr
    assert process(*command, "--format", "csv").returncode == 0


def test_a_name_that_no_loaded_plug_in_registers_is_reported_with_their_files(process, golden):
    Path("empty.py").write_text("x = 1\n", encoding="utf-8")
    told = process("recipe", "check", "smoothing(taps=3)", "--plugin", "empty.py").stderr
    golden(told.splitlines()[-1])
