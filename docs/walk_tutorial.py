"""Run all commands of the tutorial in order in a fresh folder, as its reader would.

python docs/walk_tutorial.py report the time of each step, and outputs of another shape python
docs/walk_tutorial.py --write also record the outputs in the pages, and keep the results

An output has another shape if it differs in more than numbers, since other machines train to other numbers.
Outputs of a training and of a plan are marked by `<!-- recorded in step N: COMMAND -->` and written by this
script alone, with `…` for times. `docs/refresh.py` makes all others from the results that are kept.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from reader_folders import RESULTS, TUTORIAL, fill_folder

KEPT = ("trials", "metrics")
"""The datasets of the store whose rows are stored in the repository."""

COMMAND = re.compile(
    r"(?P<mark><!-- (?P<kind>recorded|output|refusal)(?: in step \d+)?: (?P<command>[^\n]*) -->\n)"
    r"```\n\$ [^\n]*\n(?P<shown>.*?)```\n(?P<end><!-- end -->)",
    re.DOTALL,
)
COMMITS = re.compile(r"\s\([0-9a-f]{7}(?:,\s[0-9a-f]{7})*\)")
"""The pattern of commits, which only a program in a clone prints."""

NUMBER = re.compile(r"[-−+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\b[0-9a-f]{7,}\b")
TIME = re.compile(r"(?P<column>  )?(?:[~≤] ?)?{0}(?:, ≤ {0})?".format(r"\d+(?:\.\d+)? (?:s|min|h)\b"))
TRIALS = re.compile(r"((?:^ *\d+/\d+ .*\n){3})(?:^ *\d+/\d+ .*\n){3,}(^ *\d+/\d+ .*\n)", re.MULTILINE)
"""The pattern of more than six lines of trials, shortened to the first three and the last."""


def pages() -> list[Path]:
    """Return the numbered pages in reading order."""
    return sorted(TUTORIAL.glob("[0-9][0-9]-*.md"))


def record(page: Path, folder: Path, differing: list[str]) -> str:
    """Return a page with its commands' outputs in a folder.

    Outputs of another shape are added to `differing`.
    """

    def run(found: re.Match[str]) -> str:
        text = shorten(run_in(folder, found["command"]))
        if shape(text) != shape(found["shown"]):
            differing.append(f"{page.name}: {found['command']}\n{text}")
        if found["kind"] != "recorded":
            return found[0]
        return f"{found['mark']}```\n$ {found['command']}\n{text}```\n{found['end']}"

    return COMMAND.sub(run, page.read_text(encoding="utf-8"))


def run_in(folder: Path, command: str) -> str:
    """Return the output of a command, at 80 columns and without a terminal."""
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "80",
            "NO_COLOR": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def shorten(text: str) -> str:
    """Return an output without times and final tables, and with few lines of trials."""
    text = TIME.sub(lambda found: "…".rjust(len(found[0])) if found["column"] else "…", text)
    if (see := text.rfind("\nsee: activemem table")) >= 0:
        text = text[: see + 1] + text[see + 1 :].split("\n\n")[0].rstrip() + "\n"
    return TRIALS.sub(r"\1  …\n\2", text)


def shape(text: str) -> str:
    """Return a text without numbers, commits, and dependent spaces and line breaks."""
    return re.sub(r"[\s*]+", " ", NUMBER.sub("0", COMMITS.sub("", text)))


def cpu_seconds() -> float:
    """Return the CPU seconds of all commands so far, which other programs hardly affect."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def keep(folder: Path) -> None:
    """Replace the stored rows by the reader's, and store the study from `study promote`."""
    for dataset in KEPT:
        shutil.rmtree(RESULTS / dataset, ignore_errors=True)
        shutil.copytree(folder / "results" / dataset, RESULTS / dataset)
    shutil.copy(folder / "winners.toml", TUTORIAL / "steps" / "10")


def walk(folder: Path, *, write: bool) -> Iterator[str]:
    """Run all commands of all pages, and yield lines to print."""
    for page in pages():
        fill_folder(folder, int(page.name[:2]))
        differing: list[str] = []
        began, busy = time.monotonic(), cpu_seconds()
        text = record(page, folder, differing)
        wall, cpu = time.monotonic() - began, cpu_seconds() - busy
        yield f"{page.name}: {wall:.0f} s, of the CPU {cpu:.0f} s"
        if write:
            page.write_text(text, encoding="utf-8")
        else:
            yield from (f"another shape: {each}" for each in differing)
    if write:
        keep(folder)


def main() -> None:
    """Run the tutorial; exit with 1 if an output has another shape."""
    with tempfile.TemporaryDirectory() as folder:
        status = 0
        for line in walk(Path(folder), write="--write" in sys.argv):
            print(line, flush=True)  # noqa: T201 -- a script's output
            status |= line.startswith("another shape")
        sys.exit(status)


if __name__ == "__main__":
    main()
