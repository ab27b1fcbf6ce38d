"""The record of a paper's last build, which `paper check` compares with the files of the paper.

Drawings differ between machines and versions of matplotlib, so a check cannot compare them with new ones.
The record has a digest of each drawing together with its `.tex` file. That file has a hash of the figure's
data, and the check compares it with the store. So a drawing is stale if it does not fit its digest, or if its
`.tex` file is stale. The record also has the last values of each number, which the text may still have.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from ...studies.text.strict_model import StrictModel
from .paper_file import PaperNumber

RECORD = "build.json"
_DRAWINGS = (".pdf", ".svg")
_KEPT = 4
"""The maximum number of values of a number, the present one among them."""


class BuildRecord(StrictModel):
    """The record of a build: digests of drawings by file, and the last values of numbers, the newest last."""

    drawings: dict[str, str]
    numbers: dict[str, list[str]]

    def fits(self, folder: Path, drawing: str) -> bool:
        """Return whether a drawing in a folder and its `.tex` file are from the build."""
        tex = folder / _tex_of(drawing)
        found = tex.is_file() and _digest(drawing, (folder / drawing).read_bytes(), tex.read_bytes())
        return found == self.drawings.get(drawing)


def read_record(folder: Path) -> BuildRecord | None:
    """Return the record in the folder of generated files, or None if it is missing or damaged."""
    try:
        return BuildRecord.model_validate_json((folder / RECORD).read_bytes())
    except (OSError, ValidationError):
        return None


def encode_build_record(
    files: Mapping[str, bytes], numbers: Mapping[str, PaperNumber], last: BuildRecord | None
) -> bytes:
    """Return the content of the record of a build of these files and numbers. `last` is the one before."""
    values = dict[str, list[str]]()
    for name, number in numbers.items():
        earlier = last.numbers.get(name, []) if last else []
        now = [] if number.text is None else [number.text]
        values[name] = [*(each for each in earlier if each not in now), *now][-_KEPT:]
    drawings = {
        name: _digest(name, content, files[_tex_of(name)])
        for name, content in files.items()
        if name.endswith(_DRAWINGS)
    }
    record = {"drawings": drawings, "numbers": values}
    return (json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode()


def with_unix_line_ends(content: bytes) -> bytes:
    """Return the content of a text file with the line ends of `paper build`, which git may have changed."""
    return content.replace(b"\r\n", b"\n")


def _tex_of(drawing: str) -> str:
    return str(PurePosixPath(drawing).with_suffix(".tex"))


def _digest(name: str, drawing: bytes, tex: bytes) -> str:
    drawn = drawing if name.endswith(".pdf") else with_unix_line_ends(drawing)
    return hashlib.sha256(drawn + with_unix_line_ends(tex)).hexdigest()
