"""Refresh what the documents show of the program: the output of each command between its two marks.

    python docs/refresh.py           write the documents anew
    python docs/refresh.py --check   exit with 1 and name the documents that are out of date

A mark is `<!-- output: activemem … -->`; what follows it, up to `<!-- end -->`, is what the command prints:
as it is for Markdown, else in a fence. `<!-- generated: NAME -->` is followed by what `language.py` or
`keys.py` has under that name, and `<!-- figure: activemem curve render … -->` by the figure.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from drawn import refresh_figures
from keys import KEYS
from language import GENERATED

ROOT = Path(__file__).parent.parent
OUTPUT_MARK = re.compile(r"(<!-- output: (?P<command>activemem [^\n]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
GENERATED_MARK = re.compile(r"(<!-- generated: (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def documents() -> list[Path]:
    """Every document of the repository that may show output."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def refresh(text: str, stale: list[Path]) -> str:
    """The text with every marked output as the program prints it now, and what the code says.

    Figures that are out of date join the stale.
    """
    text = refresh_figures(text, stale, check="--check" in sys.argv)
    text = GENERATED_MARK.sub(
        lambda found: f"{found[1]}\n{(GENERATED | KEYS)[found['name']]()}\n\n{found[3]}", text
    )
    return OUTPUT_MARK.sub(lambda found: f"{found[1]}{_format_output(found['command'])}{found[3]}", text)


def run_command(command: str) -> str:
    """What a command prints to standard output and standard error, run at the root without a terminal.

    A command that breaks ends the refreshing; one that refuses its input, with status 2, may be shown, and so
    may claims of which one is refuted.
    """
    environment = os.environ | {"COLUMNS": "80", "NO_COLOR": "1"}
    words = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(
        words,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    refuted = done.returncode == 1 and "claim check" in command and "Traceback" not in done.stdout
    if done.returncode not in (0, 2) and not refuted:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def _format_output(command: str) -> str:
    text = run_command(command)
    if "--format markdown" in command:
        return f"\n{text}\n"
    return f"```\n$ {command}\n{text}```\n"


def main() -> None:
    """Write or check."""
    stale: list[Path] = []
    for path in documents():
        before = path.read_text(encoding="utf-8")
        after = refresh(before, stale)
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
