"""Output of commands: data go to standard output, everything else to standard error."""

from __future__ import annotations

import codecs
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOTDIR, EPERM
from io import TextIOWrapper
from pathlib import Path
from typing import Final, TextIO

from ..errors import replace_unprintable
from ..studies.text.units import WIDTH, truncate

SCHEMA: Final = 3
"""The version of the JSON pages, raised when a field is removed or changes its meaning."""

EXIT_FAILED = 1
"""The exit status of a study with failed or abandoned trials."""

EXIT_WRONG_INPUT = 2
"""The exit status for wrong input, when nothing was done."""

EXIT_INTERRUPTED = 130
"""The exit status after Ctrl-C, as in shells."""


_MAX_LINE = 1200

_STYLE = re.compile("(\x1b\\[[012]m)")
"""The codes for bold, faint and plain text, the only ones sent to a terminal."""


def print_stderr(text: str, *, styled: bool = False) -> None:
    """Write a line to standard error, without control characters except style codes.

    Of a line that fills a screen, such as one with a name of thousands of letters, both ends are written.
    """
    lines = _printable(text, styled=styled).split("\n")
    half = _MAX_LINE // 2
    short = (each if len(each) <= _MAX_LINE else f"{each[:half]} … {each[-half:]}" for each in lines)
    print("\n".join(short), file=sys.stderr, flush=True)


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show a note such as "loading torch" until this context ends, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    line = truncate(f"{replace_unprintable(text)} …", columns - 1)
    print(line, end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print(f"\r{' ' * len(line)}\r", end="", file=sys.stderr, flush=True)


def prepare_output(path: Path) -> None:
    """Make the folder of an output file. Raise OSError, which names --out, if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        file = next(each for each in path.parents if each.is_file())
        told = "this is a file, not a folder; choose another place with --out"
        raise NotADirectoryError(ENOTDIR, told, str(file)) from error
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(
            EPERM, "this file cannot be written; choose another place with --out", str(path)
        )


def print_stdout(text: str, *, styled: bool = False) -> None:
    """Write data to standard output, without control characters except style codes."""
    shown = _printable(text, styled=styled)
    print(shown, end="" if shown.endswith("\n") else "\n")


def _printable(text: str, *, styled: bool) -> str:
    pieces = _STYLE.split(text) if styled else [text]
    pieces[::2] = map(replace_unprintable, pieces[::2])  # the other codes are styles
    return "".join(pieces)


def has_styles(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that shows bold and faint text."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def bold(text: str) -> str:
    """Return a text in bold if standard output is a terminal with styles."""
    return f"\x1b[1m{text}\x1b[0m" if text and has_styles(sys.stdout) else text


def print_piece(text: str) -> None:
    """Write a text to standard output at once, without control characters or a final line break."""
    print(replace_unprintable(text), end="", flush=True)


class LogHandler(logging.Handler):
    """Handler that writes log messages to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message of a log record."""
        print_stderr(self.format(record))


def output_width() -> int:
    """Return the width of the terminal on standard output, or 80 without a terminal."""
    return shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH


def fit_line(text: str) -> str:
    """Return a line, cut to the width of the terminal. In a file or a pipe, return the whole line."""
    return truncate(text, output_width()) if sys.stdout.isatty() else text


_ASCII: Final = {
    **dict.fromkeys("−–─", "-"),
    **dict.fromkeys("·│├", "|"),
    **{"└": "`", "±": "+/-", "→": "->", "←": "<-", "≤": "<=", "≥": ">=", "×": "x", "…": "...", "†": "+"},
}
"""What is printed instead of a character if the encoding of the output lacks it."""


def replace_unencodable() -> None:
    """Make streams replace characters that they cannot encode, instead of failing."""
    codecs.register_error("activemem.ascii", _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a host program may have replaced the stream
            stream.reconfigure(errors="activemem.ascii")


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    characters = error.object[error.start : error.end]
    return "".join(_ASCII.get(character, "?") for character in characters), error.end
