"""Commands of this program as text, to be run again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def command_line(*words: str, **options: str | int | Sequence[str] | None) -> str:
    """A command for a shell: `activemem`, its words, and the options that have a value.

    True gives the option without a value, a list of texts the option once for each.
    """
    line = ["activemem", *words]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            line.append(option)
        elif isinstance(value, str | int):
            line += [option, str(value)] if value else []
        else:
            line += [word for text in value or () for word in (option, text)]
    return shlex.join(line)
