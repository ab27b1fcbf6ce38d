"""The table [factors]: its levels, and their lookup by name.

`NamedLevels` is the only rule by which claims, tables, figures, designs and commands find a named level.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

from ...errors import nearest_hint, replace_unprintable
from ...grammar import RecipeError
from ..text.document import Diagnostics
from ..text.strict_model import as_table, format_value, with_values
from ..text.toml_positions import KeyPath
from ..text.units import truncate
from .settings import Level, read_recipe

SEEDS = "seeds"
"""A frequent misspelling of the factor `seed`."""

SEED = "seed"
"""The factor that every study has; all cells use the same levels."""

ABSENT = "–"
"""The level of a factor in cells where it is absent."""

_FACTOR_NAME = re.compile(r"[A-Za-z]\w*")


def read_factors(
    diagnostics: Diagnostics, table: Mapping[str, Any], may_repeat: Callable[[str], bool] = lambda _: False
) -> dict[str, tuple[Level, ...]]:
    """Return the factors of the table [factors] with their levels, in its order.

    A missing `seed` gets the level 0. Invalid levels are reported and kept; so are repeated levels, unless
    `may_repeat` is true for the factor. A factor without a list of levels has an empty tuple.
    """
    if SEEDS in table and SEED not in table and f"{{{SEEDS}}}" not in repr(diagnostics.data):
        labels = diagnostics.table("study").get("labels", ())
        if SEEDS not in labels:  # a misspelt seed is a single fault: other checks treat `seeds` as `seed`
            message = f"'{SEEDS}' is unused; nearest: {SEED}"
            diagnostics.report(("factors", SEEDS), message, key=True)
            table = {SEED if name == SEEDS else name: levels for name, levels in table.items()}
    factors = {
        name: _levels(diagnostics, name, levels, may_repeat=may_repeat(name))
        for name, levels in table.items()
        if is_name(diagnostics, ("factors", name))
    }
    return factors if SEED in table else {**factors, SEED: (0,)}


def is_name(diagnostics: Diagnostics, path: KeyPath) -> bool:
    """Return whether a path ends in a valid name of a hole. Report a fault if not."""
    fits = _FACTOR_NAME.fullmatch(str(path[-1])) is not None
    if not fits:
        message = f"expected a name of letters, digits and '_' that begins with a letter, got {path[-1]!r}"
        diagnostics.report(path, message, key=True)
    return fits


def _levels(
    diagnostics: Diagnostics,
    name: str,
    levels: Any,  # noqa: ANN401 -- TOML holds anything
    *,
    may_repeat: bool,
) -> tuple[Level, ...]:
    """Return the levels of a factor in a study file. Report invalid and repeated levels."""
    path = ("factors", name)
    if diagnostics.already_reported(path):
        return ()
    if not isinstance(levels, list) or not levels:
        example = f", as [{json.dumps(levels)}]" if isinstance(levels, str | int | float) else ""
        example = ", as [0, 1, 2]" if name == SEED else example  # 3 seeds are meant more often than seed 3
        diagnostics.report(path, f"expected a list of levels{example}, got {format_value(levels)}")
        return ()
    seen: set[tuple[type, Level]] = set()
    for index, level in enumerate(levels):
        if diagnostics.already_reported((*path, index)):
            continue
        if message := level_fault(name, level):
            diagnostics.report_invalid((*path, index), message)
        elif (type(level), level) in seen and not may_repeat:
            diagnostics.report((*path, index), f"the level {format_value(level)} is listed twice")
        else:
            seen.add((type(level), level))
    return tuple(levels)


def level_fault(factor: str, level: object) -> str | None:
    """Return the error message for an invalid level; None for a valid level."""
    if factor == SEED and (isinstance(level, bool) or not isinstance(level, int) or not 0 <= level < 2**63):
        most = " and below 2^63" if isinstance(level, int) and level >= 2**63 else ""
        return f"expected a whole number of at least 0{most}, got {format_value(level)}"
    if not isinstance(level, str | int | float | bool):
        return f"expected a text, a number or true or false, got {format_value(level)}"
    if level == ABSENT:
        return f"expected a level other than {ABSENT}, which marks an absent factor"
    return None


Conditions = Mapping[str, Mapping[str, tuple[Level, ...]]]
"""The condition of each factor: required levels of other factors, which come before it."""


TableLevels = Mapping[str, Mapping[Level, Mapping[str, Any]]]
"""The table behind a level, by factor and level."""


def name_table_levels(
    diagnostics: Diagnostics, data: Mapping[str, Any]
) -> tuple[Mapping[str, Any], TableLevels]:
    """Return a study's tables with the label or name of each level that is a TOML table, and these tables.

    The tables come by factor and name. `{ name = "mqar", pairs = 4 }` becomes the level `mqar`, and with
    `label = "few"` the level `few`. Tables that have neither key, and tables that share a name, are reported.
    """
    found: dict[str, dict[Level, Mapping[str, Any]]] = {}
    replaced: dict[KeyPath, Level] = {}
    for path, factor, level in placed_levels(data):
        if not isinstance(level, Mapping):
            continue
        name = level.get("label", level.get("name"))
        if not isinstance(name, str) or "{" in name:
            example = '{ label = "slow", grow_at = 0.99 }'
            diagnostics.report_invalid(path, f"expected a label or a name for this table, as in {example}")
            continue
        table = {key: value for key, value in level.items() if key != "label"}
        replaced[path] = name
        if found.setdefault(factor, {}).setdefault(name, table) != table:
            _report_shared_name(diagnostics, path, name)
    for path, factor, level in placed_levels(data):
        if isinstance(level, str) and level in found.get(factor, {}) and path[0] == "factors":
            _report_shared_name(diagnostics, path, level)
    return with_values(data, replaced), found


def _report_shared_name(diagnostics: Diagnostics, path: KeyPath, name: str) -> None:
    diagnostics.report_invalid(
        path, f'two levels are called {name}: give one table another label, for example label = "{name}-2"'
    )


def placed_levels(data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, Any]]:
    """Yield the levels in a study's tables as they are written, each with its path and its factor."""
    cells = data.get("cells")
    for factor, levels in as_table(data.get("factors")).items():
        for index, level in enumerate(levels) if isinstance(levels, list) else ():
            yield ("factors", factor, index), factor, level
    for index, cell in enumerate(cells) if isinstance(cells, list) else ():
        for factor, level in as_table(cell).items():
            yield ("cells", index, factor), factor, level


