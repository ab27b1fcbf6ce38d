"""A study: a checked TOML file, and its trials."""

from __future__ import annotations

import gc
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import argument_fault, check_arguments, hint, nearest, nearest_hint, texts_fault
from ..grammar import registered_names
from ..grammar.nodes import Dimension
from ..plugins import PluginError, load_plugin, locate_plugin
from .catalog.metrics import METRICS
from .catalog.published import PublishedNumbers, own_numbers, published_tables
from .catalog.tasks import TASKS, task_names
from .resolve.compatibility import StudyBudget
from .resolve.costs import SizeMatch
from .resolve.draft import Draft, check_holes, check_levels, check_recipes, read_fragments
from .resolve.grid import PlannedRung, build_grid, planned_rungs
from .resolve.template import TRIAL_TABLES, Template
from .resolve.trial import Kind, Trial
from .schema.design import (
    Design,
    DesignReader,
    Expansion,
    expand_tables,
    read_expansions,
)
from .schema.factors import SEED, TableLevels, name_table_levels
from .schema.limits import is_known_before
from .schema.settings import EXPANSIONS, DecodeSettings, Level, StudySettings, TrialSettings, find_expansion
from .schema.tables import TABLES, all_tables
from .sections import SECTIONS, Sections
from .text.document import Diagnostics, Document, parse_document, read_document
from .text.errors import StudyError, StudyFault, command_line
from .text.key_synonyms import ELSEWHERE, SYNONYMS
from .text.strict_model import InvalidTableError, as_table, key_place, known_keys, validate
from .text.units import listed, plural

if TYPE_CHECKING:
    from .claims.comparisons import Claim, FittedSetting
    from .judged.runs import Runs
    from .own_data.own_corpus import OwnCorpus
    from .presentation.kinds import CurveKind, TableKind
    from .resolve.search_source import SearchSource
    from .schema.source_sheet import SourceSheet

CORPUS = ("task", "corpus")
_NEEDED_TABLES = ("study", *TRIAL_TABLES)


