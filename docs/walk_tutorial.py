"""Run all commands of the tutorial in order in a fresh folder, as its reader would.

python docs/walk_tutorial.py [PAGE …] report the time of each page, and outputs of another shape; without
PAGE of all pages

python docs/walk_tutorial.py --write [PAGE …] also record the outputs in the pages, and keep the results of
the tutorial if all its pages are named

An output has another shape if it differs in more than numbers, since other machines train to other numbers.
Outputs of a training and of a plan are marked by `<!-- recorded in step N: COMMAND -->` and written by this
script alone, with `…` for times. `docs/refresh.py` makes all others from the results that are kept. The
steps of the tutorial share one folder; every other page of `OTHERS` has a fresh one. Of the pages in
`STUDIES` their studies are trained, only with `--write`.
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

from reader_folders import RESULTS, ROOT, TUTORIAL, cut_lines, fill_folder, write_studies

KEPT = ("trials", "metrics")
"""The datasets of the store whose rows are stored in the repository."""

DOCS = ROOT / "docs"
OTHERS = {ROOT / "README.md": 0, DOCS / "why" / "plans.md": 3}
"""The pages apart from the tutorial with recorded outputs, and the step whose files their reader has."""

STUDIES = {
    ROOT / "docs" / "how-to" / "train.md": "muon",
    ROOT / "docs" / "how-to" / "lengths.md": "positions",
}
"""The pages that show a table of a whole study, and the name of this study."""

COMMAND = re.compile(
    r"(?P<mark><!-- (?P<kind>recorded|output|refusal)(?: in step \d+)?(?:, lines (?P<lines>[\d -]+))?: "
    r"(?P<command>[^\n]*) -->\n)"
    r"```\n\$ [^\n]*\n(?P<shown>.*?)```\n(?P<end><!-- end -->)",
    re.DOTALL,
)
COMMITS = re.compile(r"\s\([0-9a-f]{7}(?:,\s[0-9a-f]{7})*\)")
"""The pattern of commits, which only a program in a clone prints."""

NUMBER = re.compile(r"[-−+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\b[0-9a-f]{7,}\b")
TIME = re.compile(r"(?P<column>  )?(?:[~≤] ?)?{0}(?:, ≤ {0})?".format(r"\d+(?:\.\d+)? (?:s|min|h)\b"))
LATE = re.compile(
    r"\s+Claims that were changed or added after there were results:.*?\(after \d+ trials\)\.", re.DOTALL
)
"""A sentence that the kept results do not lead to, since they have no records of runs."""
TRIALS = re.compile(r"((?:^ *\d+/\d+ .*\n){3})(?:^ *\d+/\d+ .*\n){3,}(^ *\d+/\d+ .*\n)", re.MULTILINE)
"""The pattern of more than six lines of trials, shortened to the first three and the last."""


def pages() -> list[Path]:
    """Return the numbered pages in reading order."""
    return sorted(TUTORIAL.glob("[0-9][0-9]-*.md"))


def record(page: Path, folder: Path, differing: list[str]) -> str:
    """Return a page with its commands' outputs in a folder; of a page in `OTHERS` only recorded ones are run.

    Outputs of another shape are added to `differing`.
    """

    def run(found: re.Match[str]) -> str:
        if page in OTHERS and found["kind"] != "recorded":
            return found[0]
        text = cut_lines(shorten(run_in(folder, found["command"])), found["lines"])
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
    """Return an output without times, with `…` for final tables and with few lines of trials."""
    text = TIME.sub(lambda found: "…".rjust(len(found[0])) if found["column"] else "…", text)
    if (see := text.rfind("\nsee: activemem table")) >= 0:
        text = text[: see + 1] + text[see + 1 :].split("\n\n")[0].rstrip() + "\n  …\n"
    return TRIALS.sub(r"\1  …\n\2", text)


def shape(text: str) -> str:
    """Return a text without numbers, commits, and dependent spaces and line breaks."""
    return re.sub(r"[\s*]+", " ", NUMBER.sub("0", COMMITS.sub("", LATE.sub("", text))))


def cpu_seconds() -> float:
    """Return the CPU seconds of all commands so far, which other programs hardly affect."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def keep(folder: Path) -> None:
    """Replace the stored rows by those in a reader's folder."""
    for dataset in KEPT:
        for study in (folder / "results" / dataset).iterdir():
            shutil.rmtree(RESULTS / dataset / study.name, ignore_errors=True)
            shutil.copytree(study, RESULTS / dataset / study.name)


def walk(named: list[Path], *, write: bool) -> Iterator[str]:
    """Run all commands of the named pages, and yield lines to print."""
    tutorial = [page for page in pages() if page in named]
    with tempfile.TemporaryDirectory() as folder:
        for page in tutorial:
            yield from walk_page(page, Path(folder), int(page.name[:2]), write=write)
        if write and tutorial == pages():  # the steps build on each other
            keep(Path(folder))
            shutil.copy(Path(folder, "winners.toml"), TUTORIAL / "steps" / "10")
    for page in (page for page in OTHERS if page in named):
        with tempfile.TemporaryDirectory() as folder:
            yield from walk_page(page, Path(folder), OTHERS[page], write=write)
    for page in (page for page in STUDIES if page in named and write):
        with tempfile.TemporaryDirectory() as folder:
            write_studies(page, Path(folder))
            run_in(Path(folder), f"activemem study run {STUDIES[page]}.toml --local")
            keep(Path(folder))
            yield f"{page.name}: trained {STUDIES[page]}"


def walk_page(page: Path, folder: Path, step: int, *, write: bool) -> Iterator[str]:
    """Run all commands of a page in a folder with a step's files, and yield lines to print."""
    fill_folder(folder, step)
    differing: list[str] = []
    began, busy = time.monotonic(), cpu_seconds()
    text = record(page, folder, differing)
    wall, cpu = time.monotonic() - began, cpu_seconds() - busy
    yield f"{page.name}: {wall:.0f} s, of the CPU {cpu:.0f} s"
    if write:
        page.write_text(text, encoding="utf-8")
    else:
        yield from (f"another shape: {each}" for each in differing)


def main() -> None:
    """Walk through the named pages; exit with 1 if an output has another shape."""
    named = [Path(word).resolve() for word in sys.argv[1:] if word != "--write"]
    status = 0
    for line in walk(named or [*pages(), *OTHERS, *STUDIES], write="--write" in sys.argv):
        print(line, flush=True)  # noqa: T201 -- a script's output
        status |= line.startswith("another shape")
    sys.exit(status)


if __name__ == "__main__":
    main()
