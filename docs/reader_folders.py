"""Folders as the reader of the tutorial has them, for the outputs that its pages show."""

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
    """Return a folder with the files and results that the reader of a step has; without a step the root."""
    if step is None:
        return ROOT
    folder = Path(_TEMP_FOLDER.name, step)
    fill_folder(folder, int(step))
    shutil.copytree(RESULTS, folder / "results")
    return folder


def fill_folder(folder: Path, step: int) -> None:
    """Copy into a folder what the reader of a step has written: the files of all steps up to it."""
    for number in range(1, step + 1):
        if (place := TUTORIAL / "steps" / f"{number:02}").is_dir():
            shutil.copytree(place, folder, dirs_exist_ok=True)
