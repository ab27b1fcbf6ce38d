"""Contents of a study file: every table read and checked, and the cells of its grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..grammar.nodes import Dimension
from .claims.comparisons import Claim
from .claims.reader import read_claims
from .fidelity import Fidelity, expand_fidelity
from .ladder import Ladder, expand_ladder
from .own_data.own_corpus import OwnCorpus
from .presentation.kinds import CurveKind, TableKind, check_tuned_metrics, read_curves, read_tables
from .resolve.draft import Draft, check_holes, check_levels, check_recipes, read_fragments, recipe_dimensions
from .resolve.grid import GridBuilder, StudyBudget, TrialGrid
from .resolve.template import TRIAL_TABLES, Template
from .schema.design import Design
from .schema.design_reader import check_max_seeds, read_design
from .schema.factors import expand_ablation
from .schema.search import check_search, read_search, search_dimensions, with_sampler
from .schema.search_settings import SearchSettings, is_known_before
from .schema.settings import DecodeSettings, StudySettings
from .schema.source_sheet import SourceSheet, read_source_sheet
from .study_checks import check_tables, read_decode, read_header
from .text.document import Diagnostics, Document


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyContents:
    """The tables of a study file without faults: `header` is [study], and `draft` what trials are made of."""

    header: StudySettings
    draft: Draft
    ladder: Ladder | None
    fidelity: Fidelity | None
    search: SearchSettings | None
    dimensions: Mapping[str, Dimension]
    tables: tuple[TableKind, ...]
    curves: tuple[CurveKind, ...]
    claims: tuple[Claim, ...]
    decode: DecodeSettings | None
    source_sheet: SourceSheet

    @property
    def budget(self) -> StudyBudget:
        """The bounds of each model, and the limits of a search that are known from its text."""
        limits = self.search.bounds if self.search else ()
        return StudyBudget(
            max_parameters=self.header.max_parameters,
            max_step_flops=self.header.max_step_flops,
            limits=tuple(each for each in limits if is_known_before(each.name)),
        )

    def grid(self) -> TrialGrid:
        """Return the trials of all cells, none for a search; report cells that do not fit."""
        if self.search is not None:
            return TrialGrid()
        return GridBuilder(
            diagnostics=self.draft.diagnostics,
            study=self.header.name,
            template=self.draft.template,
            design=self.draft.design,
            budget=self.budget,
            tolerance=self.header.tolerance,
            ladder=self.ladder,
        ).build()


def read_contents(diagnostics: Diagnostics, own_corpus: OwnCorpus | None) -> StudyContents | None:
    """Return the contents of a document; report all visible faults at once and return None."""
    check_tables(diagnostics)
    ladder, fidelity = expand_ladder(diagnostics), expand_fidelity(diagnostics)
    header = read_header(diagnostics)
    as_written, sizes = _design_as_written(diagnostics.document), tuple(ladder.sizes) if ladder else ()
    design = replace(_design(diagnostics, header), as_written=as_written, ladder=sizes)
    paper = header.paper if header else None
    tables, curves = read_tables(diagnostics, design, paper), read_curves(diagnostics, design, paper)
    claims, source_sheet = read_claims(diagnostics, design), read_source_sheet(diagnostics)
    search, space = read_search(diagnostics)
    decode = read_decode(diagnostics, header)
    check_tuned_metrics(diagnostics, tables, curves)
    check_max_seeds(diagnostics, header, design)
    draft = _checked_draft(diagnostics, design, space, own_corpus)
    dimensions = _dimensions(draft, search)
    if header is None or diagnostics.faults:
        return None
    if search is not None:
        search = with_sampler(search, dimensions)
    return StudyContents(
        header=header,
        draft=draft,
        ladder=ladder,
        fidelity=fidelity,
        search=search,
        dimensions=dimensions,
        tables=tables,
        curves=curves,
        claims=claims,
        decode=decode,
        source_sheet=source_sheet,
    )


def read_size(diagnostics: Diagnostics) -> tuple[StudySettings | None, int]:
    """Return the table [study] of a grid, and its number of cells with each seed; report faults."""
    header = read_header(diagnostics)
    return header, sum(1 for _ in _design(diagnostics, header).cells())


def _design_as_written(document: Document) -> Design | None:
    """Return the design of a file without its overrides; None without overrides, or if levels are faulty."""
    if document.as_written is None:
        return None
    diagnostics = Diagnostics(document.as_written)
    expand_ladder(diagnostics)
    expand_fidelity(diagnostics)
    design = _design(diagnostics, read_header(diagnostics))
    return None if diagnostics.invalid else design


def _design(diagnostics: Diagnostics, header: StudySettings | None) -> Design:
    """Return the design of a document; report faults."""
    if header is not None and header.ablate is not None:
        expand_ablation(diagnostics)
    return read_design(diagnostics, header)


def _checked_draft(
    diagnostics: Diagnostics, design: Design, space: Mapping[str, Dimension], own_corpus: OwnCorpus | None
) -> Draft:
    """Return the draft of a study; report faults of its recipes, holes and levels."""
    data = diagnostics.document.data
    tables = {name: data[name] for name in TRIAL_TABLES if name in data}
    if own_corpus is not None:
        tables["task"] = own_corpus.complete_task(tables["task"])
    template = Template(
        tables=tables, fragments=read_fragments(diagnostics), table_levels=design.table_levels
    )
    draft = Draft(diagnostics=diagnostics, template=template, design=design, space=space)
    check_recipes(draft)
    check_holes(draft)
    check_levels(draft)
    return draft


def _dimensions(draft: Draft, search: SearchSettings | None) -> dict[str, Dimension]:
    """Return the checked dimensions of a search; empty without one."""
    if search is None:
        return {}
    factors = draft.design.factors
    given = (*search.across, search.fidelity)
    dimensions = search_dimensions(factors, draft.space, recipe_dimensions(draft), given)
    check_search(draft.diagnostics, search, factors, dimensions)
    return dimensions