@dataclass(frozen=True, kw_only=True)
class Study:
    """The valid contents of a study file.

    `header` is the table [study], `document` the file with its overrides. `expansions` are the features that
    single keys turn on, by key. `sections` reads tables, figures, claims and sources. `decode` has the
    searches to try with trained translation models, `own_corpus` has the user's files that the study names,
    and `published` the papers' numbers.

    In a grid, `cells` has the trial of every cell with every seed, in the order of the file; cells with the
    same settings repeat their trial. `over_budget` has the trials that are not run because they exceed the
    limits, `added` further trials to run. `size_matches` has the sizes solved for equal costs, by trial.
    A `search` has none of these: its trials depend on results. Equal seeds of cells are compared with each
    other if the study `pairs_seeds`, as all do that train. `runs` of another program have no store: their
    values are in this field.
    """

    header: StudySettings
    document: Document
    template: Template
    design: Design
    expansions: Mapping[str, Expansion]
    sections: Sections = field(compare=False)
    decode: DecodeSettings | None
    own_corpus: OwnCorpus | None
    published: PublishedNumbers = field(default_factory=PublishedNumbers)
    cells: tuple[Trial, ...] = ()
    over_budget: tuple[Trial, ...] = ()
    added: tuple[Trial, ...] = ()
    size_matches: Mapping[str, SizeMatch] = field(default_factory=dict[str, SizeMatch])
    search: SearchSource | None = None
    pairs_seeds: bool = True
    runs: Runs | None = None

    # several fields cannot be hashed; equal texts with equal overrides give equal studies
    def __hash__(self) -> int:
        return hash((self.name, self.document.text, self.document.overrides))

    def __repr__(self) -> str:
        return f"<Study {self.name}: {plural(self.total, 'trial')}>"

    @property
    def name(self) -> str:
        """The study's name in commands and in the store."""
        return self.header.name

    @property
    def title(self) -> str:
        """The study's title, which is usually the question that it answers."""
        return self.header.title

    @property
    def paper(self) -> str | None:
        """The paper whose published numbers are shown beside the study's own."""
        return self.header.paper

    @property
    def tables(self) -> tuple[TableKind, ...]:
        """The tables of results in file order. Raise StudyError if they have faults, as all sections do."""
        return self.sections.read("table")

    @property
    def curves(self) -> tuple[CurveKind, ...]:
        """The figures in file order."""
        return self.sections.read("curve")

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims in file order."""
        return self.sections.read("claim")

    @property
    def source_sheet(self) -> SourceSheet:
        """All settings with their sources."""
        return self.sections.read("source")[0]

    @property
    def fitted(self) -> tuple[FittedSetting, ...]:
        """The settings that were chosen by results of the study's own cells."""
        return self.sections.read("source")[1]

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """The distinct trials of a grid, in file order, each with the levels of its first cell.

        Empty for a search.
        """
        every = (*self.cells, *self.added)
        if len({trial.id for trial in every}) == len(every):
            return every
        first = {trial.id: trial for trial in reversed(every)}
        return tuple(trial for trial in every if first[trial.id] is trial)

    @property
    def plugins(self) -> list[str | Path]:
        """The plug-ins that the study names: names, and paths of files."""
        folder = self.document.path.parent if self.document.path else Path()
        return [locate_plugin(each, folder) for each in self.header.plugins]

    @property
    def dimensions(self) -> Mapping[str, Dimension]:
        """The dimensions of a search by name. Empty for a grid."""
        return self.search.dimensions if self.search else {}

    @cached_property
    def budget(self) -> StudyBudget:
        """The limits on a model's costs that are known before training."""
        return StudyBudget(limits=tuple(each for each in self.header.bounds if is_known_before(each.name)))

    @property
    def planned_sizes(self) -> list[PlannedRung]:
        """The models of a ladder at each size, with the length of each training."""
        return planned_rungs(self)

    @property
    def factors(self) -> Mapping[str, tuple[Level, ...]]:
        """Each factor's levels in the order of the file, always with `seed`."""
        return self.design.factors

    @property
    def seeds(self) -> tuple[int, ...]:
        """The levels of the factor `seed`."""
        return tuple(int(seed) for seed in self.factors[SEED])

    @property
    def later_seeds(self) -> tuple[int, ...]:
        """The seeds that may be added, in order. They are the integers after the largest seed."""
        first = max(self.seeds) + 1
        return tuple(range(first, first + max(0, (self.header.max_seeds or 0) - len(self.seeds))))

    @property
    def repeats(self) -> str:
        """Return what a cell has several of: "seed" where equal seeds are compared, else "run"."""
        return "seed" if self.pairs_seeds else "run"

    def with_later_seeds(self) -> Study:
        """Return the study, with unchanged factors, and the trials of all seeds that may be added later."""
        return self._with_later_seeds

    @cached_property
    def _with_later_seeds(self) -> Study:
        later = self.later_seeds
        if not later or any(trial.levels[SEED] == later[0] for trial in self.cells):
            return self  # there is nothing to add, or it is there already
        added = self.trials_of_seeds(later)
        return replace(self, cells=(*self.cells, *added))

    def trials_of_seeds(self, seeds: Sequence[int]) -> list[Trial]:
        """Return the trials that all cells would have with these seeds instead of their own."""
        first = self.seeds[0]
        starts = [trial for trial in self.cells if trial.seed == first]
        cells = (Trial.of_seeds(self.name, each.levels, Kind(each.common), seeds) for each in starts)
        return [trial for trials in zip(*cells, strict=True) for trial in trials]

    def with_claims(self, claims: Sequence[Claim]) -> Study:
        """Return a copy of the study with these claims instead of those of its file."""
        return replace(self, sections=self.sections.with_claims(claims))

    def with_trials(self, added: Sequence[Trial]) -> Study:
        """Return a copy of the study with these additional trials."""
        return replace(self, added=(*self.added, *added))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that the study compares: a search's objectives, or those in a grid's tables."""
        if self.search is not None:
            return self.search.settings.metric
        # its own come first: a table over several studies may have metrics that only the others report
        own_first = sorted(self.tables, key=lambda table: bool(getattr(table, "studies", ())))
        return tuple(dict.fromkeys(name for table in own_first for _, name in table.named_metrics()))

    def section_faults(self, sections: Collection[str] = SECTIONS) -> list[StudyFault]:
        """Return the faults of sections, with each shown or claimed metric that no trial will have."""
        every, first = [*self.cells, *self.over_budget], self.seeds[0]
        trials = self.examples if self.search else [each for each in every if each.seed == first]
        return self.sections.faults(trials, sections)

    @property
    def total(self) -> int:
        """The number of trials of a grid, or the most that a search can have."""
        return self.search.total if self.search else len(self.trials)

    @property
    def examples(self) -> tuple[Trial, ...]:
        """The trials of a grid, or those at both ends of a search's space."""
        return self.search.trials_at_ends() if self.search else self.trials