level_key: Callable[[Level], str] = repr
"""The key of a level, equal for equal levels of the same type: `1` and `1.0` differ."""


def has_level(levels: Iterable[Level], level: Level) -> bool:
    """Return whether `levels` has this level, with the same type."""
    return level_key(level) in map(level_key, levels)


def as_list(levels: object) -> list[Any]:
    """Return the levels of a table that may give a single level without a list."""
    return levels if isinstance(levels, list) else [levels]


HOLE_PATTERN = re.compile(r"\{ *([A-Za-z]\w*) *\}")
"""A hole in any text of a study file."""

_HOLE = re.compile(r"(=|\w\()?\{ *(\w+) *\}")
_RANGE = re.compile(r"(integer|real)\([^()]*\)")
_CALL = re.compile(r"\b([A-Za-z_]\w*)(\([^()]*\))?")
_ARGUMENTS = re.compile(r"(?<=\w)\([^()]*\)")


MAX_REASON_SHOWN = 1000


def one_line(text: str) -> str:
    """Return a text on one line, without unprintable characters."""
    return replace_unprintable(" ".join(text.split()))


def first_line(reason: str) -> str:
    """Return the first line of a stored failure, without its traceback, as far as a person reads it."""
    return truncate(one_line(reason.partition("\n")[0]), MAX_REASON_SHOWN)


def level_text(level: Level) -> str:
    """Return a level as the study file writes it, on one line and without quotes."""
    return str(level).lower() if isinstance(level, bool) else one_line(str(level))


def level_name(level: Level) -> str:
    """Return a level's name for display, without braces: `{all_attn}` of [recipes] is `all_attn`."""
    return _HOLE.sub(lambda hole: f"{hole[1] or ''}{hole[2]}", level_text(level))


def filled_levels(levels: Mapping[str, Level]) -> dict[str, Level]:
    """Return the levels of a cell for display, with values in place of the holes inside them.

    `conv(k={k})` becomes `conv(k=7)`. A hole stays if a part of a recipe fills it, or if it has no level.
    """

    def fill(hole: re.Match[str]) -> str:
        level = levels.get(hole[2], ABSENT)
        is_part = isinstance(level, str) and not hole[1]
        return hole[0] if is_part or level == ABSENT else f"{hole[1] or ''}{level_name(level)}"

    return {
        name: _HOLE.sub(fill, level) if isinstance(level, str) else level for name, level in levels.items()
    }


def value_name(value: Level) -> str:
    """Return a search value for display: `conv(k=…)` for `conv(k=integer(2, 9))`.

    A number has four digits. Dimensions inside the value are shown as `…`.
    """
    return f"{value:.4g}" if isinstance(value, float) else _RANGE.sub("…", level_name(value))


