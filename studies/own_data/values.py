"""Readers of a row's values: a sequence, a label, a number, a split; ValueError for another value."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from ...diagnostics import printable
from ..catalog.own_corpora import SPLITS

NOT_SCORED = "-100"
"""A token's label that is neither trained nor scored, as in Hugging Face `transformers`; so is null."""

_SHOWN = 40
_SPLIT_NAMES = {**{name: name for name in SPLITS}, **dict.fromkeys(("validation", "valid", "val"), "dev")}


_SURROGATE = re.compile("[\ud800-\udfff]")


class Tokens(str):
    """The tokens of a list, with spaces between them."""

    __slots__ = ()


def read_sequence(value: Any) -> str:  # noqa: ANN401 -- whatever stands in a file
    """Return a text that is not blank, or the tokens of a list."""
    if isinstance(value, str) and value.strip():
        return _checked(value)
    if not isinstance(value, list) or not value:
        raise ValueError(f"expected a text or a list of tokens, got {shown(value)}")
    for token in value:
        if not isinstance(token, str | int) or isinstance(token, bool) or str(token).split() != [str(token)]:
            raise ValueError(
                f"expected tokens that are whole numbers or texts without spaces, got {shown(token)}"
            )
    return Tokens(_checked(" ".join(map(str, value))))


def read_sentence(value: Any) -> str | None:  # noqa: ANN401 -- as above
    """Return a text of one line; None for a blank one, whose pair is left out."""
    if not isinstance(value, str) or "\n" in value.strip():
        raise ValueError(f"expected a sentence in one line, got {shown(value)}")
    return _checked(value.strip("\n")) if value.strip() else None


def is_missing(value: Any) -> bool:  # noqa: ANN401 -- as above
    """Return whether there is no label: null, a blank text, or pandas' NaN."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def read_label(value: Any) -> str:  # noqa: ANN401 -- as above
    """Return a class: a text that is not blank, a whole number, or a truth value."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # what pandas makes of whole numbers where some are missing
    if isinstance(value, str | int) and (text := str(value).strip()):
        return _checked(text)
    raise ValueError(f"expected a label, got {shown(value)}")


def read_tags(value: Any) -> tuple[str | None, ...]:  # noqa: ANN401 -- as above
    """Return a class for each token, from a list or from a text with spaces; None is not scored."""
    found = value.split() if isinstance(value, str) else value
    if not isinstance(found, list) or not found:
        raise ValueError(f"expected a list of labels, or a text with spaces between them, got {shown(value)}")
    labels = (None if label is None else read_label(label) for label in found)
    return tuple(None if label == NOT_SCORED else label for label in labels)


def read_number(value: Any) -> float:  # noqa: ANN401 -- as above
    """Return a finite number."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise ValueError(f"expected a number, got {shown(value)}")


def read_split(value: Any, names: Sequence[str] = ()) -> str | None:  # noqa: ANN401 -- as above
    """Return train, dev or test; with `names` for these, None for any other value."""
    if names:
        return dict(zip(names, SPLITS, strict=True)).get(str(value)) if value else None
    if isinstance(value, str) and (name := _SPLIT_NAMES.get(value.strip().lower())):
        return name
    raise ValueError(f"expected train, dev (or validation) or test, got {shown(value)}")


def split_named(name: str) -> str | None:
    """Return the split of that name, if any."""
    return _SPLIT_NAMES.get(name)


def shown(value: Any) -> str:  # noqa: ANN401 -- as above
    """Return the beginning of a value, in characters that can be printed."""
    if value is None or value == "":
        return "none"
    if isinstance(value, dict) and value.keys() == {""}:
        text = str(value[""])  # a stand-in of `columnar_worker`
    else:
        text = repr(value[:_SHOWN] if isinstance(value, str | list) else value)
    text = printable(text[: _SHOWN + 1])
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _checked(text: str) -> str:
    """Return a text; ValueError if it has half of a surrogate pair, which is no character in any encoding."""
    if not text.isascii() and (half := _SURROGATE.search(text)):
        place = f"character {half.start() + 1:,}"
        raise ValueError(f"expected text, got half of a surrogate pair, \\u{ord(half[0]):04x}, at {place}")
    return text
