"""Plug-ins of a command: from its options, the environment and activemem.toml; a broken one stops nothing."""

from pathlib import Path

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
    given = process("metric", "list", "--plugin", "option.py", "--plugin", "variable.py")
    assert "Something · option.py" in given.stdout
    assert "by_variable" in given.stdout
    write("activemem.toml", 'plugins = ["file.py"]')
    Path("below").mkdir()
    assert "Something · file.py" in process("metric", "list").stdout
    found = process("metric", "list", ACTIVEMEM_PLUGINS="option.py:variable.py")
    assert ("by_option" in found.stdout, "by_file" in found.stdout) == (True, False)


def test_a_broken_plug_in_is_named_and_everything_else_works(process, tiny):
    write("broken.py", "1 / 0")
    write("fine.py", METRIC.format(name="fine"))
    write("activemem.toml", 'plugins = ["broken.py", "missing.py", "fine.py"]')
    listed = process("metric", "list")
    assert listed.returncode == 0
    assert "Something · fine.py" in listed.stdout
    broken, missing = listed.stderr.splitlines()
    assert broken == "plug-in that cannot be used: broken.py:1: ZeroDivisionError: division by zero"
    assert missing.startswith("plug-in that cannot be used: expected a plug-in at ")
    assert process("study", "plan", tiny).returncode == 0


def test_the_command_that_shows_a_study_has_its_plug_ins(process, tiny):
    write("mine.py", METRIC.format(name="mine"))
    done = process("study", "run", tiny, "--local", "--max-trials", "1", "--plugin", "mine.py")
    assert done.returncode == 0
    assert "activemem table render tiny --plugin mine.py" in " ".join(done.stderr.split())


def test_settings_that_are_wrong_are_told_by_who_needs_them(process):
    write("activemem.toml", "plugins = 3")
    assert process("metric", "list").returncode == 0
    shown = process("config", "show")
    assert shown.returncode == 2
    assert "plugins" in shown.stderr
