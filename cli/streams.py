"""The two streams: data goes to standard output, everything else to standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper

import typer

FAILED = 1
"""Exit status of a study that ran, with a trial that failed or was given up."""

WRONG_INPUT = 2
"""Exit status when nothing was done, because what was asked for makes no sense."""

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


def say(text: str) -> None:
    """Write a line to standard error."""
    print(text, file=sys.stderr, flush=True)


def give(text: str) -> None:
    """Write data to standard output."""
    print(text, end="" if text.endswith("\n") else "\n")


def give_json(page: object) -> None:
    """Write data to standard output as JSON."""
    import json

    give(json.dumps(page, indent=2, ensure_ascii=False))


@contextmanager
def wrong_input(*kinds: type[Exception]) -> Iterator[None]:
    """Errors of these kinds are told as they are, without a traceback, and end the command."""
    try:
        yield
    except kinds as error:
        say(str(error))
        raise typer.Exit(WRONG_INPUT) from error


def survive_any_encoding() -> None:
    """Make a stream that cannot carry some sign show another in its place, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what a host program puts there may be something else
            stream.reconfigure(errors="replace")
