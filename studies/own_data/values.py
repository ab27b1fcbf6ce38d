"""What a value of a row must be: a sequence, a label, a number, a split; ValueError if it is not."""

from __future__ import annotations

import math
from typing import Any

from ..catalog.own_corpora import SPLITS

_SHOWN = 40
_SPLIT_NAMES = {**{name: name for name in SPLITS}, **dict.fromkeys(("validation", "valid", "val"), "dev")}


class Tokens(str):
    """The tokens of a list, with spaces between them."""

    __slots__ = ()


def read_sequence(value: Any) -> str:  # noqa: ANN401 -- whatever stands in a file
    """A text that is not blank, or the tokens of a list."""
    if isinstance(value, str) and value.strip():
        return value
    if not isinstance(value, list) or not value:
        raise ValueError(f"expected a text or a list of tokens, got {shown(value)}")
    for token in value:
        if not isinstance(token, str | int) or isinstance(token, bool) or str(token).split() != [str(token)]:
            raise ValueError(
                f"expected tokens that are whole numbers or texts without spaces, got {shown(token)}"
            )
    return Tokens(" ".join(map(str, value)))


def read_sentence(value: Any) -> str | None:  # noqa: ANN401 -- as above
    """A text in one line; None for one that is blank, whose pair is left out."""
    if not isinstance(value, str) or "\n" in value.strip():
        raise ValueError(f"expected a sentence in one line, got {shown(value)}")
    return value.strip("\n") if value.strip() else None


def read_label(value: Any) -> str:  # noqa: ANN401 -- as above
    """A class: a text that is not blank, a whole number, or a truth value."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # what pandas makes of whole numbers where some are missing
    if isinstance(value, str | int) and (text := str(value).strip()):
        return text
    raise ValueError(f"expected a label, got {shown(value)}")


def read_tags(value: Any) -> tuple[str, ...]:  # noqa: ANN401 -- as above
    """A class for each token: those of a list, or what stands between the spaces of a text."""
    found = value.split() if isinstance(value, str) else value
    if not isinstance(found, list) or not found:
        raise ValueError(f"expected a list of labels, or a text with spaces between them, got {shown(value)}")
    return tuple(map(read_label, found))


def read_number(value: Any) -> float:  # noqa: ANN401 -- as above
    """A finite number."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise ValueError(f"expected a number, got {shown(value)}")


def read_split(value: Any) -> str:  # noqa: ANN401 -- as above
    """train, dev or test."""
    if isinstance(value, str) and (name := _SPLIT_NAMES.get(value.strip().lower())):
        return name
    raise ValueError(f"expected train, dev (or validation) or test, got {shown(value)}")


def split_named(name: str) -> str | None:
    """The split that is called so, if any."""
    return _SPLIT_NAMES.get(name)


def shown(value: Any) -> str:  # noqa: ANN401 -- as above
    """The beginning of a value."""
    if value is None or value == "":
        return "none"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
