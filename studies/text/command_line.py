"""Shell commands of this program as text."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path


def command_line(*words: str, **options: str | int | Sequence[str] | None) -> str:
    """Return a shell command: the program, its words, and the options that have a value.

    True gives the option without a value, a list of texts the option once for each.
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
    """Return the shell name of this program: `activemem`, or its path if it is not on the PATH."""
    typed = Path(sys.argv[0])
    if typed.name != "activemem" or not typed.is_file():
        return "activemem"
    found = shutil.which("activemem")
    if found is not None and Path(found).samefile(typed):
        return "activemem"
    here = Path.cwd()
    return str(typed.relative_to(here) if typed.is_relative_to(here) else typed)
