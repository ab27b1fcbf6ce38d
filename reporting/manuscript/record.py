"""The record of a paper's last build, which `paper check` compares with the files of the paper.

Drawings differ between machines and versions of matplotlib, so a check cannot compare them with new ones.
The record has a digest of each drawing together with its `.tex` file. That file has a hash of the figure's
data, and the check compares it with the store. So a drawing is stale if it does not fit its digest, or if its
`.tex` file is stale.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from ...studies.text.strict_model import StrictModel

RECORD = "build.json"
_DRAWINGS = (".pdf", ".svg")


class BuildRecord(StrictModel):
    """The record of a build: the digest of each drawing, by its file."""

    drawings: dict[str, str]

    def fits(self, folder: Path, drawing: str) -> bool:
        """Return whether a drawing in a folder and its `.tex` file are those of the build."""
        tex = folder / _tex_of(drawing)
        found = tex.is_file() and _digest(drawing, (folder / drawing).read_bytes(), tex.read_bytes())
        return found == self.drawings.get(drawing)


def read_record(folder: Path) -> BuildRecord | None:
    """Return the record in the folder of generated files, or None if it is missing or damaged."""
    try:
        return BuildRecord.model_validate_json((folder / RECORD).read_bytes())
    except (OSError, ValidationError):
        return None


def encode_record(files: Mapping[str, bytes]) -> bytes:
    """Return the content of the record of a build that has written these files."""
    drawings = {
        name: _digest(name, content, files[_tex_of(name)])
        for name, content in files.items()
        if name.endswith(_DRAWINGS)
    }
    return (json.dumps({"drawings": drawings}, ensure_ascii=False, indent=1) + "\n").encode()


def with_unix_line_ends(content: bytes) -> bytes:
    """Return the content of a text file with the line ends of `paper build`, which git may have changed."""
    return content.replace(b"\r\n", b"\n")


def _tex_of(drawing: str) -> str:
    return str(PurePosixPath(drawing).with_suffix(".tex"))


def _digest(name: str, drawing: bytes, tex: bytes) -> str:
    drawn = drawing if name.endswith(".pdf") else with_unix_line_ends(drawing)
    return hashlib.sha256(drawn + with_unix_line_ends(tex)).hexdigest()
