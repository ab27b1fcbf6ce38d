"""Refresh generated parts of the documents, such as the output of each command between its two marks.

python docs/refresh.py [DOCUMENT …] write these documents anew, or all python docs/refresh.py --check
[DOCUMENT …] exit with 1 and name those that are out of date

A mark is `<!-- output: activemem … -->`; what follows it, up to `<!-- end -->`, is what the command prints:
as it is for Markdown, else in a fence. `<!-- refusal: activemem … -->` is the same for a command that is to
refuse its input. `<!-- output in step 4: activemem … -->` runs where the reader of that step of the tutorial
is, and `<!-- output on this page: … -->` beside the studies of this page, whose results `walk_tutorial.py`
makes. `, lines 1-9 15-16` before the colon shows these lines, and `…` in place of the others.
`<!-- generated: NAME -->` is followed by what `recipe_language.py`, `study_keys.py`, `json_forms.py` or
`catalogs.py` has under that name, `<!-- figure: activemem curve render … -->` by the figure, and
`<!-- capture: activemem … -->` by a picture of the output that the page has of that command.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from captures import refresh_captures
from catalogs import CATALOGS
from forked_programs import ROOT, run_forked
from json_forms import JSON
from reader_folders import cut_lines, folder_of_page, folder_of_step
from recipe_language import GENERATED
from shown_figures import refresh_figures
from study_keys import KEYS

OUTPUT_MARK = re.compile(
    r"(<!-- (?P<kind>output|refusal)(?: in step (?P<step>\d+)| (?P<own>on this page))?"
    r"(?:, lines (?P<lines>[\d -]+))?: (?P<command>activemem [^\n]*?) -->\n)"
    r".*?(?P<end><!-- end -->)",
    re.DOTALL,
)
GENERATED_MARK = re.compile(r"(<!-- generated: (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def documents() -> list[Path]:
    """Return every document of the repository with possible marks."""
    others = [ROOT / "README.md", ROOT / "studies" / "results" / "README.md"]
    return [*others, *sorted((ROOT / "docs").rglob("*.md"))]


def refresh(path: Path, stale: list[Path]) -> str:
    """Return a document's text with every marked output replaced by the current output.

    Figures that are out of date are added to `stale`.
    """
    text = refresh_figures(path, stale, check="--check" in sys.argv)
    parts = GENERATED | KEYS | JSON | CATALOGS
    text = GENERATED_MARK.sub(lambda found: f"{found[1]}\n{parts[found['name']]()}\n\n{found[3]}", text)
    text = OUTPUT_MARK.sub(lambda found: _show_output(found, path), text)
    return refresh_captures(path, text, stale, check="--check" in sys.argv)


def run_command(command: str, kind: str, folder: Path) -> str:
    """Return a command's output and error output, run in a folder.

    An unexpected exit status stops the refresh, except that claims may be refuted or undecided.
    """
    status, text = run_forked(command, folder)
    checks = "claim check" in command or "activemem judge" in command
    unconfirmed = status in (1, 3) and checks and "Traceback" not in text
    if status != {"output": 0, "refusal": 2}[kind] and not unconfirmed:
        sys.exit(f"{command} ended with {status}:\n{text}")
    return text


def _show_output(found: re.Match[str], page: Path) -> str:
    """Return a mark on a page with its command's current output."""
    command, kind, end = found.group("command", "kind", "end")
    folder = folder_of_page(page) if found["own"] else folder_of_step(found["step"])
    text = cut_lines(run_command(command, kind, folder), found["lines"])
    shown = f"\n{text}\n" if "--format markdown" in command else f"```\n$ {command}\n{text}```\n"
    return found[1] + shown + end


def main() -> None:
    """Refresh or check the documents."""
    stale: list[Path] = []
    named = [ROOT / word for word in sys.argv[1:] if word != "--check"]
    for path in named or documents():
        before = path.read_text(encoding="utf-8")
        after = refresh(path, stale)
        if after != before:
            stale.append(path.relative_to(ROOT))
            if "--check" not in sys.argv:
                path.write_text(after, encoding="utf-8")
    verb = "out of date" if "--check" in sys.argv else "refreshed"
    for path in stale:
        print(f"{verb}: {path}")  # noqa: T201 -- a script's output
    sys.exit(1 if stale and "--check" in sys.argv else 0)


if __name__ == "__main__":
    main()
