"""`docs/how-to/python.md`: its programs run in order, and cover the command line's functions."""

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "python.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a working folder whose store has the committed results of one study."""
    for dataset in ("trials", "metrics"):
        source = ROOT / "studies" / "results" / dataset / "algorithmic-small"
        shutil.copytree(source, tmp_path / "results" / dataset / "algorithmic-small")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.heavy
def test_the_programs_of_the_page_run_one_after_the_other(folder, capsys):
    names = {}
    for program in PROGRAMS:
        exec(compile(program, "docs/how-to/python.md", "exec"), names)
    shown = capsys.readouterr().out
    assert "sa has no parameter 'head'; nearest: heads" in shown
    assert "pre-norm, 40 tokens, batch 8, dropout 0.1" in shown
    assert "b  4 * (sa + highway_conv(k=20) >> ff(512))" in shown
    assert "12 of 12 trials done" in shown
    assert {path.name for path in folder.iterdir()} >= {
        "report.html",
        "table4.tex",
        "length.svg",
        "recipe.svg",
        "results",
    }
