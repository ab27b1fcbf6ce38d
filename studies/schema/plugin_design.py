"""Designs from plug-ins: which combinations of factor levels a study trains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from ...plugins import PluginError, check_part, missing_library, plugin_errors
from ..text.strict_model import PartSettings, class_faults
from ..text.toml_positions import KeyPath
from .design import Design
from .settings import DESIGNS, Level


@dataclass(frozen=True, slots=True)
class DesignFactors:
    """The factors that a plug-in's design combines: without `seed` and those in `[study] around`."""

    _design: Design

    @property
    def levels(self) -> dict[str, tuple[Level, ...]]:
        """The levels of each factor, in the order of the file."""
        return self._design.inner

    def baseline(self, factor: str) -> Level:
        """Return the factor's level in the baseline, which is its first level if the study names none."""
        return self._design.baseline_level(factor)

    def with_absent(self, cell: Mapping[str, Level]) -> dict[str, Level]:
        """Return a cell with a mark in place of the levels of conditional factors that it does not have.

        Cells that differ only in such levels become equal.
        """
        return self._design.with_absent(cell)


class PluginDesign(PartSettings, ABC):
    """Base class of designs from plug-ins; its fields are keys of `[study] design`."""

    @abstractmethod
    def choose_cells(self, factors: DesignFactors) -> Sequence[Mapping[str, Level]]:
        """Return the cells, each with a level of every factor. They must not depend on the process."""

    def faults(self, factors: DesignFactors) -> Iterable[tuple[KeyPath, str]]:
        """Yield why the design does not suit the factors, each with the path of a key in the study file.

        The path is `("study", "design", KEY)` or `("factors", NAME)`. With a fault, no cells are chosen.
        """
        return ()

    def explain(self, factors: DesignFactors, cells: Sequence[Mapping[str, Level]]) -> str:
        """Explain which cells there are, and which effects they can show."""
        return f"{len(cells):,} cells"

    def aliases(self, factors: DesignFactors, cells: Sequence[Mapping[str, Level]]) -> Iterable[str]:
        """Yield a sentence for each group of effects that the cells cannot separate."""
        return ()


@dataclass(frozen=True, kw_only=True)
class DesignOfPlugin(Design):
    """A design whose cells are those of a plug-in."""

    settings: PluginDesign

    @property
    def combined(self) -> DesignFactors:
        """The factors, as the plug-in gets them."""
        return DesignFactors(self)

    @cached_property
    def plugin_rows(self) -> tuple[dict[str, Level], ...]:
        """The plug-in's cells. Raise PluginError if the plug-in fails, or if the cells have other factors."""
        with plugin_errors("design", self.kind, type(self.settings)):
            try:
                rows = tuple(dict(cell) for cell in self.settings.choose_cells(self.combined))
            except ModuleNotFoundError as error:
                raise PluginError(missing_library(error)) from error
        if any(row.keys() != self.inner.keys() for row in rows):
            raise PluginError(f"expected cells with the factors {', '.join(self.inner)}, got {rows}")
        return rows

    def make_rows(self) -> Sequence[Mapping[str, Level]]:
        """Return the plug-in's cells."""
        return self.plugin_rows

    def faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield the faults that the plug-in finds, or why it has no cells."""
        try:
            with plugin_errors("design", self.kind, type(self.settings)):
                found = list(self.settings.faults(self.combined))
            yield from found
            if not found:
                self.rows()
        except PluginError as error:
            yield ("study", "design"), str(error)

    def explain_kind(self) -> str:
        """Return the plug-in's explanation."""
        with plugin_errors("design", self.kind, type(self.settings)):
            return self.settings.explain(self.combined, self.rows())

    def alias_words(self) -> list[str]:
        """Return the plug-in's sentences on aliases."""
        with plugin_errors("design", self.kind, type(self.settings)):
            return list(self.settings.aliases(self.combined, self.rows()))


DesignT = TypeVar("DesignT", bound=PluginDesign)


def register_design(
    name: str, *, title: str, source: str = "", has_conditions: bool = False
) -> Callable[[type[DesignT]], type[DesignT]]:
    """Return a decorator that registers a subclass of PluginDesign under a name.

    `title` describes the cells in a few words, and `source` names a publication. With `has_conditions`,
    factors may be conditional. Raise PluginError for a taken name, and for keys without a meaning.
    """

    def register(cls: type[DesignT]) -> type[DesignT]:
        check_part(class_faults(cls, PluginDesign, needs_defaults=False))
        facts = {"title": title, "source": source, "has_conditions": has_conditions, "settings_class": cls}
        design = type(cls.__name__, (DesignOfPlugin,), facts)
        DESIGNS.register(name, lambda: design)
        return cls

    return register
