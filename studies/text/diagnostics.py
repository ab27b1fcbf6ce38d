"""Collects the faults of a study, so that all of them are reported at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from .document import Document
from .errors import StudyFault
from .pydantic_messages import InvalidTableError
from .toml_positions import KeyPath, Span


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """The faults of a document; `spoiled` has the paths of values that need no further report."""

    document: Document
    faults: list[StudyFault] = field(default_factory=list)
    invalid: set[KeyPath] = field(default_factory=set)

    def report_error(
        self, path: KeyPath, message: str, *, key: bool = False, within: Span | None = None
    ) -> None:
        """Note a fault, once."""
        fault = self.document.fault(path, message, key=key, within=within)
        if fault not in self.faults:
            self.faults.append(fault)

    def report_invalid(self, path: KeyPath, message: str, *, within: Span | None = None) -> None:
        """Note a fault that spoils the value at its path."""
        self.report_error(path, message, within=within)
        self.invalid.add(path)

    def report_problems(self, path: KeyPath, error: InvalidTableError) -> None:
        """Note every problem of the table at a path."""
        for problem in error.problems:
            self.report_error((*path, *problem.path), problem.message, key=problem.key)

    def already_reported(self, path: KeyPath) -> bool:
        """Whether a value, or a table or list around it, is spoiled."""
        return any(path[:depth] in self.invalid for depth in range(1, len(path) + 1))