def load_study(source: str | Path, overrides: str | Sequence[str] = ()) -> Study:
    """Load a study by its path or name, or from its text.

    A name is that of a shipped study. A source with line breaks is a text. `overrides` are one text such as
    `train.epochs=2`, or several: TOML on the right, or a bare word. The user's own data files are looked up
    in the study file's folder, or in the working directory for a text. Raise StudyError with every fault.
    """
    overrides = [overrides] if isinstance(overrides, str) else overrides
    check_arguments(
        argument_fault("source", source, (str, Path), "the name of a study, its file or its text"),
        overrides_fault(overrides),
    )
    return load_trials(source, overrides, with_sections=True)


def load_trials(source: str | Path, overrides: Sequence[str] = (), *, with_sections: bool = False) -> Study:
    """Load a study as `load_study` does, but leave its sections unread until they are asked for."""
    if isinstance(source, str) and "\n" in source:
        document = parse_document("study", source, overrides)
    else:
        document = read_document(find_study_file(source), overrides)
    diagnostics = Diagnostics(document)
    _refuse_runs(diagnostics)
    load_plugins(diagnostics, document.path.parent if document.path else Path())
    corpus = None
    if _names_own_corpus(diagnostics):
        from .own_data.own_corpus import read_own_corpus  # noqa: PLC0415 -- few studies bring data along

        corpus = read_own_corpus(diagnostics, document.path.parent if document.path else Path())
    published = None
    if _names_published(diagnostics):
        from .own_data.published_files import read_published  # noqa: PLC0415 -- few studies bring numbers along

        published = read_published(diagnostics, document.path.parent if document.path else Path())
    return _study_of(diagnostics, corpus, published, with_sections=with_sections)


def study_fault(study: object) -> str | None:
    """Return an error message for an argument that is not a study with trials to train, else None."""
    if isinstance(study, Study) and study.runs is not None:
        return f"study {study.name}: {RUNS_ONLY}"
    return argument_fault("study", study, Study, "a Study, as load_study returns it")


def overrides_fault(overrides: object) -> str | None:
    """Return an error message for an argument that is not a list of overrides, else None."""
    return texts_fault("overrides", overrides, "['train.epochs=2']")


def load_recorded_study(record: Mapping[str, Any], overrides: Sequence[str] = ()) -> Study:
    """Return the study that a store has recorded, with further overrides.

    Its sections, which the run has checked, are read when they are asked for. Raise StudyError with every
    fault of the other tables. The record may come from an untrusted store, so no file that it names
    is opened, and only plug-ins that are installed are loaded. Its text is never taken as a path, and it
    includes the facts about the user's own data files, and the text of the files of published numbers.
    """
    applied = (*record.get("overrides", ()), *overrides)
    diagnostics = Diagnostics(parse_document("study", record["text"], applied))
    load_plugins(diagnostics, None)
    corpus = None
    if _names_own_corpus(diagnostics):
        from .own_data.own_corpus import recall_own_corpus  # noqa: PLC0415 -- few studies bring data along

        corpus = recall_own_corpus(diagnostics, record.get("own_corpus"))
    published = None
    if _names_published(diagnostics):
        from .own_data.published_files import recall_published  # noqa: PLC0415 -- few studies bring numbers along

        published = recall_published(diagnostics, record.get("published"))
    return _study_of(diagnostics, corpus, published)


def load_plugins(diagnostics: Diagnostics, folder: Path | None) -> None:
    """Load the plug-ins that a study names, and report those that cannot be used.

    Paths of files are relative to `folder`; if it is None, files are left out.
    """
    named = as_table(diagnostics.data.get("study")).get("plugins", ())
    named = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    for index, plugin in enumerate(named):
        if not isinstance(plugin, str):
            continue  # `StudySettings` reports it
        located = locate_plugin(plugin, folder or Path())
        if folder is None and isinstance(located, Path):
            continue
        try:
            load_plugin(located)
        except PluginError as error:
            diagnostics.report(("study", "plugins", index), str(error))


