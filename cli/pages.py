"""Pages: classes for the JSON output of commands.

Entries in this output are pages too.

A page is built from a result's attributes by name, and its JSON Schema and its reference are generated from
it. If a result has all that a program needs, the page contains the result itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core.core_schema import FloatSchema

from ..engine.inference.answers import Exported, Prediction
from ..engine.probes.width_changes import StudyCoordinates
from ..engine.run.search.answers import HandInAnswer, Proposal
from ..grammar import Cardinality, Fault
from ..reporting.claims.verdicts import ClaimResult
from ..reporting.manuscript.paper_file import PaperNumber
from ..reporting.missing_ablations import RequestCost
from ..reporting.paper import PaperClaim, PaperFigure, PaperStudy, PrintedTable
from ..reporting.recipes.breakdown import RecipeCosts
from ..reporting.recipes.nearest import StoredResult
from ..reporting.results import StudyResults
from ..reporting.search.noise import NoiseFloor
from ..storage.store_upkeep import Finding, Forgotten, StoreCheck
from ..studies.expansions.ladder import PlannedRung, planned_rungs
from ..studies.planning.data_facts import DataFacts
from ..studies.planning.memory_estimates import StepMemory
from ..studies.planning.plan import InsufficientReach, ModelCost, ReachLimit
from ..studies.planning.reused_trials import ShorterTrial, StaleTrial
from ..studies.planning.status import StudyStatus
from ..studies.planning.time_estimates import TimeEstimate
from ..studies.schema.design import Design
from ..studies.schema.factors import SEED
from ..studies.schema.settings import Level
from ..studies.searches.points import BestPoint
from ..studies.searches.words import RungCost, left_out, rung_costs
from ..studies.text.errors import StudyError
from .output import SCHEMA
from .views.blocks import BlockPage
from .views.catalog import MetricEntry, NameEntry, NameListPage, TaskEntry
from .views.study_keys import KeysPage

if TYPE_CHECKING:
    from ..engine.corpora.availability import Availability
    from ..engine.run.driver import Summary


class Page(BaseModel):
    """Base class of the JSON output of commands. Entries in this output are pages too."""

    model_config = ConfigDict(frozen=True, from_attributes=True, populate_by_name=True)


class RecipeName(Page):
    """A recipe: its canonical text (the standard spelling), and its id."""

    recipe: str = Field(validation_alias="text")
    id: str


class SpaceSize(Page):
    """The number of architectures that a recipe describes. It is an upper bound if `exact` is false."""

    architectures: int | Literal["infinite"]
    exact: bool

    @classmethod
    def of(cls, count: Cardinality) -> Self:
        """Convert a number of architectures to JSON output."""
        return cls(architectures="infinite" if count.infinite else count.forms, exact=count.exact)


class RecipeCheckPage(Page):
    """The output of `recipe check`: a recipe with its number of architectures.

    A wrong recipe has all of its faults instead.

    `holes` and `dimensions` name what the recipe leaves open: parts to fill in, and choices or ranges.
    """

    text: str
    id: str | None = None
    holes: Sequence[str] = ()
    dimensions: Sequence[str] = ()
    space: SpaceSize | None = None
    faults: Sequence[Fault] = ()


class RecipeComparePage(Page):
    """The output of `recipe compare`: recipes side by side, compared with the first one."""

    recipes: Sequence[RecipeCosts]


class BudgetWithin(Page):
    """The share of architectures that are within the limits of parameters and FLOPs.

    `drawn` is the number of architectures in the sample; it is 0 if all were checked.
    """

    architectures: int | None = Field(validation_alias="within")
    share: float
    error: float = Field(validation_alias="standard_error")
    drawn: int = Field(validation_alias="samples")


class RecipeSamplePage(Page):
    """The output of `recipe sample`: architectures of a recipe.

    `within` is the share of architectures within the limits.
    """

    recipe: str
    space: SpaceSize
    within: BudgetWithin | None
    seed: int
    members: Sequence[RecipeName]


class NearRecipeEntry(Page):
    """A stored recipe that is similar to the given recipe, with its results.

    `distance` and `difference` compare it with the given recipe.
    """

    recipe: str = Field(validation_alias=AliasPath("recipe", "text"))
    id: str = Field(validation_alias=AliasPath("recipe", "id"))
    distance: float
    difference: str
    results: Sequence[StoredResult]


class NearestPage(RecipeName):
    """The output of `recipe nearest`: the given recipe, and similar stored recipes, the nearest first."""

    nearest: Sequence[NearRecipeEntry]


class DatasetEntry(Page):
    """A corpus: its files on this machine, and the faults that a check has found.

    `location` is its folder, or the command that fetches it.
    """

    name: str = Field(validation_alias=AliasPath("dataset", "name"))
    title: str = Field(validation_alias=AliasPath("dataset", "title"))
    licence: str = Field(validation_alias=AliasPath("dataset", "licence"))
    source: str = Field(validation_alias=AliasPath("dataset", "source"))
    here: bool = Field(validation_alias="complete")
    location: str
    files: Sequence[Path]
    missing: Sequence[str]
    faults: Sequence[str]


class DataPage(Page):
    """The output of `data list` and `data check`: the corpora."""

    datasets: Sequence[DatasetEntry]

    @classmethod
    def of(cls, found: Sequence[Availability]) -> Self:
        """Return the page of these corpora, given their files on this machine."""
        return cls.model_validate({"datasets": found})


class FetchedEntry(Page):
    """The downloaded files of a corpus. There are none for a corpus that comes with activemem."""

    name: str
    files: Sequence[Path]


class DataFetchPage(Page):
    """The output of `data fetch`: the downloaded files of each corpus."""

    datasets: Sequence[FetchedEntry]


class SettingValue(Page):
    """A setting of this machine, and its source."""

    value: Any
    source: str


class ConfigShowPage(Page):
    """The output of `config show`: the settings of this machine by name."""

    settings: Mapping[str, SettingValue]


class PlannedTrialEntry(Page):
    """A planned trial. `goes_on` is the shorter trial from which this trial resumes, or null."""

    id: str = Field(validation_alias=AliasPath("trial", "id"))
    levels: Mapping[str, Level] = Field(validation_alias=AliasPath("trial", "levels"))
    status: str
    estimate: TimeEstimate
    goes_on: ShorterTrial | None = Field(validation_alias="resumed_from")


_DESIGN = AliasPath("study", "design")


def _design_facts(design: Design) -> Mapping[str, Any]:
    return {"kind": design.kind, "told": design.explain(), "aliases": design.alias_words()}


def _matched_name(design: Design) -> str | None:
    return design.matched_size and design.matched_size.name


def _memory_facts(found: tuple[str, StepMemory] | None) -> Mapping[str, Any] | None:
    return found and {"label": found[0], **asdict(found[1])}


class StudyPlanPage(Page):
    """The output of `study plan`: `models` with their costs, and `trials` with their estimated times.

    A model's `memory` is the largest memory in bytes that a training step of any of its trials takes. The
    page's `memory` is the largest of all models, with its parts. `match` names the size that is computed for
    each model so that costs match. `elsewhere` is the number of a search's points that other studies have
    trained. `ladder` has the sizes of [ladder], and `rungs` has the rungs of a search whose fidelity is not
    epochs.
    """

    study: str = Field(validation_alias=AliasPath("study", "name"))
    title: str = Field(validation_alias=AliasPath("study", "title"))
    total: int
    subset_size: int | None
    counts: Mapping[str, int]
    left: int = Field(validation_alias="num_remaining")
    elsewhere: int
    estimate: TimeEstimate
    design: Annotated[Mapping[str, Any], BeforeValidator(_design_facts)] = Field(validation_alias=_DESIGN)
    match: Annotated[str | None, BeforeValidator(_matched_name)] = Field(validation_alias=_DESIGN)
    models: Sequence[ModelCost]
    ladder: Annotated[Sequence[PlannedRung], BeforeValidator(planned_rungs), Field(validation_alias="study")]
    rungs: Annotated[Sequence[RungCost], BeforeValidator(rung_costs), Field(validation_alias="study")]
    over_budget: Sequence[ModelCost]
    stale: Mapping[str, StaleTrial]
    reach_limits: Sequence[ReachLimit]
    insufficient_reach: Sequence[InsufficientReach]
    memory: Annotated[Mapping[str, Any] | None, BeforeValidator(_memory_facts)]
    data: DataFacts
    flops: float
    trials: Sequence[PlannedTrialEntry]
    noise: Sequence[str]


class StudySettingEntry(Page):
    """A setting of a study, with the source of its value."""

    name: str
    value: Any
    origin: str | None = Field(default=None, validation_alias=AliasPath("source", "origin"))
    detail: str | None = Field(default=None, validation_alias=AliasPath("source", "detail"))
    default: bool = Field(validation_alias="is_default")


class StudyShowPage(Page):
    """The output of `study show`: a study's settings. With --best, it is the table of its best points.

    `sizes` has the size that `match` solves for each model, if any.
    """

    study: str = Field(validation_alias="name")
    title: str
    paper: str | None
    settings: Sequence[StudySettingEntry] = Field(
        default=(), validation_alias=AliasPath("source_sheet", "settings")
    )
    sizes: Mapping[str, int] = {}
    points: Sequence[Mapping[str, Any]] | None = None


class ReachedEntry(Page):
    """The progress of a trial that has begun: its last stored epoch, and the metrics of that epoch.

    `saved_at` is the time when the epoch was stored.
    """

    trial: str
    epoch: int
    metrics: Mapping[str, float]
    saved_at: datetime


class WaitingEntry(Page):
    """A trial that waits for its first start. Its point was added with `study tell`."""

    trial: str
    values: Mapping[str, Level]
    seed: int


class StudyStatusEntry(Page):
    """The status of a study: trials by status, begun trials, and reasons of failures.

    `spent` names the budget or space that a search has used up, such as "space of 2 points"; null otherwise.
    `missing_weights` counts done trials without the weights that the study keeps. `stale` counts trials that
    ended with a different version of a plug-in.
    """

    study: str
    title: str
    trials: int
    done: int
    failed: int
    pruned: int
    incomplete: int
    left: int
    spent: str | None
    begun: int
    reached: Sequence[ReachedEntry]
    waiting: Sequence[WaitingEntry]
    missing_weights: int
    stale: int
    reasons: Mapping[str, int]

    @classmethod
    def of(cls, study: str, title: str, status: StudyStatus, **more: Any) -> Self:  # noqa: ANN401 -- fields of pages
        """Return the entry with a study's status. `more` has the values of a subclass's own fields."""
        counts = status.counts
        return cls(
            study=study,
            title=title,
            trials=status.total,
            **{each: counts[each] for each in ("done", "failed", "pruned", "incomplete")},
            left=status.num_remaining,
            spent=status.spent or None,
            begun=len(status.started),
            reached=[
                ReachedEntry(trial=name, epoch=note.epoch, metrics=note.metrics, saved_at=note.saved_at)
                for name, note in status.progress.items()
            ],
            waiting=[
                WaitingEntry(
                    trial=each.id,
                    values={name: level for name, level in each.levels.items() if name != SEED},
                    seed=each.settings.seed,
                )
                for each in status.waiting
            ],
            missing_weights=len(status.missing_weights),
            stale=len(status.stale),
            reasons=dict(status.failure_reasons),
            **more,
        )


class UnreadableStudy(Page):
    """A study that cannot be read, with the reason."""

    study: str
    error: str


class StudyListPage(Page):
    """The output of `study list`: every study with its status.

    A study that cannot be read has the reason instead.
    """

    studies: Sequence[StudyStatusEntry | UnreadableStudy]

    @classmethod
    def of(cls, found: Mapping[str, tuple[str, StudyStatus] | StudyError]) -> Self:
        """Return the page for these studies. `found` maps each name to a title and status, or to an error."""
        entries = [
            UnreadableStudy(study=name, error=str(one))
            if isinstance(one, StudyError)
            else StudyStatusEntry.of(name, *one)
            for name, one in found.items()
        ]
        return cls(studies=entries)


class LeftOutEntry(Page):
    """A reason why a search does not rank some points, and the number of these points."""

    points: int
    reason: str


class RunEntry(Page):
    """The end of a run: why it stopped, and the command that continues it.

    `stopped` is true after an interrupt; `reason` is any other cause of an early end.

    `given_up` lists abandoned trials, whose workers died too often; `resume` is the command to continue, if
    trials are left.
    """

    stopped: bool = True
    reason: str | None = None
    given_up: Sequence[str] = ()
    resume: str | None

    @classmethod
    def of(cls, summary: Summary | None, resume: str) -> Self:
        """Return the entry for a run. `summary` is None after an early interrupt."""
        if summary is None:
            return cls(resume=resume)
        ended = not (summary.stopped or summary.stop_reason)
        return cls(
            stopped=summary.stopped,
            reason=summary.stop_reason,
            given_up=summary.given_up,
            resume=None if ended else resume,
        )


class StudyStatusPage(StudyStatusEntry):
    """The output of `study status`, `study watch` and `study run`: a study's status and its best points.

    `left_out` counts the points that are not ranked. `run` is the end of the run, or null for other commands.
    """

    best: Sequence[BestPoint]
    left_out: Sequence[LeftOutEntry]
    run: RunEntry | None

    @classmethod
    def of_results(cls, results: StudyResults, run: RunEntry | None = None) -> Self:
        """Return the page with the status of a study, read from its store."""
        study, found = results.study, results.points
        return cls.of(
            study.name,
            study.title,
            results.status,
            best=found.best() if found else (),
            left_out=[LeftOutEntry(points=n, reason=why) for n, why in left_out(found)] if found else (),
            run=run,
        )


class StudyRenamePage(Page):
    """The output of `study rename`: the new and old name, and the number of renamed trials."""

    study: str
    renamed: str
    trials: int


class StudyExportPage(Page):
    """The output of `study export`: what was exported from a study.

    `exported` has the numbers of trials, epochs and tables, and of trials that the program already had
    (`known`).
    """

    study: str
    to: str
    out: str
    exported: Mapping[str, int]


class StudyNoisePage(Page):
    """The output of `study noise`: for each metric, the smallest difference that a study can detect.

    The entry of a metric is null if no cell has two seeds.
    """

    study: str
    noise: Mapping[str, NoiseFloor | None]


class StudyImportancePage(Page):
    """The output of `study importance`: the share of each dimension of a search, the largest first.

    `points` is the number of finished points from which the shares are estimated.
    """

    study: str
    importance: Mapping[str, float]
    points: int


class StudyMissingPage(Page):
    """The output of `study missing`: ablations that a reviewer may request.

    `held` has the level at which each of the other factors stays fixed.
    """

    study: str
    seeds: Sequence[int]
    held: Mapping[str, Level]
    requests: Sequence[RequestCost]


class StudyQueryPage(Page):
    """The output of `study query`: the rows of the result. Each row maps columns to values."""

    rows: Sequence[Mapping[str, Any]]


class ProbeRunPage(Page):
    """The output of `probe run`: counts of new and of earlier measurements.

    `left` has the reason for each skipped trial.
    """

    study: str
    probed: int
    tuned: int
    stored: int
    left: Mapping[str, str]


class ProbeComparePage(Page):
    """The output of `probe compare`: differences between each model's outputs and a baseline's."""

    differences: Sequence[Mapping[str, Any]]


class TableRenderPage(Page):
    """The output of `table render`: the cells of the tables, row by row.

    Each cell has its estimate, its spread and its published number.
    """

    cells: Sequence[Mapping[str, Any]]


class CurveRenderPage(Page):
    """The output of `curve render`: the numbers that the figures of a study show."""

    curves: Sequence[Mapping[str, Any]]


class ReportBuildPage(Page):
    """The output of `report build`: its files. The last file is the page or the section itself."""

    study: str
    files: Sequence[Path]


class ClaimCheckPage(Page):
    """The output of `claim check`: the verdict on each claim of a study, with all of its comparisons.

    `ours` are the settings in the study's file that are from neither the paper nor the program of the paper.
    """

    study: str
    overrides: Sequence[str]
    ours: Sequence[str]
    claims: Sequence[ClaimResult]


class PaperEntry(Page):
    """Results for a published paper. `cells` are the cells of its tables with the measured numbers."""

    paper: str
    printed: Sequence[PrintedTable]
    claims: Sequence[PaperClaim]
    figures: Sequence[PaperFigure]
    studies: Sequence[PaperStudy]
    cells: Sequence[Mapping[str, Any]]


class PaperShowPage(Page):
    """The output of `paper show`: results for one paper, or for every paper."""

    papers: Sequence[PaperEntry]


class PaperBuildPage(Page):
    """The output of `paper build`: the files of the user's own paper, and the numbers in its text by name."""

    files: Sequence[Path]
    numbers: Mapping[str, PaperNumber]


