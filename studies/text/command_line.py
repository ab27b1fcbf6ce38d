"""Commands of this program as text, to be typed again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def command_line(*words: str, **options: str | int | Sequence[str] | None) -> str:
    """A command as a shell takes it: `activemem`, its words, and the options that have a value.

    True is an option without a value; of several texts, each has the option before it.
    """
    line = ["activemem", *words]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            line.append(option)
        elif isinstance(value, str | int):
            line += [option, str(value)] if value else []
        else:
            line += [word for each in value or () for word in (option, each)]
    return shlex.join(line)
