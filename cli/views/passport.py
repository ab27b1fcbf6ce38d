"""The checks of a block as lines of text."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from ...studies.text.units import WIDTH

if TYPE_CHECKING:
    from ...blocks.testing.passport import Passport

_MARKS = {True: "pass", False: "FAIL", None: "–"}


def format_passport(passport: Passport) -> str:
    """Format the checks of a block: the block, and a line for each check with its result."""
    width = max(len(check.name) for check in passport.checks)
    rows = [
        f"{passport.block}{', as checked by the tests of activemem' if passport.recorded else ''}",
        "",
    ]
    for check in passport.checks:
        start = f"  {check.name:<{width}}  {_MARKS[check.passed]:<4}  "
        indent = " " * len(start)
        rows += wrap(
            check.finding,
            WIDTH,
            initial_indent=start,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
    return "\n".join(rows)
