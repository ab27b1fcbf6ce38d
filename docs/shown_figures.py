"""The figures of the documents, rendered by their commands into docs/figures."""

from __future__ import annotations

import posixpath
import re
import tempfile
from functools import cache
from pathlib import Path

from forked_programs import run_forked
from reader_folders import folder_of_step

DOCS = Path(__file__).parent
FIGURE_MARK = re.compile(
    r"(<!-- figure(?: in step (?P<step>\d+))?: "
    r"(?P<command>activemem curve render [^\n]*?--curve (?P<name>\S+)) -->\n)"
    r".*?(?P<end><!-- end -->)",
    re.DOTALL,
)
_TEMP_FOLDER = tempfile.TemporaryDirectory()


def refresh_figures(path: Path, stale: list[Path], *, check: bool) -> str:
    """Return a document's text with an image after every mark.

    Outdated image files are added to `stale`.
    """

    def shown(found: re.Match[str]) -> str:
        command, step = found["command"].replace(f" --curve {found['name']}", ""), found["step"]
        files = _render_files(command, step)
        fresh = next(file for file in files if file.stem.endswith(f"-{found['name']}"))
        kept = DOCS / "figures" / (f"step-{step}-{fresh.name}" if step else fresh.name)
        if not kept.is_file() or kept.read_bytes() != fresh.read_bytes():
            stale.append(kept.relative_to(DOCS.parent))
            if not check:
                kept.parent.mkdir(exist_ok=True)
                kept.write_bytes(fresh.read_bytes())
        title = re.search("<title>(.*)</title>", fresh.read_text(encoding="utf-8"))
        picture = f"![{title[1] if title else fresh.stem}]({posixpath.relpath(kept, path.parent)})"
        return f"{found[1]}\n    {found['command']}\n\n{picture}\n\n{found['end']}"

    return FIGURE_MARK.sub(shown, path.read_text(encoding="utf-8"))


@cache
def _render_files(command: str, step: str | None) -> list[Path]:
    """Return the files of all figures of a study, rendered by one command."""
    place = tempfile.mkdtemp(dir=_TEMP_FOLDER.name)
    status, text = run_forked(f"{command} --out {place}/", folder_of_step(step))
    if status:
        raise SystemExit(f"$ {command}\n{text}")
    return [Path(line) for line in text.splitlines()]
