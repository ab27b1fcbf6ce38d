"""Errors that show each fault of a study file below its line; functions that write shell commands."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from ...errors import MAX_SHOWN_FAULTS, MAX_SHOWN_IN_LINE, ActivememError, draw_carets, replace_unprintable
from ...plugins import python_hint
from .toml_positions import KeyPath, Span

_NUMBER = re.compile(r"(\d+)", re.ASCII)

_WIDTH = 80  # columns; a longer message goes below its carets


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFault:
    """A fault of a study file, with its position.

    `line` counts from 1 in the file; it is 0 for a command's `option` and None without a position. `start`
    and `end` are columns of `text`, from 0; `end` is exclusive. `key` is the faulty key, such as
    `train.optimizer.lr`, or the table that lacks one, if it is known; it decides no equality.
    """

    message: str
    line: int | None = None
    text: str = ""
    start: int = 0
    end: int = 0
    option: str = "--set"
    key: str | None = field(default=None, compare=False)


class StudyError(ActivememError):
    """Error for a study that cannot run.

    `faults` has every fault. Its text shows the first 30 of them, and at most 10 of one line. It names the
    file and shows each line that has faults, from top to bottom:

        studies/wrong.toml: 1 fault

          12 | epocs = 100
               ^^^^^  [train] unknown key 'epocs'; nearest: epochs
    """

    def __init__(self, source: str, faults: Iterable[StudyFault]) -> None:
        self.source = source
        self.faults = tuple(sorted(set(faults), key=_order))
        super().__init__(source, self.faults)  # both, so that the error can be pickled
        if how := python_hint("\n".join(self.messages)):
            self.add_note(how)  # for Python programs; commands have another hint

    @property
    def messages(self) -> tuple[str, ...]:
        """Return the messages without lines of the file.

        Faults of the whole study come first, such as a plug-in that is not loaded.
        """
        found = sorted(self.faults, key=lambda fault: fault.line is not None)
        return tuple(fault.message for fault in found)

    def __str__(self) -> str:
        heading = f"{self.source}: {len(self.faults)} fault{'' if len(self.faults) == 1 else 's'}"
        return replace_unprintable("\n".join([heading, "", *_format_faults(self.faults)]))


def fault_at(text: str, span: Span, message: str, *, override: bool = False) -> StudyFault:
    """Return a fault at a span of a text, shown on the span's first line.

    A span is cut at the end of the line; unprintable characters are shown as spaces.
    """
    first = text.rfind("\n", 0, span[0]) + 1
    last = text.find("\n", span[0])
    last = len(text) if last < 0 else last
    return StudyFault(
        message=message,
        line=0 if override else text.count("\n", 0, first) + 1,
        text=_printable_line(text, first, last),
        start=span[0] - first,
        end=min(span[1], last) - first,
    )


@lru_cache(maxsize=8)
def _printable_line(text: str, first: int, last: int) -> str:
    """Return a line of a text with spaces for unprintable characters. A long line may have many faults."""
    return "".join(char if char.isprintable() else " " for char in text[first:last]).rstrip()


def path_prefix(path: KeyPath) -> str:
    """Return the beginning of an error message: a table and its key.

    `("train", "optimizer", "lr")` gives `[train] optimizer.lr: `, `("table", 0)` gives `[[table]] `.
    """
    if not path:
        return ""
    table, *inside = path
    if path[:2] == ("search", "space"):
        table, inside = "search.space", inside[1:]
    head = f"[[{table}]]" if inside and isinstance(inside[0], int) else f"[{table}]"
    keys = ".".join(part for part in inside if isinstance(part, str))
    return f"{head} {keys}: " if keys else f"{head} "


def _order(fault: StudyFault) -> tuple[int, int, str, int, tuple[str | Decimal, ...]]:
    """Return the sort key of a fault: first those in the file, then in options, then without a position.

    Faults of one place are in the order of their messages, in which numbers count as such. They may have
    thousands of digits, which `int` refuses.
    """
    part = 2 if fault.line is None else 0 if fault.line else 1
    return (
        part,
        fault.line or 0,
        fault.text if part else "",
        fault.start,
        tuple(Decimal(each) if each.isdecimal() else each for each in _NUMBER.split(fault.message)),
    )


def _format_faults(faults: tuple[StudyFault, ...]) -> Iterator[str]:
    lines = [list(group) for _, group in groupby(faults, key=lambda fault: (fault.line, fault.text))]
    picked = [fault for line in lines for fault in line[: MAX_SHOWN_IN_LINE if line[0].line else None]]
    picked = picked[:MAX_SHOWN_FAULTS]
    margin = max(len(_label(fault)) for fault in picked)
    shown: tuple[int | None, str] = (None, "")
    for fault in picked:
        message = " ".join(fault.message.splitlines()).replace("\t", " ")
        if fault.line is None:
            yield f"  {message}"
            continue
        text, carets = draw_carets(fault.text, fault.start, fault.end)
        if (fault.line, text) != shown:
            shown = (fault.line, text)
            yield f"  {_label(fault):>{margin}} | {text}"
        indent = " " * (margin + 5)
        beside = len(indent + carets) + 2 + len(message) <= _WIDTH
        yield f"{indent}{carets}  {message}" if beside else f"{indent}{carets}\n{indent}{message}"
    if more := len(faults) - len(picked):
        places = {fault.line for fault in faults if fault not in picked}
        yield f"  and {more:,} more{f' in line {places.pop()}' if len(places) == 1 else ''}"


def _label(fault: StudyFault) -> str:
    return "" if fault.line is None else str(fault.line) if fault.line else fault.option


def command_line(*words: str, **options: str | int | Sequence[str] | None) -> str:
    """Return a shell command that calls this program.

    Options without a value are left out. True gives the option without a value, a list of texts the option
    once for each.
    """
    line = [program_name(), *words]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            line.append(option)
        elif isinstance(value, str | int):
            line += [option, str(value)] if value else []
        else:
            line += [word for text in value or () for word in (option, text)]
    return shlex.join(line)


def program_name() -> str:
    """Return the program's name in a shell: `activemem`, or its path.

    The path is needed if this program is not the `activemem` on the PATH.
    """
    typed = Path(sys.argv[0])
    if typed.name != "activemem" or not typed.is_file():
        return "activemem"
    found = shutil.which("activemem")
    if found is not None and Path(found).samefile(typed):
        return "activemem"
    here = Path.cwd()
    return str(typed.relative_to(here) if typed.is_relative_to(here) else typed)
