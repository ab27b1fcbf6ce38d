"""How tables and figures write levels and reasons: on one line, without control characters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ...diagnostics import replace_unprintable
from .settings import Level

_FRAGMENT = re.compile(r"\{ *(\w+) *\}")
_RANGE = re.compile(r"(integer|real)\([^()]*\)")
_CALL = re.compile(r"\b([A-Za-z_]\w*)(\([^()]*\))?")


def one_line(text: str) -> str:
    """The text with single spaces, and a replacement for every character that cannot be printed."""
    return replace_unprintable(" ".join(text.split()))


def first_line(reason: str) -> str:
    """The first line of a reason; a traceback may follow it."""
    return one_line(reason.partition("\n")[0])


def level_text(level: Level) -> str:
    """A factor's level as the study spells it, on one line; booleans as TOML has them."""
    return str(level).lower() if isinstance(level, bool) else one_line(str(level))


def level_name(level: Level) -> str:
    """A level as readers see it: a fragment by its name alone, `{all_attn}` as `all_attn`."""
    text = level_text(level)
    fragment = _FRAGMENT.fullmatch(text)
    return fragment[1] if fragment else text


def value_name(value: Level) -> str:
    """The value of a dimension as readers see it; ranges inside of it have values of their own."""
    return f"{value:.4g}" if isinstance(value, float) else _RANGE.sub("…", level_name(value))


def level_names(levels: Sequence[Level]) -> tuple[str, ...]:
    """The levels of a factor as readers see them; those whose names would be equal are spelled out."""
    names = [level_name(level) for level in levels]
    counts = Counter(names)
    return tuple(
        name if counts[name] == 1 else level_text(level) for name, level in zip(names, levels, strict=True)
    )


def short_level_names(levels: Sequence[Level]) -> tuple[str, ...]:
    """The names of levels in a figure: without arguments that a block has wherever it occurs in them.

    `sa + conv(k=20)` beside `conv(k=20)` is `sa + conv`; beside `conv(k=3)` it keeps them.
    """
    texts, shared = level_names(levels), _shared_arguments(levels)
    return tuple(_CALL.sub(lambda call: call[1] if call[1] in shared else call[0], text) for text in texts)


def option_names(options: Sequence[Level]) -> tuple[str, ...]:
    """The options of a dimension in a figure: what fills them by its name, without arguments that all share.

    `{attention} + conv(k={k})` beside `conv(k={k})` is `attention + conv`; where two would be equal,
    all stay whole.
    """
    texts = [_FRAGMENT.sub(r"\1", value_name(option)) for option in options]
    names = short_level_names(texts)
    return names if len(set(names)) == len(names) else tuple(texts)


def omitted_arguments(levels: Sequence[Level]) -> tuple[str, ...]:
    """The blocks whose arguments `short_level_names` leaves out, with the arguments: `conv(k=20)`."""
    return tuple(name + arguments for name, arguments in _shared_arguments(levels).items() if arguments)


def _shared_arguments(levels: Sequence[Level]) -> dict[str, str]:
    """The arguments of each name that has the same ones wherever it occurs."""
    calls: dict[str, set[str]] = {}
    for text in level_names(levels):
        for name, arguments in _CALL.findall(text):
            calls.setdefault(name, set()).add(arguments)
    return {name: arguments.pop() for name, arguments in calls.items() if len(arguments) == 1}