def level_names(levels: Sequence[Level]) -> tuple[str, ...]:
    """Return the names of a factor's levels for display. If two look the same, both are written in full."""
    names = [level_name(level) for level in levels]
    counts = Counter(names)
    return tuple(
        name if counts[name] == 1 else level_text(level) for name, level in zip(names, levels, strict=True)
    )


def short_level_names(levels: Sequence[Level]) -> tuple[str, ...]:
    """Return the names of levels without the block arguments that never vary.

    A block's arguments are left out if they are always the same. If another level has `conv(k=20)`, `sa +
    conv(k=20)` becomes `sa + conv`; if it has `conv(k=3)`, the arguments stay.
    """
    texts, shared = level_names(levels), _shared_arguments(levels)
    return tuple(_CALL.sub(lambda call: call[1] if call[1] in shared else call[0], text) for text in texts)


def named_levels(factor: str, levels: Sequence[Level], *, joint: str = " ") -> tuple[str, ...]:
    """Return short names of a factor's levels, such as `sa + conv` or, for numbers, `filter 64`.

    If some levels are not texts, each name begins with the factor. `joint` is the text between the factor and
    the level.
    """
    texts = short_level_names(levels)
    if all(isinstance(level, str) for level in levels):
        return texts
    return tuple(f"{one_line(factor)}{joint}{text}" for text in texts)


def omitted_arguments(levels: Sequence[Level]) -> tuple[str, ...]:
    """Return the arguments that `short_level_names` omits, with their blocks: `conv(k=20)`."""
    return tuple(name + arguments for name, arguments in _shared_arguments(levels).items() if arguments)


def _shared_arguments(levels: Sequence[Level]) -> dict[str, str]:
    calls: dict[str, set[str]] = {}
    for text in level_names(levels):
        for name, arguments in _CALL.findall(text):
            calls.setdefault(name, set()).add(arguments)
    return {name: arguments.pop() for name, arguments in calls.items() if len(arguments) == 1}


def bare_level_names(level: Level) -> tuple[str, ...]:
    """Return shorter and shorter names of a level.

    Each name omits the innermost arguments of the previous one. `sa(pos=rope(theta=1e4))` gives
    `sa(pos=rope)` and `sa`.
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
        self.levels = tuple(levels)
        self.where = where
        self._found: dict[str, Level] = {}
        self._faults: dict[str, str] = {}
        self._known: list[tuple[Callable[[object], object], dict[object, list[Level]]]] = []

    def find(self, name: object) -> Level:
        """Return the level that has this name, in full or shortened.

        Raise ValueError for a name of several levels, listing these levels, and for an unknown name, with the
        nearest level. Without any level, return the name: the factor's own fault is reported instead.
        """
        if not self.levels:
            return cast("Level", name)
        if fault := self.fault(name):
            raise ValueError(fault)
        return self._found[repr(name)]

    def has(self, name: object) -> bool:
        """Return whether a name matches exactly one level."""
        return not self.fault(name)

    def fault(self, name: object) -> str:
        """Return the error message of `find` for this name, or "" if the name matches one level."""
        key = repr(name)
        if self.levels and key not in self._found and key not in self._faults:
            try:
                self._found[key] = self._find(name)
            except ValueError as error:
                self._faults[key] = str(error)
        return self._faults.get(key, "")

    def _find(self, name: object) -> Level:
        for meaning_of, levels in self._by_meaning():
            found = levels.get(meaning_of(name), [])
            if len(found) > 1:
                texts = " and ".join(level_text(level) for level in found)
                raise ValueError(
                    f"{format_value(name)} stands for several levels {self.where}: {texts}; write one in full"
                )
            if found:
                return found[0]
        texts = map(level_text, self.levels)
        near = nearest_hint(
            str(name), [level_name(each) if _HOLE.fullmatch(each) else each for each in texts]
        )
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

    def _by_meaning(self) -> Iterator[tuple[Callable[[object], object], dict[object, list[Level]]]]:
        """Yield each rule with the levels by their meaning, computed when a name first needs them."""
        yield from self._known
        for meaning_of, names in islice(self._rules(), len(self._known), None):
            levels: dict[object, list[Level]] = {}
            for level, own in zip(self.levels, names, strict=True):
                for meaning in {meaning_of(each) for each in own} - {None}:
                    levels.setdefault(meaning, []).append(level)
            self._known.append((meaning_of, levels))
            yield self._known[-1]


def _text(name: object) -> str | None:
    return level_text(name) if isinstance(name, Level) else None


def _number(name: object) -> float | None:
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