def _refuse_runs(diagnostics: Diagnostics) -> None:
    """Raise StudyError for a file with [runs], which trains nothing."""
    if RUNS in diagnostics.data:
        source = diagnostics.document.source
        raise StudyError(source, [StudyFault(message=f"{RUNS_ONLY}: {command_line('judge', source)}")])


RUNS = "runs"
"""The table of a file that judges runs of another program, and trains nothing."""

RUNS_ONLY = "runs of another program have tables, figures and claims, and never enter a store"


def _names_own_corpus(diagnostics: Diagnostics) -> bool:
    data = diagnostics.data
    return CORPUS[-1] in as_table(data.get("task")) or "start" in as_table(data.get("train"))


def _names_published(diagnostics: Diagnostics) -> bool:
    return "published" in as_table(diagnostics.data.get("study"))


def _study_of(
    diagnostics: Diagnostics,
    corpus: OwnCorpus | None,
    published: PublishedNumbers | None,
    *,
    with_sections: bool = False,
) -> Study:
    with _without_collections():
        study = _read_study(diagnostics, corpus, published, with_sections=with_sections)
        faults = [*diagnostics.faults, *(study.sections.faults() if with_sections else ())]
    if faults:
        raise StudyError(diagnostics.document.source, faults)
    return study


@contextmanager
def _without_collections() -> Iterator[None]:
    """Pause the search for reference cycles: it takes a fifth of a large study's time and frees nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read_study(
    diagnostics: Diagnostics,
    own_corpus: OwnCorpus | None,
    published: PublishedNumbers | None,
    *,
    with_sections: bool,
) -> Study:
    """Return the study of a file, and report its faults. With faults, it has no trials.

    The faults of its sections are reported by the sections.
    """
    _check_tables(diagnostics)
    # first the design, whose factors and levels all other tables may name
    found = _read_design(diagnostics)
    design, data = found.design, found.data
    published = _check_published(diagnostics, found.header.paper, published)
    decode = _read_decode(diagnostics)
    # the settings of the trials, with holes that the levels of each cell fill
    search, space, dimensions = None, dict[str, Dimension](), dict[str, Dimension]()
    if diagnostics.has_search:
        from .schema.search import read_search  # noqa: PLC0415 -- a grid does without it

        search, space = read_search(diagnostics, data["search"])
    trial_tables = {name: data[name] for name in TRIAL_TABLES if name in data}
    fragments = read_fragments(diagnostics, data)
    template = Template(tables=trial_tables, fragments=fragments, table_levels=found.table_levels)
    # what the study shows, which does not change its cells
    sections = Sections(
        diagnostics=diagnostics,
        design=design,
        published=published,
        template=template,
        data=found.tables,
        as_written=found.written_tables,
    )
    is_faulty = with_sections and bool(sections.faults())
    if own_corpus is not None:  # only now, because the keys that it adds need no source
        completed, levels = own_corpus.complete(trial_tables, found.table_levels)
        template = replace(template, tables=completed, table_levels=levels)
    draft = Draft(diagnostics=diagnostics, data=data, template=template, design=design, space=space)
    # each of these checks leaves out what an earlier one has marked as invalid
    check_holes(draft, check_recipes(draft))
    tried = check_levels(draft)
    if diagnostics.has_search:
        from .resolve.search_source import find_dimensions  # noqa: PLC0415 -- as above

        dimensions = find_dimensions(draft, search, found.header.bounds)
    study = Study(
        header=found.header,
        document=diagnostics.document,
        template=template,
        design=design,
        expansions=found.expansions,
        sections=sections,
        decode=decode,
        own_corpus=own_corpus,
        published=published,
    )
    if diagnostics.faults or is_faulty:
        # these faults may change which metrics exist
        if with_sections and tried is not None and not (diagnostics.has_search or diagnostics.invalid):
            sections.faults([Trial(study="", levels=cell, settings=settings) for cell, settings in tried])
        return study
    # the trials, from a file without faults
    if search is None:
        study = build_grid(diagnostics, study)
    else:
        from .resolve.search_source import build_search  # noqa: PLC0415 -- as above

        study = replace(study, search=build_search(diagnostics, study, search, dimensions))
    for expansion in found.expansions.values():
        study = expansion.complete(diagnostics, study)
    _check_trials(diagnostics, study)
    if with_sections and not diagnostics.faults:
        study.section_faults()
    return study


def _check_published(
    diagnostics: Diagnostics, paper: str | None, published: PublishedNumbers | None
) -> PublishedNumbers:
    """Return the published numbers that the study can show, and report a paper that has none."""
    found = own_numbers({}, paper)[0] if published is None else published
    known = {each.paper for each in (found.tables if found.texts else published_tables().values())}
    if paper is not None and paper not in known and not found.is_partial:
        way = 'for any other paper, add published = "FILE.csv" with its numbers, or leave out this key'
        way = way if not found.texts else f"the files in published have numbers of {listed(sorted(known))}"
        diagnostics.report(("study", "paper"), f"unknown paper '{paper}'{nearest_hint(paper, known)}; {way}")
        return replace(found, is_partial=True)
    return found


def _place_of_key(name: str, data: Mapping[str, Any]) -> str:
    """Return the place of a key that is written outside of its table, such as `train.epochs`, or ""."""
    if place := key_place(name):
        return place
    task = as_table(data.get("task")).get("name")
    if isinstance(task, str) and task in TASKS and name in TASKS[task].settings.model_fields:
        return f"task.{name}"
    return f"factors.{name}" if name in as_table(data.get("factors")) else ""


def _check_tables(diagnostics: Diagnostics) -> None:
    data = diagnostics.data
    for name in data:
        is_feature = name in EXPANSIONS and find_expansion(name).table is not None
        if name not in TABLES and not is_feature:
            is_key, known_as = not isinstance(data[name], Mapping | list), SYNONYMS.get(name, name)
            place = _place_of_key(known_as, data)
            if is_key and name in ELSEWHERE:
                hint, place = f"; {ELSEWHERE[name]}", ""
            elif place:
                hint = f"; [{place.partition('.')[0]}] has this key: {place}"
            else:
                near = nearest(known_as, [*all_tables(), *(known_keys() if is_key else ())])
                known = nearest_hint(known_as, all_tables())
                hint = known if near is None or near in all_tables() else f"; nearest: {key_place(near)}"
            message = f"unknown {'key' if is_key else 'table'} '{name}'{hint}"
            diagnostics.report((name,), message, key=True, meant=place)
    for name in _NEEDED_TABLES:
        if name not in data:
            diagnostics.report_invalid((name,), "this table is missing")


def read_size(diagnostics: Diagnostics) -> tuple[StudySettings, int]:
    """Return the table [study] of a grid, and the number of its trials: its cells times its seeds.

    Report faults.
    """
    _refuse_runs(diagnostics)
    _check_tables(diagnostics)
    path = diagnostics.document.path
    load_plugins(diagnostics, None if path is None else path.parent)
    found = _read_design(diagnostics)
    trials = sum(map(len, found.design.blocks())) * len(found.design.factors[SEED])
    return found.header, trials


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadDesign:
    """The design of a study file, and the tables from which it was read.

    `header` is the table [study]; if it is faulty, only the keys for cells and paper. `tables` are all tables
    with what expansions add to them, and `written_tables` the same without overrides. In `data` names replace
    levels that are tables, and `table_levels` has these tables.
    """

    expansions: dict[str, Expansion]
    header: StudySettings
    design: Design
    tables: Mapping[str, Any]
    written_tables: Mapping[str, Any]
    data: Mapping[str, Any]
    table_levels: TableLevels


def _read_design(diagnostics: Diagnostics) -> _ReadDesign:
    """Read the design of a study file, and report its faults."""
    expansions, own = read_expansions(diagnostics)
    tables = expand_tables(diagnostics.data, expansions.values())
    data, table_levels = name_table_levels(diagnostics, tables)
    given = data.get("study", {})
    given = {key: given[key] for key in given if key not in own} if isinstance(given, Mapping) else given
    header = diagnostics.validate(StudySettings, ("study",), given) if "study" in data else None
    header = header or _readable_header(given)
    design, written_tables = DesignReader(diagnostics, header, data).design(expansions.values()), tables
    if (document := diagnostics.document.as_written) is not None:  # the file without its overrides
        written = _read_design(unread := Diagnostics(document))
        written_tables = written.tables
        if not unread.invalid:  # otherwise its levels have faults
            design = replace(design, as_written=written.design)
    return _ReadDesign(
        expansions=expansions,
        header=header,
        design=design,
        tables=tables,
        written_tables=written_tables,
        data=data,
        table_levels=table_levels,
    )


def _readable_header(given: object) -> StudySettings:
    """Return a faulty table [study] with only the valid keys that say which cells and paper there are."""
    unread, table = {"name": "unread", "title": "unread"}, as_table(given)
    keys = {key: table[key] for key in ("design", "baseline", "around", "labels", "paper") if key in table}
    try:
        return validate(StudySettings, {**keys, **unread})
    except InvalidTableError as error:
        faulty = {problem.path[0] for problem in error.problems}
        if "design" in faulty:  # whether these keys are right depends on it
            faulty |= {"baseline", "around"}
        return validate(StudySettings, {name: keys[name] for name in keys.keys() - faulty} | unread)


def _read_decode(diagnostics: Diagnostics) -> DecodeSettings | None:
    data = diagnostics.data
    if "decode" in data and not diagnostics.table("study").get("keep_weights"):
        diagnostics.report(("decode",), "decoding needs trained models: set keep_weights = true in [study]")
    return diagnostics.validate(DecodeSettings, ("decode",), data["decode"]) if "decode" in data else None


def _check_trials(diagnostics: Diagnostics, study: Study) -> None:
    """Report trials that the user's own data do not suffice for."""
    if study.own_corpus is not None and (summary := study.own_corpus.summary) is not None:
        from .resolve.data_fit import data_faults  # noqa: PLC0415 -- few studies bring data along

        distinct: dict[str, TrialSettings] = {}
        for settings in (trial.settings for trial in study.examples):
            key = (settings.task.model_dump_json(), settings.train.batch_size, settings.train.accumulate)
            distinct.setdefault(repr(key), settings)
        for settings in distinct.values():
            for fault in data_faults(settings, summary):
                diagnostics.report(CORPUS, fault)


