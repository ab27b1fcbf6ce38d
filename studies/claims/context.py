"""One reading of a claim: the study it is held against, what is wrong, what variables stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...diagnostics import FaultCollector
from .scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundLevel:
    """What a variable stands for: a level as text, and where that is written."""

    start: int
    end: int
    text: str


Bindings = Mapping[str, BoundLevel]
"""Every variable with what it stands for."""


@dataclass(slots=True, kw_only=True)
class ClaimContext:
    """The study's names, and the faults of the text; each is noted once, however often a loop meets it.

    `rounds` counts how often the inside of a loop was read, so that loops in loops come to an end.
    """

    scope: Scope
    faults: FaultCollector
    num_iterations: int = 0

    def report_error(self, start: int, end: int, message: str) -> None:
        """Note a fault, unless it is known."""
        if all((fault.start, fault.end, fault.message) != (start, end, message) for fault in self.faults):
            self.faults.add(start, end, message)

    def report_missing(self, start: int, end: int, message: str) -> None:
        """Note that the study has too few levels or cells, or too many, unless an override has made it so."""
        if not self.scope.overridden_factors:
            self.report_error(start, end, message)
