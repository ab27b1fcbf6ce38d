"""Design of a study: its factors and its cells.

Cells come from combined levels, or one by one from `[[cells]]`. A design is one module of `studies/designs/`
with its name. Its `DESIGN` is a subclass of `Design` with its cells, their checks and their explanation; the
subclass names the class of its own keys.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ...errors import nearest_hint
from ..text.document import Diagnostics
from ..text.strict_model import PartSettings, StrictModel, as_table, format_value, part_table, with_values
from ..text.toml_positions import KeyPath
from ..text.units import plural
from .factors import (
    ABSENT,
    SEED,
    Conditions,
    NamedLevels,
    has_level,
    is_name,
    level_fault,
    level_key,
    read_factors,
)
from .settings import (
    EXPANSIONS,
    Level,
    MatchedCost,
    StudySettings,
    TrialSettings,
    find_design,
    find_expansion,
)

if TYPE_CHECKING:
    from ..plan import Plan
    from ..resolve.costs import SizeMatch
    from ..study import Study
    from .tables import StudyTable


class Expansion:
    """Base class of optional features that one key of a study file turns on, such as `[ladder]`.

    Each method belongs to a stage of reading the study. All except `read` change nothing by default. `patch`
    has values in place of those in the study file, by path, such as the hole of an added factor.
    """

    table: ClassVar[StudyTable | None] = None
    """The table that turns this feature on, if there is one."""
    header_keys: ClassVar[type[StrictModel] | None] = None
    """The class of this feature's keys in [study]. One of them, which turns it on, has the feature's name."""
    scheduler_keys: ClassVar[type[PartSettings] | None] = None
    """The class of this feature's keys in [search] scheduler, if the scheduler of this name turns it on."""
    solves_size: ClassVar[bool] = False
    """Whether the baseline has a number that is not a factor: the size that is solved for other cells."""
    patch: Mapping[KeyPath, Any] = MappingProxyType({})

    @classmethod
    def read(cls, diagnostics: Diagnostics) -> Self | None:
        """Return this expansion if the study file has its key, else None.

        Faults in the key's value are reported. If the levels of added factors are elsewhere in the file,
        `diagnostics.origins` gets their place.
        """
        raise NotImplementedError

    def add_factors(self, factors: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the table [factors] with the factors that this feature adds."""
        return factors

    def read_cells(self, reader: DesignReader) -> Mapping[str, Any]:
        """Return the fields of `Design` that this feature sets, and report faults."""
        return {}

    def fill(
        self, diagnostics: Diagnostics, study: Study, levels: Mapping[str, Level]
    ) -> tuple[Mapping[str, Level], SizeMatch | None] | None:
        """Return the values with which this feature fills a cell's holes. None after a fault.

        With `[study] match`, a size such as `width` is computed so that every cell costs as much as the
        baseline, and the second item describes the result.
        """
        return {}, None

    def change(self, settings: TrialSettings, levels: Mapping[str, Level]) -> TrialSettings:
        """Return the settings of a cell with this feature's changes."""
        return settings

    def complete(self, diagnostics: Diagnostics, study: Study) -> Study:
        """Return the study with this feature's additions; report faults.

        The method is called after all cells and claims have been read.
        """
        return study

    def notes(self, study: Study, plan: Plan) -> Iterator[tuple[str, str]]:
        """Yield this feature's notes for a study's plan, as pairs of a label and a note."""
        yield from ()


def read_expansions(diagnostics: Diagnostics) -> tuple[dict[str, Expansion], set[str]]:
    """Return the optional features that a study file turns on, by key, and their keys in [study].

    Report faults of these keys.
    """
    header, search = (as_table(diagnostics.data.get(name)) for name in ("study", "search"))
    scheduler = part_table(search.get("scheduler")).get("name")
    found, own = dict[str, Expansion](), set[str]()
    for name in EXPANSIONS:
        if name not in (*diagnostics.data, *header, scheduler):
            continue
        kind = find_expansion(name)
        if name not in (header if kind.header_keys else diagnostics.data if kind.table else [scheduler]):
            continue
        own.update(kind.header_keys.model_fields if kind.header_keys else ())
        if kind.header_keys and diagnostics.has_search:
            message = f"a search chooses its own points: remove {name}, which is for grids"
            diagnostics.report(("study", name), message, key=True)
        elif (expansion := kind.read(diagnostics)) is not None:
            found[name] = expansion
    for key in header.keys() - own - StudySettings.model_fields.keys():
        for name in EXPANSIONS:
            model = find_expansion(name).header_keys
            if model and key in model.model_fields:
                own.add(key)
                message = f"{key} has no effect without {name}: remove {key}, or set {name}"
                diagnostics.report(("study", key), message, key=True)
    return found, own


def expand_tables(tables: Mapping[str, Any], expansions: Iterable[Expansion]) -> Mapping[str, Any]:
    """Return the tables of a study with the factors and the patches of its expansions."""
    for each in expansions:
        if added := each.add_factors(as_table(tables.get(FACTORS))):
            tables = {**tables, FACTORS: added}
        tables = with_values(tables, each.patch)
    return tables


CELLS, FACTORS = "cells", "factors"

MAX_TRIALS = 100_000
"""The maximum number of trials; a larger grid is a fault, reported before its trials are made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedSize:
    """A model size, such as `width`, that is computed for each cell.

    It is chosen so that each cell costs as much as the baseline. `size` is the baseline's own size, and
    `tolerance` the maximum difference of a cost, as a fraction of the baseline's.
    """

    name: str
    size: int
    costs: tuple[MatchedCost, ...]
    tolerance: float


@dataclass(frozen=True, kw_only=True)
class Design(ABC):
    """The design of a study: its cells and their seeds.

    Cells are combinations of factor levels. The factor `seed` is combined with the cells of every design.
    `settings` has the design's own keys.

    `combined_factors` has the factors of [factors], `listed_cells` the cells of [[cells]] with all their
    levels. `baseline` has the levels that `[study] baseline` names, `matched_size` the only name there that
    is not a factor: the size to compute. Every combination of the factors in `around` is combined with a
    complete design of the others. `labels` fill no holes, and factors with `conditions` have the level
    ABSENT in some cells. `ladder` has the size factors of [ladder], from the smallest size on. `as_written`
    is the design of the file without its overrides, if there are any. `factors` has every factor with all its
    levels: the levels of [factors], then the levels that only listed cells have.
    """

    settings: PartSettings
    combined_factors: Mapping[str, tuple[Level, ...]]
    listed_cells: Mapping[int, Mapping[str, Level]]  # by their index in [[cells]]
    baseline: Mapping[str, Level]
    matched_size: MatchedSize | None = None
    around: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    conditions: Conditions = field(default_factory=dict[str, Mapping[str, tuple[Level, ...]]])
    ladder: tuple[str, ...] = ()
    as_written: Design | None = None
    factors: Mapping[str, tuple[Level, ...]] = field(init=False, compare=False)

    title: ClassVar[str]
    """The cells of the design, in words."""
    source: ClassVar[str] = ""
    """The publication that the design is from, if there is one."""
    settings_class: ClassVar[type[PartSettings]] = PartSettings
    """The class of the table of `[study] design`."""
    has_conditions: ClassVar[bool] = True
    """Whether its factors may be conditional."""
    repeats_levels: ClassVar[bool] = False
    """Whether a factor may list a level twice."""

    def __post_init__(self) -> None:
        factors = {name: list(_unique(levels)) for name, levels in self.combined_factors.items()}
        for cell in self.listed_cells.values():
            for name, level in cell.items():
                if level != ABSENT and not has_level(factors.setdefault(name, []), level):
                    factors[name].append(level)
        # factors that only listed cells have come before the seed, if the file has the seed last
        if list(self.combined_factors)[-1] == SEED:
            factors[SEED] = factors.pop(SEED)
        object.__setattr__(self, "factors", {name: tuple(levels) for name, levels in factors.items()})

    @property
    def kind(self) -> str:
        """The name of the design, such as `zip`."""
        return self.settings.name

    @property
    def is_grid(self) -> bool:
        """Whether the cells are all combinations of the factors' levels."""
        return self.kind == "grid" and not self.listed_cells

    @abstractmethod
    def make_rows(self) -> Sequence[Mapping[str, Level]]:
        """Return the cells without seeds. Factors in `around` are left out, too."""

    def rows(self) -> Sequence[Mapping[str, Level]]:
        """Return the cells of `make_rows`, or none if a factor has no levels."""
        return self.make_rows() if all(self.inner.values()) else []  # `read_factors` reports empty factors

    def faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield why this design does not suit the factors, such as a wrong number of levels."""
        yield from ()

    def explain_kind(self) -> str:
        """Explain which cells the design has, and which effects it can separate; "" for a plain grid."""
        return ""

    def alias_words(self) -> list[str]:
        """Return a sentence for each group of effects that the design cannot separate."""
        return []

    def explain(self) -> str:
        """Explain how the design combines levels, with conditions and labels; return "" for a plain grid."""
        each = " and ".join(self.around)
        text = (f"around each {each}: " if each else "") + self.explain_kind() if self.crossed else ""
        if self.ladder:  # a zip of its sizes
            text = f"each size of the ladder with each {each}" if each else ""
        where = [f"{name} only where {describe_condition(each)}" for name, each in self.conditions.items()]
        verb = "names" if len(self.labels) == 1 else "name"
        labels = [f"{' and '.join(self.labels)} only {verb} cells"] if self.labels else []
        return "; ".join([*filter(None, [text]), *where, *labels])

    @property
    def known_levels(self) -> dict[str, tuple[Level, ...]]:
        """Every factor with its levels; those that overrides have removed from the file come last."""
        written = self.as_written.factors if self.as_written else {}
        return {
            name: (*levels, *(level for level in written.get(name, ()) if not has_level(levels, level)))
            for name, levels in self.factors.items()
        }

    @property
    def crossed(self) -> dict[str, tuple[Level, ...]]:
        """The factors in the table [factors], except `seed`, with their levels."""
        return {name: levels for name, levels in self.combined_factors.items() if name != SEED}

    def baseline_level(self, name: str) -> Level:
        """Return a factor's level in the baseline. It is the level that [study] names, else the first one."""
        return self.baseline[name] if name in self.baseline else self.factors[name][0]

    def other_level(self, name: str) -> Level:
        """Return the first level of a factor that is not the baseline's or, without one, the baseline's."""
        baseline = self.baseline_level(name)
        others = (level for level in self.factors[name] if level_key(level) != level_key(baseline))
        return next(others, baseline)

    @property
    def inner(self) -> dict[str, tuple[Level, ...]]:
        """The factors that this kind of design combines: all except `seed` and those in `around`.

        Factors in `around` are then combined with every resulting cell.
        """
        return {name: levels for name, levels in self.crossed.items() if name not in self.around}

    def with_absent(self, levels: Mapping[str, Level]) -> dict[str, Level]:
        """Return a cell's levels, with ABSENT for factors that it lacks."""
        return with_absent(self.conditions, levels) if self.conditions else dict(levels)

    def baseline_of(self, levels: Mapping[str, Level]) -> dict[str, Level]:
        """Return the baseline for a cell with these levels.

        The baseline cell has the baseline's levels from [study], and these levels of all other factors.
        """
        found = {**levels, **self.baseline}
        for name in self.conditions:
            if found.get(name) == ABSENT:
                found[name] = self.baseline_level(name)
        return self.with_absent(found)

    def count(self) -> int:
        """Return the greatest possible number of trials: cells × seeds."""
        cells = 0 if self.listed_cells and not self.crossed else self._count_combined()
        return (cells + len(self.listed_cells)) * len(self.combined_factors[SEED])

    def _count_combined(self) -> int:
        return len(self.rows()) * math.prod(len(self.crossed[name]) for name in self.around)

    def cells(self) -> Iterator[dict[str, Level]]:
        """Yield every cell with every seed once, block by block."""
        for block in self.blocks():
            for seed in self.factors[SEED]:
                yield from ({**cell, SEED: seed} for cell in block)

    def blocks(self) -> Iterator[list[dict[str, Level]]]:
        """Yield every cell once, with the first seed, in blocks.

        Each block is repeated with the other seeds before the next one. If the seed is the last factor of a
        grid, each cell is a block; if it is the first, all cells are one.
        """
        seed, seen = next(iter(self.factors[SEED]), 0), set[object]()
        listed = ([cell] for cell in self.listed_cells.values())
        for block in itertools.chain(self._combined_blocks(), listed):
            seeded = ({**cell, SEED: seed} for cell in block)
            cells = [{name: cell[name] for name in self.factors} for cell in seeded]
            keys = [tuple(map(level_key, cell.values())) for cell in cells]
            new = {key: cell for key, cell in zip(keys, cells, strict=True) if key not in seen}
            yield list(new.values())
            seen.update(new)

    def combined_cells(self) -> Iterator[dict[str, Level]]:
        """Yield the cells of [factors], without seeds: none if a study only lists its cells in [[cells]]."""
        if self.crossed or not self.listed_cells:
            yield from self._combine()

    def _combine(self) -> Iterator[dict[str, Level]]:
        rows = self.rows()
        for levels in itertools.product(*(self.crossed[name] for name in self.around)):
            around = dict(zip(self.around, levels, strict=True))
            yield from (self.with_absent({**row, **around}) for row in rows)

    def _combined_blocks(self) -> Iterator[Sequence[Mapping[str, Level]]]:
        return ([cell] for cell in self.combined_cells())


def with_absent(conditions: Conditions, levels: Mapping[str, Level]) -> dict[str, Level]:
    """Return a cell's levels, with ABSENT for factors that it lacks.

    A factor may have a condition on the levels of other factors.
    """
    found = dict(levels)
    for name, condition in conditions.items():
        present = (other not in found or has_level(of, found[other]) for other, of in condition.items())
        if name in found and not all(present):
            found[name] = ABSENT
    return found


_MAX_LEVELS_NAMED = 6


def describe_condition(condition: Mapping[str, tuple[Level, ...]]) -> str:
    """Describe a condition in words: `mixer is conv(k={k}) or gru`. Many levels are only counted."""
    return " and ".join(
        f"{other} is {' or '.join(map(str, levels))}"
        if len(levels) <= _MAX_LEVELS_NAMED
        else f"{other} is one of {len(levels)} levels"
        for other, levels in condition.items()
    )


BASELINE_PATH: KeyPath = ("study", "baseline")


class DesignReader:
    """Reader of a study's design from [study], [factors] and [[cells]].

    A study without factors gets the factors of its cells, in order of appearance. A cell has the baseline's
    level of each factor that it does not name. Whether the levels fit their holes is checked later.
    `data` are the tables of the study with what its expansions add, and with the names of levels.
    """

    def __init__(self, diagnostics: Diagnostics, header: StudySettings, data: Mapping[str, Any]) -> None:
        self.diagnostics, self.header = diagnostics, header
        self.kind = find_design(header.design.name)
        factors = data.get(FACTORS)
        table = factors if isinstance(factors, Mapping) else diagnostics.table(FACTORS)
        self.factors = read_factors(
            diagnostics, table, lambda name: self.kind.repeats_levels and name not in (SEED, *header.around)
        )
        self.crossed = {name: levels for name, levels in self.factors.items() if name != SEED}
        tables = data.get(CELLS, [])
        if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
            diagnostics.report((CELLS,), f"expected [[cells]], got {format_value(tables)}")
            tables = []
        self.tables: list[Mapping[str, Any]] = tables
        listed = dict.fromkeys(name for table in tables for name in table if name != SEED)
        self.names = tuple(self.crossed or listed)
        self.levels = {
            name: NamedLevels(
                _unique((*self.crossed.get(name, ()), *(each[name] for each in tables if name in each))),
                f"of {name}",
            )
            for name in self.names
        }

    def design(self, expansions: Collection[Expansion]) -> Design:
        """Return the design that [study] names; report and drop faulty parts.

        If the factors do not fit it, report faults and return a simpler design, so that the rest of the file
        can be checked.
        """
        header = self.header
        # the baseline of a search is a point, which is checked once the dimensions are known
        named = {} if self.diagnostics.has_search else header.baseline
        sizes = self.sizes() if any(each.solves_size for each in expansions) else {}
        baseline = {
            name: self.find(name, level)
            for name, level in named.items()
            if name not in sizes and self._is_level((*BASELINE_PATH, name), level)
        }
        self.around, labels = self._around(), self._labels()
        added = {key: value for each in expansions for key, value in each.read_cells(self).items()}
        listed = self._listed_cells(baseline, added.get("conditions", {}), labels)
        common = {
            "combined_factors": self.factors,
            "listed_cells": listed,
            "baseline": baseline,
            "around": self.around,
            "labels": labels,
            **added,
        }
        design = self.kind(settings=header.design, **common)
        self.check_levels(BASELINE_PATH, baseline)
        faults = list(design.faults())
        for path, message in faults:
            self.diagnostics.report(path, message)
        self._check_header(listed)
        if not faults:
            return design
        simple = "grid" if design.kind == "zip" else "one_at_a_time"
        return find_design(simple)(settings=PartSettings(name=simple), **common)

    def find(self, factor: str, name: Level) -> Level:
        """Return the level called `name` of a factor, or `name` itself if it is unknown."""
        levels = self.levels.get(factor)
        return levels.find(name) if levels and levels.has(name) else name

    def _is_level(self, path: KeyPath, level: object) -> bool:
        name = str(path[-1])
        if name == SEED:
            self.diagnostics.report(
                path, "every cell has every seed of [factors]: remove seed here", key=True
            )
        elif name not in self.names:
            near = nearest_hint(name, self.names)
            self.diagnostics.report(path, f"unknown factor '{name}'{near}", key=True)
        elif not is_name(self.diagnostics, path):
            pass
        elif message := level_fault(name, level):
            self.diagnostics.report_invalid(path, message)
        else:
            return True
        return False

    def _check_factor_names(self, key: str, names: Iterable[str], known: Collection[str]) -> None:
        for name in names:
            if name not in known:
                near = nearest_hint(name, known)
                self.diagnostics.report(("study", key), f"unknown factor '{name}'{near}")

    def _around(self) -> tuple[str, ...]:
        names, path = self.header.around, ("study", "around")
        if names and self.header.design.name == "grid":
            message = 'design = "grid" crosses all factors already: remove around, or set another design'
            self.diagnostics.report(path, message)
            return ()
        if SEED in names:
            self.diagnostics.report(path, "every cell has every seed already: remove seed")
        self._check_factor_names("around", (name for name in names if name != SEED), self.crossed)
        return tuple(dict.fromkeys(name for name in names if name in self.crossed))

    def _labels(self) -> tuple[str, ...]:
        """Return the factors that only name cells, which a `zip` or [[cells]] lists one by one."""
        header = self.header
        names = () if self.diagnostics.has_search else header.labels
        self._check_factor_names("labels", names, self.names)
        for name in names:
            if name in self.crossed and (header.design.name != "zip" or name in header.around):
                message = f"{name} is crossed with all factors, so it cannot name single cells"
                text = f'{message}: use design = "zip", or list the cells in [[cells]]'
                self.diagnostics.report(("study", "labels"), text)
        return tuple(dict.fromkeys(name for name in names if name in self.names))

    def _listed_cells(
        self, baseline: Mapping[str, Level], conditions: Conditions, labels: Collection[str]
    ) -> dict[int, dict[str, Level]]:
        """Return the complete cells of [[cells]], by their index in the file; report faults."""
        listed: dict[int, dict[str, Level]] = {}
        seen: set[tuple[str, ...]] = set()
        for index, table in enumerate(self.tables):
            path: KeyPath = (CELLS, index)
            cell = with_absent(
                conditions, {name: {**baseline, **table}.get(name, True) for name in self.names}
            )
            fits = [self._is_level((*path, name), level) for name, level in table.items()]
            absent = [name for name, level in cell.items() if level == ABSENT]
            missing = [name for name in cell if name not in (*table, *baseline, *absent)]
            for name in missing:
                self.diagnostics.report(path, f"missing factor '{name}'")
            extra = [name for name in absent if name in table and name in conditions]
            for name in extra:
                condition = describe_condition(conditions[name])
                message = f"this cell has no {name}, which exists only if {condition}: remove {name}"
                self.diagnostics.report((*path, name), message, key=True)
            if all(fits) and not missing and not extra:
                listed[index] = cell
                key = tuple(level_key(level) for name, level in cell.items() if name not in labels)
                if key in seen:
                    self.diagnostics.report(path, "this cell is listed twice")
                seen.add(key)
        return listed

    def sizes(self) -> dict[str, int | float]:
        """Return the numbers in `[study] baseline` that belong to no factor, such as the size `width`."""
        baseline = self.header.baseline
        others = {name: value for name, value in baseline.items() if name not in (*self.names, SEED)}
        return {name: value for name, value in others.items() if type(value) in (int, float)}  # not bool

    def check_levels(self, path: KeyPath, named: Mapping[str, Level]) -> None:
        """Report each factor in `named` whose level is unknown."""
        for name, level in named.items():
            if name in self.levels and (fault := self.levels[name].fault(level)):
                self.diagnostics.report((*path, name), fault)

    def _check_header(self, listed: Collection[int]) -> None:
        """Report keys of [study] that have no effect in this grid or search, and cells of a search."""
        header, report, count = self.header, self.diagnostics.report, len(self.factors[SEED])
        if self.diagnostics.has_search:
            message = "a search chooses its own points: remove"
            for key in ("design", "around", "labels", "order"):
                if key in header.model_fields_set:
                    report(("study", key), f"{message} {key}, which is for grids", key=True)
            if listed:
                report((CELLS,), f"{message} [[cells]], which are for grids", key=True)
            if header.max_seeds is not None:
                message = "a search never adds seeds, because it has no claims: remove this key"
                report(("study", "max_seeds"), message)
            return
        if header.baseline_seeds is not None:
            message = "only the baseline of a search can have its own seeds"
            report(("study", "baseline_seeds"), message, key=True)
        if header.max_seeds is not None and header.max_seeds <= count:
            expected = f"expected more than the {plural(count, 'seed')} of [factors]"
            report(("study", "max_seeds"), f"{expected}, got {header.max_seeds}")


def _unique(levels: Iterable[Level]) -> Collection[Level]:
    return {level_key(level): level for level in levels}.values()
