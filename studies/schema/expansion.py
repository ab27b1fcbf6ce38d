"""Expansions: features of a study that one key turns on.

An expansion is one module of `studies/expansions/` with the name of its key: a table of the file, a key of
[study], or a key of the scheduler of [search]. It has `EXPANSION`, a subclass of `Expansion` with everything
about the feature. Modules are found by name, so that a study loads only the expansions that it uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Self

from ..text.document import Diagnostics
from .search_settings import part_table
from .settings import Level, TrialSettings

if TYPE_CHECKING:
    from ..expansions.match import SizeMatch
    from ..planning.plan import Plan
    from ..resolve.grid import GridBuilder
    from ..study import Study
    from .design import DesignReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """Values of holes in a cell, and the costs that they make equal, if that is what they are for."""

    values: Mapping[str, Level] = field(default_factory=dict[str, Level])
    size_match: SizeMatch | None = None


class Expansion:
    """A feature of a study that one key turns on, called at each stage of reading the study."""

    @classmethod
    def read(cls, diagnostics: Diagnostics) -> Self | None:
        """Return the expansion of a document; report faults, and return None if it has no effect."""
        raise NotImplementedError

    def changed_tables(self) -> Mapping[str, Any]:
        """Return the tables of the study to which it adds factors and holes, as they become."""
        return {}

    def read_cells(self, reader: DesignReader) -> Mapping[str, Any]:
        """Return what it adds to the fields of the design; report faults."""
        return {}

    def fill(self, grid: GridBuilder, levels: Mapping[str, Level]) -> Filling | None:
        """Return the values that it gives to holes in a cell; report faults and return None."""
        return Filling()

    def change(self, settings: TrialSettings, levels: Mapping[str, Level]) -> TrialSettings:
        """Return the settings of a cell as the expansion changes them."""
        return settings

    def complete(self, diagnostics: Diagnostics, study: Study) -> Study:
        """Return the study with what follows from its claims and cells; report faults."""
        return study

    def notes(self, study: Study, plan: Plan) -> Iterator[tuple[str, str]]:
        """Yield what a plan says about it, each with its label."""
        yield from ()


_EXPANSIONS = "...studies.expansions"


@cache
def _module_names() -> tuple[str, ...]:
    return tuple(module.name for module in iter_modules(import_module(_EXPANSIONS, __package__).__path__))


def read_expansions(diagnostics: Diagnostics) -> dict[str, Expansion]:
    """Return the expansions that a document's keys name; report their faults, and add their tables."""
    study, search = (diagnostics.data.get(name) for name in ("study", "search"))
    scheduler = part_table(search.get("scheduler")) if isinstance(search, Mapping) else {}
    keys = {*diagnostics.data, *(study if isinstance(study, Mapping) else ()), *scheduler}
    found = dict[str, Expansion]()
    for name in _module_names():
        if name in keys:
            kind: type[Expansion] = import_module(f"{_EXPANSIONS}.{name}", __package__).EXPANSION
            if (expansion := kind.read(diagnostics)) is not None:
                found[name] = expansion
                diagnostics.data.update(expansion.changed_tables())
    return found
