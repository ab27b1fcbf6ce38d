"""A study: one TOML file, checked to its last key, and the trials that it asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..grammar import Recipe
from ..grammar.nodes import Dimension
from .budget import Budget
from .claims.claim import Claim
from .claims.reading import read_claims
from .curve_spec import CurveSpec
from .design import Design
from .document import read, read_file
from .draft import Draft, fillers
from .factors import SEED, read_factors
from .faults import Fault, StudyError, nearest
from .fragments import read_fragments
from .grid import Grid, Maker
from .holes import check_holes, check_recipes
from .listing import read_design
from .matching import Sized
from .points import Ask, settle_point
from .probing import check_settings, own_dimensions
from .report import Report
from .search import check_search, dimensions, ends, read_search
from .settings import Level, SearchSettings, Settings, StudySettings
from .settling import settle
from .specs import read_curves, read_tables
from .table_spec import TableSpec
from .template import TABLES, Template
from .trial import Trial
from .wording import ProblemsError, checked

_KNOWN = ("study", *TABLES, "recipes", "factors", "cells", "search", "table", "curve", "claim")
_NEEDED = ("study", *TABLES)
_SHIPPED = Path(__file__).parent
_EPOCHS = ("train", "epochs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What a study file asks for, every trial of it sound.

    `factors` has each factor's levels in the order of the file, `seed` always among them.
    `dimensions` is what a search chooses, by name, options as plain data; empty without a search.
    `grid` has every trial once; it is empty where a search chooses them. `asked` has them cell by cell, so
    that one may be there under several levels, and `refused` those that are over the budget and not run.
    `sized` has by trial what was solved for equal parameters. `keep_weights`: trained models are kept.
    """

    name: str
    title: str
    paper: str | None
    path: Path | None
    text: str
    overrides: tuple[str, ...]
    factors: Mapping[str, tuple[Level, ...]]
    search: SearchSettings | None
    dimensions: Mapping[str, Dimension]
    tables: tuple[TableSpec, ...]
    curves: tuple[CurveSpec, ...]
    claims: tuple[Claim, ...]
    template: Template
    design: Design
    budget: Budget
    keep_weights: bool
    grid: tuple[Trial, ...]
    asked: tuple[Trial, ...]
    refused: tuple[Trial, ...]
    sized: Mapping[str, Sized]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The levels of the factor `seed`."""
        return tuple(int(seed) for seed in self.factors[SEED])

    @property
    def epochs(self) -> int:
        """The most epochs that a trial can have."""
        if self.grid:
            return max(trial.settings.train.epochs for trial in self.grid)
        names = self.template.holes.get(_EPOCHS)
        if names is None:
            return self.template.tables["train"]["epochs"]
        dimension = self.dimensions.get(names[0])
        return max(int(level) for level in (ends(dimension) if dimension else self.factors[names[0]]))

    def trials(self) -> tuple[Trial, ...]:
        """Every trial of the grid, once, in the order of the file; none where a search chooses them."""
        return self.grid

    def within_budget(self, settings: Settings) -> bool:
        """Whether a trial's model keeps to `max_parameters` and `max_step_flops`, told from its text."""
        return self.budget.allows(settings)

    def point(self, values: Mapping[str, Level]) -> tuple[Trial, ...]:
        """The trials of a search point, one for each seed."""
        return tuple(self.trial_for(values, seed) for seed in self.seeds)

    def choose(self, ask: Ask) -> dict[str, Level]:
        """The values of a search point by name, asked for one by one, only those that the point takes."""
        return settle_point(self.template, self.dimensions, self._fixed, ask)

    def trial_for(self, values: Mapping[str, Level | Recipe], seed: int = 0) -> Trial:
        """The trial of a search point, whose values are named as in `dimensions`.

        Values that it does not take are left out. Raises ValueError where one is missing, for names that are
        no dimensions, and for values that do not fit.
        """
        plain = {name: each.text if isinstance(each, Recipe) else each for name, each in values.items()}
        taken = self.choose(lambda name, found: plain.get(name, ends(found)[0]))
        if taken.keys() - values.keys() or values.keys() - self.dimensions.keys():
            wanted, got = (", ".join(sorted(names)) or "none" for names in (taken, values))
            raise ValueError(f"expected values of {wanted}, got {got}")
        levels = {**self._fixed, **taken, SEED: seed}
        return Trial(study=self.name, levels=levels, settings=settle(self.template, levels))

    @property
    def _fixed(self) -> dict[str, Level]:
        """The levels of the factors that a search does not choose."""
        return {
            name: levels[0] for name, levels in self.factors.items() if name not in (*self.dimensions, SEED)
        }


