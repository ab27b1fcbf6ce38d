"""The state while one claim is resolved: its study, its faults, and the values of variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...diagnostics import FaultCollector
from .scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundLevel:
    """The value of a variable: a level as text, and where that is written."""

    start: int
    end: int
    text: str


Bindings = Mapping[str, BoundLevel]
"""Every variable with its value."""


@dataclass(slots=True, kw_only=True)
class ClaimContext:
    """The study's names and the faults of the text, each noted once, however often a loop meets it.

    `each` is the factor at each of whose levels the claim is made, if any; `scope` has one of them.
    `num_iterations` counts all iterations of loops, so that nested loops stay bounded.
    """

    scope: Scope
    faults: FaultCollector
    each: str | None = None
    num_iterations: int = 0

    def report_error(self, start: int, end: int, message: str) -> None:
        """Note a fault, once."""
        if all((fault.start, fault.end, fault.message) != (start, end, message) for fault in self.faults):
            self.faults.add(start, end, message)
