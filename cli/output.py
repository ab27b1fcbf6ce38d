"""The two streams: data goes to standard output, everything else to standard error."""

from __future__ import annotations

import shutil
import sys
from io import TextIOWrapper

from ..studies.text.units import WIDTH

EXIT_FAILED = 1
"""Exit status of a study that ran, with a trial that failed or was given up."""

EXIT_WRONG_INPUT = 2
"""Exit status when nothing was done, because the input is wrong."""

EXIT_INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


def print_stderr(text: str) -> None:
    """Write a line to standard error."""
    print(text, file=sys.stderr, flush=True)


def print_stdout(text: str) -> None:
    """Write data to standard output."""
    print(text, end="" if text.endswith("\n") else "\n")


def print_json(data: object) -> None:
    """Write data to standard output as JSON."""
    import json

    print_stdout(json.dumps(data, indent=2, ensure_ascii=False))


def output_width() -> int:
    """The width of the terminal on standard output, or 80 if there is none."""
    return shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH


def replace_unencodable() -> None:
    """Make streams replace characters that they cannot encode, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what a host program puts there may be something else
            stream.reconfigure(errors="replace")
