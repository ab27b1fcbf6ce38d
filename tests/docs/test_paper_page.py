"""`docs/how-to/paper.md`: its paper is built from committed results, and LaTeX compiles it."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from activemem.cli import command_line

from ..latex import compile_latex

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "paper.md").read_text(encoding="utf-8")


def block(name):
    """Return a fenced block of the page by its name."""
    return re.search(rf"^```{name}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the page's paper and the results of its studies, built by its command."""
    made = tmp_path_factory.mktemp("paper")
    for dataset in ("trials", "metrics"):
        (made / "results" / dataset).mkdir(parents=True)
        for study in ("which-mixer", "muon-small"):
            committed = ROOT / "studies" / "results" / dataset / study
            (made / "results" / dataset / study).symlink_to(committed)
    (made / "paper.toml").write_text(block("toml paper"), encoding="utf-8")
    (made / "main.tex").write_text(block("latex"), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        built = CliRunner().invoke(command_line, ["paper", "build", "paper.toml"], catch_exceptions=False)
    assert built.exit_code == 0
    return made


def test_the_paper_of_the_page_loads_the_packages_that_its_tables_name(folder):
    table = folder / "generated" / "which-mixer" / "table-accuracy.tex"
    (named,) = re.findall(r"\\usepackage{(textcomp.*?)}", table.read_text(encoding="utf-8"))
    (loaded,) = re.findall(r"\\usepackage{(.*?)}", block("latex"))
    assert set(named.split(",")) <= set(loaded.split(","))


def test_latex_compiles_the_paper_of_the_page(folder):
    log = compile_latex(folder, block("latex"), "booktabs", "adjustbox")
    assert "Warning: unknown number" not in log
    assert "Overfull" not in log
