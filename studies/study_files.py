"""Locations of study files: shipped ones by name, others by path."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from ..diagnostics import hint, nearest
from .text.errors import StudyError, StudyFault

MAX_BESIDE = 1000
"""The most files of a folder that are looked at for a name like that of a missing one."""


def shipped_studies() -> dict[str, Path]:
    """Return the files of the shipped studies by name."""
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.toml"))}


def find_study_file(name_or_path: str | Path) -> Path:
    """Return the path of a study file, given as a path or as the name of a shipped study.

    Raise StudyError with the nearest name if neither exists.
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
        message = f"there is no such file{_beside(path) or hint(path.stem, shipped)}"
    else:
        near = hint(path.name, shipped) or ": see activemem study list"
        message = f"there is no such file and no study of that name{near}"
    raise StudyError(str(name_or_path), [StudyFault(message=message)])


def _beside(path: Path) -> str:
    """Return `; nearest: PATH` of the TOML files in the folder of a path, or nothing if none is near."""
    stems = [each.stem for each in islice(path.parent.glob("*.toml"), MAX_BESIDE)]
    near = nearest(path.stem, stems)
    return f"; nearest: {path.with_name(f'{near}.toml')}" if near else ""


def is_path(name_or_path: str) -> bool:
    """Return whether a text must be a path: it has a folder, or ends in .toml."""
    return name_or_path.endswith(".toml") or os.sep in name_or_path or "/" in name_or_path
