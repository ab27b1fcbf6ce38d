"""Errors of a store."""

from typing import TYPE_CHECKING, Final

from ..errors import ActivememError

if TYPE_CHECKING:
    from pydantic import ValidationError

_SHOWN_FAULTS: Final = 3


class StoreError(ActivememError):
    """Error of a store that cannot do what is requested, with what was expected and what was found."""


class DamagedError(StoreError):
    """Error for a file whose bytes have changed. Readers quarantine the file."""


class ForeignError(StoreError):
    """Error for an intact file that no store wrote. Readers skip the file and do not move it."""


class UnreadableError(StoreError):
    """Error for a path that cannot be read as a file, such as a folder. Readers skip the path."""


def describe_faults(error: "ValidationError") -> str:
    """Describe the first faults that pydantic has found in a record or a row."""
    faults = list[str]()
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        what = fault["msg"].removeprefix("Value error, ")
        place = ".".join(map(str, fault["loc"]))
        faults.append(f"{place}{': ' if place else ''}{what[:1].lower()}{what[1:]}")
    more = f"; and {len(faults) - _SHOWN_FAULTS} more" if len(faults) > _SHOWN_FAULTS else ""
    return "; ".join(faults[:_SHOWN_FAULTS]) + more