class PaperFaultEntry(Page):
    """A fault in the text of a paper, or in a file generated for it.

    Lines count from 1, and columns from 0. `line` is null for a generated file.
    """

    file: str
    line: int | None
    start: int
    end: int
    message: str


class PaperCheckPage(Page):
    """The output of `paper check`: the faults of a paper's text and of its generated files."""

    faults: Sequence[PaperFaultEntry]


class ModelEntry(Page):
    """A stored model in a list of models."""

    trial: str
    levels: Mapping[str, Level]
    metrics: Mapping[str, float]
    path: Path


class ModelListPage(Page):
    """The output of `model list`: the stored models of a study."""

    models: Sequence[ModelEntry]


def _without_content(symbols: Any) -> Any:  # noqa: ANN401 -- plain data
    """Remove all entries named `content` from nested data, in a copy. They hold the bytes of vocabularies."""
    if isinstance(symbols, dict):
        return {name: _without_content(value) for name, value in symbols.items() if name != "content"}
    return symbols


class ModelShowPage(Page):
    """The output of `model show`: the facts in a model's file.

    `uses` are the commands that accept the model.
    """

    trial: str = Field(validation_alias=AliasPath("file", "trial", "id"))
    study: str = Field(validation_alias=AliasPath("file", "trial", "study"))
    levels: Mapping[str, Level] = Field(validation_alias=AliasPath("file", "trial", "levels"))
    recipe: str
    parameters: int
    settings: Annotated[
        Mapping[str, Any],
        BeforeValidator(lambda settings: settings.model_dump(mode="json")),
        Field(validation_alias=AliasPath("file", "trial", "settings")),
    ]
    metrics: Mapping[str, float] = Field(validation_alias=AliasPath("file", "metrics"))
    symbols: Annotated[
        Any, BeforeValidator(_without_content), Field(validation_alias=AliasPath("file", "symbols"))
    ]
    uses: Sequence[str]
    version: str = Field(validation_alias=AliasPath("file", "version"))
    commit: str | None = Field(validation_alias=AliasPath("file", "commit"))


