"""`docs/how-to/programs.md`: its points are proposed and accepted as it shows."""

import re

import pytest
from typer.testing import CliRunner

from activemem.cli import command_line

from .test_study_files_of_pages import HOW_TO, PARTS, completed

SHOWN = dict(
    re.findall(
        r"^```\n\$ activemem study (\w+) [^\n]*\n(.*?)^```$", HOW_TO["programs"], re.DOTALL | re.MULTILINE
    )
)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    """Work in a folder with the search of `docs/how-to/search.md` to which the page refers."""
    (kernels,) = [part for name, part in PARTS if name == "search" and 'name = "kernels"' in part]
    (tmp_path / "kernels.toml").write_text(completed(kernels), encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def assert_shown(lines, shown):
    """Assert that lines are as shown, where `…` is any text."""
    for line, pattern in zip(lines, shown, strict=True):
        assert re.fullmatch(".*".join(map(re.escape, re.split(" ?… ?", pattern))), line), (line, pattern)


def test_a_search_proposes_the_points_of_the_page():
    done = CliRunner().invoke(
        command_line, ["study", "propose", "kernels.toml", "-n", "2"], catch_exceptions=False
    )
    assert_shown(done.stdout.splitlines(), SHOWN["propose"].splitlines())


def test_points_are_answered_as_on_the_page():
    first, accepted, second, refused = SHOWN["tell"].splitlines()
    done = CliRunner().invoke(command_line, ["study", "tell", "kernels.toml"], input=f"{first}\n{second}\n")
    assert_shown(done.stdout.splitlines(), [accepted, refused])
