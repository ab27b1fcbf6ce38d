"""`activemem paper show` prints the sheet of a paper as text, Markdown and JSON."""

from pathlib import Path

PAPER = "negative-eigenvalues"
COMMITTED = Path(__file__).parents[3] / "studies" / "results"


def test_the_command_prints_the_sheet(run):
    shown = run("paper", "show", PAPER, "--results", str(COMMITTED), "--no-tables")
    assert shown.exit_code == 0
    assert shown.stdout.startswith(f"{PAPER}\n14 printed numbers: 0 measured at full size, ")
    assert max(map(len, shown.stdout.splitlines())) <= 80
    page = run("paper", "show", PAPER, "--results", str(COMMITTED), "--json")
    assert '"cells": [' in page.stdout
    text = run("paper", "show", PAPER, "--results", str(COMMITTED), "--format", "markdown").stdout
    assert "| claim | full size | small size |" in text
    assert run("paper", "show").exit_code == 2
