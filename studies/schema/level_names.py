"""Names of levels: their form in tables and figures, and the lookup of a level by name.

`NamedLevels` is the only rule by which claims, tables, figures, designs and commands find a named level.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from ...diagnostics import nearest_hint, replace_unprintable
from ...grammar import RecipeError
from ..text.strict_model import format_value
from .settings import Level, read_recipe

_FRAGMENT = re.compile(r"\{ *(\w+) *\}")
_RANGE = re.compile(r"(integer|real)\([^()]*\)")
_CALL = re.compile(r"\b([A-Za-z_]\w*)(\([^()]*\))?")
_ARGUMENTS = re.compile(r"(?<=\w)\([^()]*\)")


def one_line(text: str) -> str:
    """Return the text with single spaces and without unprintable characters."""
    return replace_unprintable(" ".join(text.split()))


def first_line(reason: str) -> str:
    """Return the first line of a reason, which may be followed by a traceback."""
    return one_line(reason.partition("\n")[0])


def level_text(level: Level) -> str:
    """Return a factor's level as written in the study, on one line; booleans as in TOML."""
    return str(level).lower() if isinstance(level, bool) else one_line(str(level))


def level_name(level: Level) -> str:
    """Return a level for display: a fragment by its name, `{all_attn}` as `all_attn`."""
    text = level_text(level)
    fragment = _FRAGMENT.fullmatch(text)
    return fragment[1] if fragment else text


def value_name(value: Level) -> str:
    """Return a dimension's value for display; ranges inside it have their own values."""
    return f"{value:.4g}" if isinstance(value, float) else _RANGE.sub("…", level_name(value))


def level_names(levels: Sequence[Level]) -> tuple[str, ...]:
    """Return the levels of a factor for display; names that would be equal are spelled out."""
    names = [level_name(level) for level in levels]
    counts = Counter(names)
    return tuple(
        name if counts[name] == 1 else level_text(level) for name, level in zip(names, levels, strict=True)
    )


def short_level_names(levels: Sequence[Level]) -> tuple[str, ...]:
    """Return short names of levels, without arguments that are equal in every use of a block.

    If another level has `conv(k=20)`, `sa + conv(k=20)` becomes `sa + conv`; if it has `conv(k=3)`, the
    arguments stay.
    """
    texts, shared = level_names(levels), _shared_arguments(levels)
    return tuple(_CALL.sub(lambda call: call[1] if call[1] in shared else call[0], text) for text in texts)


def named_levels(factor: str, levels: Sequence[Level], *, joint: str = " ") -> tuple[str, ...]:
    """Return short names of a factor's levels; numbers get the factor's name: `filter 64`."""
    texts = short_level_names(levels)
    if all(isinstance(level, str) for level in levels):
        return texts
    return tuple(f"{one_line(factor)}{joint}{text}" for text in texts)


def omitted_arguments(levels: Sequence[Level]) -> tuple[str, ...]:
    """Return the blocks whose arguments `short_level_names` omits, with the arguments: `conv(k=20)`."""
    return tuple(name + arguments for name, arguments in _shared_arguments(levels).items() if arguments)


def _shared_arguments(levels: Sequence[Level]) -> dict[str, str]:
    """Return the arguments of each block name that are equal wherever it occurs."""
    calls: dict[str, set[str]] = {}
    for text in level_names(levels):
        for name, arguments in _CALL.findall(text):
            calls.setdefault(name, set()).add(arguments)
    return {name: arguments.pop() for name, arguments in calls.items() if len(arguments) == 1}


def bare_level_names(level: Level) -> tuple[str, ...]:
    """Return a level without its innermost arguments, then without the next ones, and so on.

    `sa(pos=rope(theta=1e4))` gives `sa(pos=rope)` and `sa`.
    """
    found = [level_name(level)]
    while (bare := _ARGUMENTS.sub("", found[-1])) != found[-1]:
        found.append(bare)
    return tuple(found[1:])


class NamedLevels:
    """Lookup of a factor's levels by any of their names.

    A name is tried in this order, and the first match decides:

    1. the level itself;
    2. its text;
    3. an equal number;
    4. an equal recipe;
    5. the name of a fragment;
    6. a short name: without the arguments that a block has in all levels, or without any.
    """

    def __init__(self, levels: Iterable[Level], where: str) -> None:
        """Index the levels of a factor; `where` locates them in errors: `of mixer`."""
        self.levels = tuple(levels)
        self.where = where
        self._found: dict[str, Level] = {}

    def find(self, name: object) -> Level:
        """Return the level with this name.

        Raise ValueError for a name of several levels, listing all of them, and for an unknown one, with the
        nearest.
        """
        if repr(name) not in self._found:
            self._found[repr(name)] = self._find(name)
        return self._found[repr(name)]

    def has(self, name: object) -> bool:
        """Return whether a name matches exactly one level."""
        try:
            self.find(name)
        except ValueError:
            return False
        return True

    def _find(self, name: object) -> Level:
        for meaning_of, names in self._rules():
            meaning = meaning_of(name)
            found = [
                level
                for level, own in zip(self.levels, names, strict=True)
                if meaning is not None and any(meaning_of(each) == meaning for each in own)
            ]
            if len(found) > 1:
                texts = " and ".join(level_text(level) for level in found)
                raise ValueError(f"{format_value(name)} stands for several levels {self.where}: {texts}")
            if found:
                return found[0]
        near = nearest_hint(str(name), level_names(self.levels))
        raise ValueError(f"unknown level {format_value(name)} {self.where}{near}")

    def _rules(self) -> Iterator[tuple[Callable[[object], object], Iterable[Iterable[Level]]]]:
        whole = [(level,) for level in self.levels]
        yield repr, whole
        yield _text, whole
        yield _number, [() if isinstance(level, str) else (level,) for level in self.levels]
        yield _identity, whole
        yield _text_without_spaces, [(level_name(level),) for level in self.levels]
        yield _text_without_spaces, [(name,) for name in short_level_names(self.levels)]
        yield _text_without_spaces, map(bare_level_names, self.levels)


def _text(name: object) -> str | None:
    return level_text(name) if isinstance(name, Level) else None


def _number(name: object) -> float | None:
    """Return the number that a name spells; None for a boolean and for other texts."""
    if isinstance(name, bool) or not isinstance(name, str | int | float):
        return None
    try:
        return float(name)
    except (ValueError, OverflowError):
        return None


def _identity(name: object) -> str | None:
    if not isinstance(name, str):
        return None
    try:
        return read_recipe(name).identity
    except RecipeError:
        return None


def _text_without_spaces(name: object) -> str | None:
    return "".join(level_text(name).split()) if isinstance(name, Level) else None
