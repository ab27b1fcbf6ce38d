"""The passport of a block: a line for each check."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from ...studies.text.units import WIDTH

if TYPE_CHECKING:
    from ...blocks.testing.passport import Passport

_MARKS = {True: "pass", False: "FAIL", None: "–"}


def format_passport(passport: Passport) -> str:
    """Return the block, and a line for each check with its result and its finding."""
    width = max(len(check.name) for check in passport.checks)
    rows = [
        passport.block if passport.against is None else f"{passport.block}, against {passport.against}",
        "",
    ]
    for check in passport.checks:
        start = f"  {check.name:<{width}}  {_MARKS[check.passed]:<4}  "
        rows += wrap(
            check.finding,
            WIDTH,
            initial_indent=start,
            subsequent_indent=" " * len(start),
            break_on_hyphens=False,
        )
    return "\n".join(rows)
