"""The sections of a study file that change no trial: its tables, figures, claims, and sources of settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .catalog.published import PublishedNumbers
from .resolve.template import Template
from .resolve.trial import Trial
from .schema.design import Design
from .schema.source_sheet import read_source_sheet
from .text.document import Diagnostics
from .text.errors import StudyError, StudyFault
from .text.units import listed

if TYPE_CHECKING:
    from .claims.comparisons import Claim
    from .presentation.kinds import TableKind

SECTIONS = ("table", "curve", "claim", "source")
"""The tables of a study file, or arrays of tables, that are sections."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sections:
    """The sections of a study file. Each is read when it is first asked for, and shared by copies of a study.

    A section with faults raises StudyError. `diagnostics` are those of the whole file, which know the faulty
    factors. `data` has the tables with what expansions add to them, and `as_written` the same without
    overrides.
    """

    diagnostics: Diagnostics
    design: Design
    published: PublishedNumbers
    template: Template
    data: Mapping[str, Any]
    as_written: Mapping[str, Any]
    _known: dict[str, tuple[Any, Diagnostics]] = field(default_factory=dict[str, tuple[Any, Diagnostics]])

    def read(self, section: str) -> Any:  # noqa: ANN401 -- each section has its class
        """Return the values of a section in file order. Raise StudyError with all faults of the section."""
        values, diagnostics = self._read(section)
        if diagnostics.faults:
            raise StudyError(diagnostics.document.source, diagnostics.faults)
        return values

    def with_claims(self, claims: Sequence[Claim]) -> Sections:
        """Return a copy with these claims instead of those of the file."""
        return replace(self, _known={**self._known, "claim": (tuple(claims), self._own_diagnostics())})

    def faults(
        self, trials: Sequence[Trial] | None = None, sections: Collection[str] = SECTIONS
    ) -> list[StudyFault]:
        """Return the faults of these sections.

        With `trials`, one of each cell, they include each shown or claimed metric that no trial will have.
        """
        found: list[StudyFault] = []
        for section in SECTIONS:
            if section in sections:
                values, diagnostics = self._read(section)
                if trials is not None and values and section in ("table", "curve"):
                    from .presentation.reader import check_shown_metrics  # noqa: PLC0415 -- as below

                    check_shown_metrics(diagnostics, section, values, trials)
                elif trials is not None and values and section == "claim":
                    from .claims.reader import check_claimed_metrics  # noqa: PLC0415 -- as below

                    check_claimed_metrics(diagnostics, values, trials)
                found += diagnostics.faults
        return found

    def _read(self, section: str) -> tuple[Any, Diagnostics]:
        if section in self._known:
            return self._known[section]
        diagnostics, values = self._own_diagnostics(), ()
        if section == "source":
            variants = self.template.variants(self.design.factors)
            sheet, fitted = read_source_sheet(diagnostics, self.data, self.as_written, variants), ()
            if sheet.fitted:
                from .claims.reader import read_fitted  # noqa: PLC0415 -- as below

                fitted = read_fitted(diagnostics, self.design, sheet.fitted)
            values = sheet, fitted
        elif section in ("table", "curve"):
            if section in diagnostics.data:
                from .presentation.reader import read_results  # noqa: PLC0415 -- a status needs no table

                values = read_results(diagnostics, section, self.design, self.published)
            if section == "table" and not diagnostics.faults and (unused := self._unused_numbers(values)):
                diagnostics.report(("study", "published"), unused)
        elif section in diagnostics.data:
            from .claims.reader import read_claims  # noqa: PLC0415 -- a study without claims does without it

            values = read_claims(diagnostics, self.design)
        self._known[section] = (values, diagnostics)
        return self._known[section]

    def _unused_numbers(self, tables: Sequence[TableKind]) -> str:
        """Return a fault if no table and no figure shows the files of published numbers, else ""."""
        own = [table for table in self.published.tables if table.is_own]
        if not own:
            return ""
        names = {name for spec in (*tables, *self._read("curve")[0]) for name in spec.published_names}
        if any(table in own for name in names for table in self.published.find(name)):
            return ""
        known = listed([table.name for table in own], "or")
        return f'no [[table]] shows them: add published = "NAME" to one, where NAME is {known}'

    def _own_diagnostics(self) -> Diagnostics:
        return replace(self.diagnostics, faults=[], _known=set())
