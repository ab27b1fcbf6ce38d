"""Collects the faults of a study, so that all of them are reported at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...diagnostics import Fault
from .document import Document
from .errors import StudyFault
from .pydantic_messages import InvalidTableError, ModelT, format_value, validate
from .toml_positions import KeyPath, Span


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """The faults of a document; `invalid` has the paths of values whose other faults are not reported."""

    document: Document
    faults: list[StudyFault] = field(default_factory=list)
    invalid: set[KeyPath] = field(default_factory=set)

    @property
    def has_search(self) -> bool:
        """Whether the file has the table [search], valid or not."""
        return "search" in self.document.data

    def report_error(
        self, path: KeyPath, message: str, *, key: bool = False, within: Span | None = None
    ) -> None:
        """Note a fault, once."""
        fault = self.document.fault(path, message, key=key, within=within)
        if fault not in self.faults:
            self.faults.append(fault)

    def report_invalid(self, path: KeyPath, message: str, *, within: Span | None = None) -> None:
        """Note a fault that makes the value at its path invalid."""
        self.report_error(path, message, within=within)
        self.invalid.add(path)

    def report_faults(self, path: KeyPath, faults: Iterable[Fault]) -> None:
        """Note faults of the text at a path, each at its words; they make the text invalid."""
        for fault in faults:
            self.report_invalid(path, fault.message, within=(fault.start, fault.end))

    def table(self, name: str) -> dict[str, Any]:
        """Return the table of this name, empty if there is none; report anything else there."""
        table = self.document.data.get(name, {})
        if isinstance(table, dict):
            return table
        self.report_error((name,), f"expected a table, got {format_value(table)}")
        return {}

    def tables(self, name: str) -> list[Any]:
        """Return the array of tables of this name, empty if there is none; report anything else there."""
        tables = self.document.data.get(name, [])
        if isinstance(tables, list):
            return tables
        self.report_error((name,), f"expected [[{name}]], got {format_value(tables)}")
        return []

    def validate(self, model: type[ModelT], path: KeyPath, data: Mapping[str, Any]) -> ModelT | None:
        """Return the model of the table at a path; report the problems of its data and return None."""
        try:
            return validate(model, data)
        except InvalidTableError as error:
            for problem in error.problems:
                self.report_error((*path, *problem.path), problem.message, key=problem.key)
            return None

    def already_reported(self, path: KeyPath) -> bool:
        """Return whether a value, or a table or list around it, has a reported fault."""
        return any(path[:depth] in self.invalid for depth in range(1, len(path) + 1))
