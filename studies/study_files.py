"""Where study files are: those that come with the package, by name, and any other by its path."""

from __future__ import annotations

import os
from pathlib import Path

from ..diagnostics import hint
from .text.errors import StudyError, StudyFault


def shipped_studies() -> dict[str, Path]:
    """The files of the studies that come with the package, by name."""
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.toml"))}


def find_study_file(name_or_path: str | Path) -> Path:
    """The path of a study file, given by itself or by the name of a study that comes with the package.

    Raises StudyError if there is neither: with the nearest name, if one is like it.
    """
    shipped = shipped_studies()
    path = Path(name_or_path)
    if path.is_file():
        return path
    if str(name_or_path) in shipped:
        return shipped[str(name_or_path)]
    if path.is_dir():
        message = "expected a study file, got a folder"
    elif is_path(str(name_or_path)):
        message = f"there is no such file{hint(path.stem, shipped)}"
    else:
        near = hint(path.name, shipped) or ": activemem study list has all"
        message = f"there is no such file and no study of that name{near}"
    raise StudyError(str(name_or_path), [StudyFault(message=message)])


def is_path(name_or_path: str) -> bool:
    """Whether a text can only mean a file, as no study's name does: it has a folder, or ends in .toml."""
    return name_or_path.endswith(".toml") or os.sep in name_or_path or "/" in name_or_path
