import html
import json
import os
import re
import shlex
import shutil
from contextlib import suppress
from pathlib import Path
from statistics import mean, stdev

import pytest

from activemem import Store
from activemem.plugins import unload_plugin

from ...forked_commands import start_program
from ...study_texts import study_text
from ..store_factories import make_partial_store


def test_the_last_study_is_written_to_a_page_of_its_name(run, tiny):
    make_partial_store(tiny)
    result = run("report", "build")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "tiny.html\n", "")
    page = Path("tiny.html").read_text(encoding="utf-8")
    assert "6 of 8 trials done · 1 failed · 1 left." in page
    assert page.count("<img ") == 2


def test_a_page_is_written_where_it_is_wanted(run, tiny):
    make_partial_store(tiny)
    result = run("report", "build", "tiny", "--out", "a page.html")
    assert (result.exit_code, result.stdout) == (0, "a page.html\n")
    named = json.loads(run("report", "build", "tiny", "--out", "a page.html", "--json").stdout)
    assert named == {"schema": 3, "study": "tiny", "file": "a page.html"}
    assert "<title>A study of seconds" in Path("a page.html").read_text(encoding="utf-8")


def test_the_folder_of_a_report_is_made(run, tiny):
    make_partial_store(tiny)
    result = run("report", "build", "--out", "pages/new/reviews")
    assert (result.exit_code, result.stderr) == (0, "")
    assert Path("pages/new/reviews").stat().st_size > 0
    folder = run("report", "build", "--out", "pages")
    assert (folder.exit_code, "'pages' is a directory" in folder.stderr) == (2, True)


@pytest.mark.parametrize(
    "command",
    [
        ("report", "build", "quickstart"),
        ("curve", "render", "algorithmic", "--results", "elsewhere"),
    ],
)
def test_nothing_is_written_of_a_store_without_results(run, command, golden):
    result = run(*command)
    assert (result.exit_code, result.stdout, list(Path().iterdir())) == (1, "", [])
    golden(result.stderr)
    assert str(Path(command[-1] if "--results" in command else "results").resolve()) in result.stderr


@pytest.mark.parametrize("command", ["report build", "curve render"])
def test_a_store_that_was_copied_without_its_metrics_is_named(run, tiny, command):
    chosen = 'select = { mixer = "conv(k=3)", task = "not" }'
    curve = f'[[curve]]\nname = "c"\nkind = "line"\nvalue = "loss"\nx = "epoch"\n{chosen}\n'
    Path(tiny).write_text(f"{Path(tiny).read_text(encoding='utf-8')}\n{curve}", encoding="utf-8")
    store = make_partial_store(tiny)
    said = "the metrics of tiny by epoch are not in"
    assert said not in run(*command.split(), tiny).stderr
    shutil.rmtree(store.root / "metrics")
    result = run(*command.split(), tiny)
    assert result.exit_code == 0
    assert said in result.stderr


def test_a_file_whose_name_says_something_else_is_refused(run, tiny):
    make_partial_store(tiny)
    result = run("report", "build", "--out", "a.pdf")
    assert (result.exit_code, "name in .html, got 'a.pdf'" in result.stderr) == (2, True)
    assert not Path("a.pdf").exists()


def test_a_study_that_does_not_exist_is_reported(run):
    result = run("report", "build", "nothing.toml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("nothing.toml: 1 fault\n")
    assert list(Path().iterdir()) == []


def test_a_page_that_cannot_be_written_is_reported(run, tiny):
    make_partial_store(tiny)
    result = run("report", "build", "tiny", "--out", "tiny.toml/page.html")
    assert result.exit_code == 2
    assert result.stderr == "tiny.toml: this is a file, not a folder; choose another place with --out\n"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("report", "build", "tiny.toml"), "making tiny.html …"),
        pytest.param(("curve", "render", "tiny.toml"), "drawing tiny-c.svg …", marks=pytest.mark.heavy),
        (("study", "plan", "tiny.toml"), "computing the costs of tiny.toml …"),
        (("block", "verify", "mean_pool"), "checking mean_pool …"),
        (("study", "run", "tiny.toml", "--local", "--max-trials", "1"), "loading torch …"),
    ],
)
def test_a_terminal_shows_what_the_command_is_waiting_for_and_then_erases_it(tiny, command, told):
    make_partial_store(tiny)
    curve = '[[curve]]\nname = "c"\nkind = "bar"\nx = "mixer"\nvalue = "loss"\nselect = { task = "not" }\n'
    Path(tiny).write_text(f"{Path(tiny).read_text('utf-8')}\n{curve}", encoding="utf-8")
    terminal, theirs = os.openpty()
    started, shown = start_program("activemem", *command, stderr=theirs), b""
    with suppress(OSError):  # Linux ends what a terminal shows with an error
        while piece := os.read(terminal, 4096):
            shown += piece
    os.close(terminal)
    started.wait()
    assert f"\r{told}\r{' ' * len(told)}\r" in f"\r{shown.decode()}"


PLUGIN = """
from activemem import Block, Reach, register_block


@register_block("twice", parameters=(), reach=lambda settings, context: Reach(left=0, right=0))
class Twice(Block):
    def __init__(self, *, width, causal):
        super().__init__()

    def forward(self, x, mask=None):
        return 2 * x
"""


def test_the_commands_of_a_report_make_its_results_in_an_empty_folder(run, tmp_path, monkeypatch, golden):
    def write(holds):
        text = study_text(
            study={"max_seeds": 5},
            factors={"mixer": ["twice"], "task": ["reverse"], "seed": [0, 1, 2]},
            claim=[{"name": "the loss is high", "holds": f"loss[mixer=twice] > {holds}"}],
        )
        Path("tiny.toml").write_text(text, encoding="utf-8")

    def losses():
        rows = Store("results").trials({"loss"})["metrics"]
        return [each["value"] for row in rows for each in row if each["name"] == "loss"]

    Path("twice.py").write_text(PLUGIN, encoding="utf-8")
    write(0.5)
    assert run("study", "run", "tiny.toml", "--local", "--plugin", "twice.py").exit_code == 0
    write(mean(losses()) - 1.2 * stdev(losses()))  # three seeds do not decide it
    options = ("--local", "--until-decided", "--plugin", "twice.py")
    assert run("study", "run", "tiny.toml", *options).exit_code == 0
    assert run("report", "build", "tiny", "--plugin", "twice.py").exit_code == 0
    trained, page = sorted(losses()), Path("tiny.html").read_text(encoding="utf-8")
    section = page.partition('<section aria-labelledby="reproduce">')[2].partition("</section>")[0]
    lead, commands, study, plugin = map(html.unescape, re.findall(r"<(?:p|code)>(.*?)</", section, re.DOTALL))
    golden(f"{lead}\n{commands}")

    unload_plugin("twice.py")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir("empty")
    Path("tiny.toml").write_text(study, encoding="utf-8")
    Path("twice.py").write_text(plugin, encoding="utf-8")
    for line in commands.splitlines():
        assert run(*shlex.split(line)[1:], *(["--local"] if " run " in line else [])).exit_code == 0
    assert sorted(losses()) == trained
    assert Path("tiny.html").read_text(encoding="utf-8").count("twice.py") == page.count("twice.py")