def find(name_or_path: str | Path) -> Path:
    """The path of a study file, given by itself or by the name of a study that comes with the package.

    Raises StudyError with the nearest name, or all names, if there is neither.
    """
    shipped = {path.stem: path for path in sorted(_SHIPPED.glob("*.toml"))}
    path = Path(name_or_path)
    if path.is_file():
        return path
    if str(name_or_path) in shipped:
        return shipped[str(name_or_path)]
    message = f"there is no such file and no study of that name{nearest(str(name_or_path), shipped)}"
    raise StudyError(str(name_or_path), [Fault(message=message)])


def load(source: str | Path, overrides: Sequence[str] = ()) -> Study:
    """The study of a file, of a shipped study's name, or of a text with line ends, with overrides applied.

    An override is `train.epochs=2`: TOML on the right, or a bare word. Raises StudyError with every fault.
    """
    if isinstance(source, str) and "\n" in source:
        path, document = None, read("study", source, overrides)
    else:
        path = find(source)
        document = read_file(path, overrides)
    report = Report(document)
    study = _study(report, path, tuple(overrides))
    if study is None or report.faults:
        raise StudyError(document.source, report.faults)
    return study


def _study(report: Report, path: Path | None, overrides: tuple[str, ...]) -> Study | None:
    """The study of a document; what is wrong with it is noted, and makes it None."""
    document = report.document
    _check_tables(report)
    header = _header(report)
    design = read_design(report, header, read_factors(report))
    factors = design.factors
    paper = header.paper if header else None
    tables, curves = read_tables(report, design, paper), read_curves(report, design, paper)
    claims = read_claims(report, design)
    search, space = read_search(report)
    searched = "search" in document.data
    template = Template(
        tables={name: document.data[name] for name in TABLES if name in document.data},
        fragments=read_fragments(report, fillers(document.data), searched=searched),
    )
    draft = Draft(report=report, template=template, design=design, space=space, searched=searched)
    check_recipes(draft)
    check_holes(draft)
    check_settings(draft)
    found = dimensions(factors, space, own_dimensions(draft)) if search else {}
    if search:
        check_search(report, search, factors, found)
    if header is None or report.faults:
        return None
    budget = Budget(max_parameters=header.max_parameters, max_step_flops=header.max_step_flops)
    made = Grid()
    if not search:
        maker = Maker(
            report=report,
            study=header.name,
            template=template,
            design=design,
            budget=budget,
            tolerance=header.tolerance,
        )
        made = maker.grid()
    return Study(
        name=header.name,
        title=header.title,
        paper=header.paper,
        path=path,
        text=document.text,
        overrides=overrides,
        factors=factors,
        search=search,
        dimensions=found,
        tables=tables,
        curves=curves,
        claims=claims,
        template=template,
        design=design,
        budget=budget,
        keep_weights=header.keep_weights,
        grid=made.trials,
        asked=made.asked,
        refused=made.refused,
        sized=made.sized,
    )


def _check_tables(report: Report) -> None:
    """Note tables that are unknown, and those that are missing."""
    data = report.document.data
    for name in data:
        if name not in _KNOWN:
            report.note((name,), f"unknown table '{name}'{nearest(name, _KNOWN)}", key=True)
    for name in _NEEDED:
        if name not in data:
            report.spoil((name,), "this table is missing")


def _header(report: Report) -> StudySettings | None:
    """The table [study]; None if it is missing or wrong, which is noted."""
    if "study" not in report.document.data:
        return None
    try:
        return checked(StudySettings, report.document.data["study"])
    except ProblemsError as error:
        report.note_all(("study",), error)
        return None
