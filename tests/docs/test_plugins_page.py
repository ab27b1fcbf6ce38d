"""`docs/plugins.md`: its files do what it says, from the command line."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
(COMMANDS,) = re.findall(r"^```\n(activemem .*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path):
    """A folder with the files of the page."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def command(folder, line):
    words = [sys.executable, "-m", *line.split()]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)


def test_the_commands_of_the_page_train_and_show_its_metric_on_a_cluster(folder):
    run, table, listed = (command(folder, line) for line in COMMANDS.splitlines())
    assert (run.returncode, table.returncode, listed.returncode) == (0, 0, 0), run.stderr
    assert "2 of 2 trials done" in run.stderr
    assert "Probability of what is predicted: one seed." in table.stdout
    assert re.search(r"conv\(k=3\) +\*?0\.\d\d\d", table.stdout)
    assert "confidence ↑" in listed.stdout
    assert "Probability of what is predicted · confidence.py" in listed.stdout


def test_without_its_plug_in_the_metric_of_the_study_is_unknown(folder):
    plan = command(folder, "activemem study plan sure.toml")
    assert plan.returncode == 2
    assert "unknown metric 'confidence'" in plan.stderr
