"""Folders in the state of a document's reader, for the outputs on its pages."""

from __future__ import annotations

import re
import shutil
import tempfile
import tomllib
from functools import cache
from pathlib import Path

from forked_programs import run_forked

ROOT = Path(__file__).parent.parent
TUTORIAL = ROOT / "docs" / "tutorial"
RESULTS = TUTORIAL / "results"
"""The results of the tutorial, and of studies on other pages."""

_STUDY = re.compile(r"^```toml(?: part)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CSV = re.compile(r"^```csv (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TEMP_FOLDER = tempfile.TemporaryDirectory()


@cache
def folder_of_step(step: str | None) -> Path:
    """Return a folder with the reader's files and results at a step; the repository root without a step.

    Step 0 is the README, whose reader has not yet begun the tutorial, and has only results of its study.
    """
    if step is None:
        return ROOT
    folder = Path(_TEMP_FOLDER.name, step)
    fill_folder(folder, int(step))
    shutil.copytree(RESULTS, folder / "results")
    if step == "0":
        run_forked("activemem study forget mine.toml --stale --yes", folder)
    return folder


def fill_folder(folder: Path, step: int) -> None:
    """Copy the reader's files of all steps up to this one into a folder."""
    for number in range(step + 1):
        if (place := TUTORIAL / "steps" / f"{number:02}").is_dir():
            shutil.copytree(place, folder, dirs_exist_ok=True)


@cache
def folder_of_page(page: Path) -> Path:
    """Return a folder with the studies of a page, and with their results."""
    folder = Path(_TEMP_FOLDER.name, page.stem)
    folder.mkdir()
    write_studies(page, folder)
    shutil.copytree(RESULTS, folder / "results")
    return folder


def write_studies(page: Path, folder: Path) -> None:
    """Write each study with a name on a page into a file of that name, and each CSV file with a name."""
    page_text = page.read_text(encoding="utf-8")
    for name, text in _CSV.findall(page_text):
        (folder / name).write_text(text, encoding="utf-8")
    for text in _STUDY.findall(page_text):
        if name := tomllib.loads(text).get("study", {}).get("name"):
            (folder / f"{name}.toml").write_text(text, encoding="utf-8")


def cut_lines(text: str, ranges: str | None) -> str:
    """Return some lines of an output, such as `1-9 15-16`, with `…` in place of the others."""
    if ranges is None:
        return text
    lines, shown, before = text.splitlines(keepends=True), "", 0
    for each in ranges.split():
        first, _, last = each.partition("-")
        start, end = int(first), int(last or first)
        shown += ("  …\n" if start > before + 1 else "") + "".join(lines[start - 1 : end])
        before = end
    return shown + ("  …\n" if before < len(lines) else "")
