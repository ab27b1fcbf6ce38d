"""The faults of a study that is being read, gathered so that all of them are told at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from .document import Document
from .faults import Fault
from .positions import KeyPath, Span
from .wording import ProblemsError


@dataclass(frozen=True, slots=True)
class Report:
    """What is wrong with a document; `spoiled` holds the paths of values of which no more need be said."""

    document: Document
    faults: list[Fault] = field(default_factory=list)
    spoiled: set[KeyPath] = field(default_factory=set)

    def note(self, path: KeyPath, message: str, *, key: bool = False, within: Span | None = None) -> None:
        """Note a fault, once."""
        fault = self.document.fault(path, message, key=key, within=within)
        if fault not in self.faults:
            self.faults.append(fault)

    def spoil(self, path: KeyPath, message: str, *, within: Span | None = None) -> None:
        """Note a fault that spoils the value at its path."""
        self.note(path, message, within=within)
        self.spoiled.add(path)

    def note_all(self, path: KeyPath, error: ProblemsError) -> None:
        """Note every problem of the table at a path."""
        for problem in error.problems:
            self.note((*path, *problem.path), problem.message, key=problem.key)

    def knows(self, path: KeyPath) -> bool:
        """Whether a value, or something that it is a part of, is spoiled."""
        return any(path[:depth] in self.spoiled for depth in range(1, len(path) + 1))
