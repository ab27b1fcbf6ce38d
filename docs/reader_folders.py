"""Folders in the state of a tutorial's reader, for the outputs on its pages."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
TUTORIAL = ROOT / "docs" / "tutorial"
RESULTS = TUTORIAL / "results"
_TEMP_FOLDER = tempfile.TemporaryDirectory()


@cache
def folder_of_step(step: str | None) -> Path:
    """Return a folder with the reader's files and results at a step; the repository root without a step."""
    if step is None:
        return ROOT
    folder = Path(_TEMP_FOLDER.name, step)
    fill_folder(folder, int(step))
    shutil.copytree(RESULTS, folder / "results")
    return folder


def fill_folder(folder: Path, step: int) -> None:
    """Copy the reader's files of all steps up to this one into a folder."""
    for number in range(1, step + 1):
        if (place := TUTORIAL / "steps" / f"{number:02}").is_dir():
            shutil.copytree(place, folder, dirs_exist_ok=True)