class ModelGeneratePage(Page):
    """The output of `model generate`: the text to continue, and the continuation."""

    beginning: str
    text: str


class ModelScorePage(Page):
    """The output of `model score`: how likely a text is under a model."""

    nats: float
    tokens: int
    words: int
    loss: float
    bits_per_token: float
    word_perplexity: float
    bits_per_byte: float | None


class PassportCheck(Page):
    """A check in a passport. `passed` is null if the check does not apply, or cannot be made."""

    name: str
    passed: bool | None
    finding: str


class PassportPage(Page):
    """The output of `block verify`: all checks of a block.

    `against` is the layer that the block was compared with, if any. `passed` is true if no check has failed,
    and `comparable` is false if the two could not be compared.
    """

    block: str
    against: str | None
    passed: bool
    comparable: bool
    checks: Sequence[PassportCheck]


class StoreCleanPage(Page):
    """The output of `store clean`: unused files, and whether they were removed."""

    removed: bool
    leftovers: Sequence[Finding]


def all_pages() -> Mapping[str, type[Any]]:
    """Return the class of each command's JSON output.

    Some commands print JSON lines; the class is then that of a line.
    """
    return {
        "recipe check": RecipeCheckPage,
        "recipe render": RecipeName,
        "recipe show": RecipeCosts,
        "recipe compare": RecipeComparePage,
        "recipe nearest": NearestPage,
        "recipe sample": RecipeSamplePage,
        "list KIND": NameListPage,
        "show BLOCK": BlockPage,
        "show TASK": TaskEntry,
        "show METRIC": MetricEntry,
        "show NAME": NameEntry,
        "show KEY": KeysPage,
        "block verify": PassportPage,
        "study run": StudyStatusPage,
        "study watch": StudyStatusPage,
        "study plan": StudyPlanPage,
        "study coordinates": StudyCoordinates,
        "study show": StudyShowPage,
        "study status": StudyStatusPage,
        "study forget": Forgotten,
        "study rename": StudyRenamePage,
        "study export": StudyExportPage,
        "study list": StudyListPage,
        "study query": StudyQueryPage,
        "study noise": StudyNoisePage,
        "study importance": StudyImportancePage,
        "study missing": StudyMissingPage,
        "study propose": Proposal,
        "study tell": HandInAnswer,
        "probe run": ProbeRunPage,
        "probe compare": ProbeComparePage,
        "model list": ModelListPage,
        "model show": ModelShowPage,
        "model predict": Prediction,
        "model generate": ModelGeneratePage,
        "model score": ModelScorePage,
        "model export": Exported,
        "table render": TableRenderPage,
        "curve render": CurveRenderPage,
        "report build": ReportBuildPage,
        "claim check": ClaimCheckPage,
        "paper show": PaperShowPage,
        "paper build": PaperBuildPage,
        "paper check": PaperCheckPage,
        "store check": StoreCheck,
        "store repair": StoreCheck,
        "store clean": StoreCleanPage,
        "data list": DataPage,
        "data check": DataPage,
        "data fetch": DataFetchPage,
        "config show": ConfigShowPage,
    }


class _NullableNumbers(GenerateJsonSchema):
    """Generator of JSON Schemas in which numbers may be null. JSON has neither infinity nor NaN."""

    def float_schema(self, schema: FloatSchema) -> JsonSchemaValue:
        return super().float_schema(schema) | {"type": ["number", "null"]}


def pages_schema() -> dict[str, Any]:
    """Return a JSON Schema with a property for each command's JSON output."""
    pages: list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]] = [
        (command, "serialization", TypeAdapter(page)) for command, page in all_pages().items()
    ]
    found, definitions = TypeAdapter.json_schemas(pages, schema_generator=_NullableNumbers)
    numbered = {"properties": {"schema": {"const": SCHEMA}}, "required": ["schema"]}
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "activemem --json",
        "type": "object",
        "properties": {command: {"allOf": [page, numbered]} for (command, _), page in found.items()},
        **definitions,
    }