MAX_BESIDE = 1000
"""The maximum number of files in a folder whose names are compared with a missing name."""


def shipped_studies() -> dict[str, Path]:
    """Return the files of the shipped studies by name."""
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.toml"))}


def find_study_file(name_or_path: str | Path) -> Path:
    """Return the path of a study file, given as a path or as the name of a shipped study.

    Raise StudyError with the nearest name if neither exists.
    """
    shipped = shipped_studies()
    name, path = str(name_or_path), Path(name_or_path)
    is_folder = False
    with suppress(OSError):  # the name is too long
        if path.is_file():
            return path
        is_folder = path.is_dir()
    if name in shipped:
        return shipped[name]
    if not name.strip():
        name, message = "study", "expected the name of a study, its file or its text, got nothing"
    elif is_folder:
        message = "expected a study file, got a folder"
    elif "=" in name and path.suffix != ".toml":
        name, message = "study", "there is no such file, and the text of a study has line breaks"
    elif is_path(name):
        begin = f"; write one to begin with: {command_line('study', 'new', str(path))}"
        message = f"there is no such file{hint_beside(path) or hint(path.stem, shipped) or begin}"
    elif kind := kind_of_name(path.name):
        message = f"it is a {kind}, not a study: activemem show {path.name}"
    else:
        near = hint_beside(path) or hint(path.name, shipped) or ": see activemem study list"
        message = f"there is no such file and no study of that name{near}"
    raise StudyError(name, [StudyFault(message=message)])


def kind_of_name(name: str) -> str:
    """Return what a name denotes: `task`, `block`, `metric` or ""."""
    known = {"task": task_names(), "block": registered_names(), "metric": METRICS}
    return next((kind for kind, names in known.items() if name in set(names)), "")


def hint_beside(path: Path) -> str:
    """Return a hint at the TOML file in the same folder with the most similar name, or ""."""
    stems = [each.stem for each in islice(path.parent.glob("*.toml"), MAX_BESIDE)]
    near = nearest(path.stem, stems)
    return f"; nearest: {path.with_name(f'{near}.toml')}" if near else ""


def is_path(name_or_path: str) -> bool:
    """Return whether a text is a path, not a name. A path has a folder or ends in .toml."""
    return name_or_path.endswith(".toml") or os.sep in name_or_path or "/" in name_or_path
