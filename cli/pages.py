"""Pages: the JSON output of each command.

A page is the dataclass of a result, or a class with the keys that a command prints. JSON Schemas and the
reference are generated from it. Entries in this output are such classes too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import AliasPath, BeforeValidator, ConfigDict, Field, create_model

from ..engine.corpora.availability import Availability
from ..engine.inference.answers import Prediction
from ..grammar import Cardinality, Fault
from ..reporting.claims.verdicts import ClaimResult
from ..reporting.kept_models import KeptModel
from ..reporting.manuscript.paper_file import PaperNumber
from ..reporting.missing_ablations import MissingCell
from ..reporting.paper import PaperSheet
from ..reporting.recipes.breakdown import RecipeCosts
from ..storage.store_upkeep import Finding, Forgotten, StoreCheck
from ..storage.trial_files import CheckpointNote
from ..studies.planning.memory_estimates import StepMemory
from ..studies.planning.plan import Plan, PlannedTrial
from ..studies.planning.trials_to_run import EarlierTrial
from ..studies.resolve.grid import PlannedRung
from ..studies.schema.design import Design
from ..studies.schema.settings import Level
from ..studies.schema.source_sheet import Origin, SourcedSetting
from ..studies.searches.points import BestPoint
from ..studies.searches.words import RungCost, rung_costs
from ..studies.text.errors import StudyError, StudyFault
from .views.catalog import NameListPage, NamePage

_Levels = Mapping[str, Level]
_Rows = Sequence[Mapping[str, Any]]


_CONFIG = ConfigDict(
    from_attributes=True, populate_by_name=True, json_schema_serialization_defaults_required=True
)


def _entry(name: str, summary: str, /, **keys: Any) -> Any:  # noqa: ANN401 -- types made at run time
    """Return a class of JSON objects with these keys, each with its type.

    Instances are made from mappings, or from objects with attributes of these names. A key with a pair such
    as `(str, "trial.id")` is read from another attribute. A key that may be null can be left out.
    """
    fields: dict[str, Any] = {}
    for key, given in keys.items():
        kind, path = given if isinstance(given, tuple) else (given, key)
        default = None if type(None) in get_args(kind) else ...
        fields[key] = kind, Field(default, validation_alias=AliasPath(*path.split(".")))
    return create_model(name, __config__=_CONFIG, __doc__=summary, **fields)


def _attributes(result: type, names: str) -> dict[str, tuple[Any, str]]:
    """Return keys for `_entry`, which are attributes of a result. The key of `trial.id` is `id`."""
    keys: dict[str, tuple[Any, str]] = {}
    for path in names.split():
        kind: Any = result
        for name in path.split("."):
            read = getattr(kind, name, None)
            hints = get_type_hints(read.fget if isinstance(read, property) else kind, include_extras=True)
            kind = hints["return" if isinstance(read, property) else name]
        keys[path.rpartition(".")[2]] = kind, path
    return keys


def _page(command: str, summary: str, /, **keys: Any) -> tuple[str, Any]:  # noqa: ANN401 -- as above
    """Return a command with the class of its JSON output. `keys` are as for `_entry`."""
    return command, _entry(command, summary, **keys)


def _design_facts(design: Design) -> Mapping[str, Any]:
    return {"kind": design.kind, "told": design.explain(), "aliases": design.alias_words()}


def _memory_facts(found: tuple[str, StepMemory] | None) -> Mapping[str, Any] | None:
    return found and {"label": found[0], **asdict(found[1])}


def _fault_facts(errors: Sequence[StudyError]) -> Sequence[Mapping[str, Any]]:
    return [{"file": error.source, **asdict(fault)} for error in errors for fault in error.faults]


def _reached_facts(progress: Mapping[str, CheckpointNote]) -> Sequence[Mapping[str, Any]]:
    return [{"trial": trial, **dict(note)} for trial, note in progress.items()]


def _without_content(symbols: Any) -> Any:  # noqa: ANN401 -- plain data
    """Remove all entries named `content` from nested data, in a copy. They hold the bytes of vocabularies."""
    if isinstance(symbols, dict):
        return {name: _without_content(value) for name, value in symbols.items() if name != "content"}
    return symbols


_SpaceSize = _entry(
    "SpaceSize",
    "The number of architectures that a recipe describes. It is an upper bound if `exact` is false.",
    **_attributes(Cardinality, "architectures exact"),
)
_ReachedEntry = _entry(
    "ReachedEntry",
    "The progress of a trial that has begun: its last stored epoch, and the metrics of that epoch. "
    "`saved_at` is the time when the epoch was stored.",
    trial=str,
    **_attributes(CheckpointNote, "epoch metrics saved_at"),
)
_Length = Annotated[int, BeforeValidator(len)]
_STATUS_KEYS = dict[str, Any](
    study=str,
    title=str,
    trials=(int, "status.total"),
    **{each: (int, f"status.counts.{each}") for each in ("done", "failed", "pruned", "incomplete")},
    left=(int, "status.left"),
    spent=(str | None, "status.spent"),
    begun=(_Length, "status.started"),
    reached=(Annotated[Sequence[_ReachedEntry], BeforeValidator(_reached_facts)], "status.progress"),
    missing_weights=(_Length, "status.missing_weights"),
    stale=(_Length, "status.stale"),
    reasons=(Annotated[Mapping[str, int], BeforeValidator(dict)], "status.failure_reasons"),
)
_StudyStatusEntry = _entry(
    "StudyStatusEntry",
    "The status of a study: trials by status, begun trials, and reasons of failures. `spent` names the "
    'budget or space that a search has used up, such as "space of 2 points"; null otherwise. '
    "`missing_weights` counts done trials without the weights that the study keeps. `stale` counts trials "
    "that ended with a different version of a plug-in.",
    **_STATUS_KEYS,
)
_RunEntry = _entry(
    "RunEntry",
    "The end of a run: why it stopped, and the command that continues it. `stopped` is true after an "
    "interrupt; `reason` is any other cause of an early end. `given_up` lists abandoned trials, whose "
    "workers died too often; `resume` is the command to continue, if trials are left.",
    stopped=bool,
    reason=str | None,
    given_up=Sequence[str],
    resume=str | None,
)
_LeftOutEntry = _entry(
    "LeftOutEntry",
    "A reason why a search does not rank some points, and the number of these points.",
    points=int,
    reason=str,
)
_STATUS = _entry(
    "StudyStatus",
    "A study's status and its best points. `other_versions` counts stored trials of the study with other "
    "settings, data or code, which are not counted elsewhere; null for a search, whose trials are "
    "not known in advance. `left_out` counts the points that are not ranked. `run` is the end of the run, or "
    "null for other commands.",
    **_STATUS_KEYS,
    other_versions=int | None,
    best=Sequence[BestPoint],
    left_out=Sequence[_LeftOutEntry],
    run=_RunEntry | None,
)
_Dataset = _entry(
    "DatasetEntry",
    "A corpus: its files on this machine, and the faults that a check has found. `location` is its folder, "
    "or the command that fetches it.",
    **_attributes(
        Availability,
        "dataset.name dataset.title dataset.licence dataset.source here location files missing faults",
    ),
)
_DATA = _entry(
    "Datasets",
    "The corpora, and their files on this machine.",
    datasets=Sequence[_Dataset],
)
_PlannedTrial = _entry(
    "PlannedTrialEntry",
    "A planned trial. `goes_on` is the earlier trial from which this trial resumes, or null.",
    **_attributes(PlannedTrial, "trial.id trial.levels status estimate"),
    goes_on=(EarlierTrial | None, "resumed_from"),
)
_StudySetting = _entry(
    "StudySettingEntry",
    "A setting of a study, with the source of its value.",
    **_attributes(SourcedSetting, "name value"),
    origin=(Origin | None, "source.origin"),
    detail=(str | None, "source.detail"),
    default=(bool, "is_default"),
)

_UnreadableStudy = _entry(
    "UnreadableStudy", "A study that cannot be read, with the reason.", study=str, error=str
)
_SettingValue = _entry("SettingValue", "A setting of this machine, and its source.", value=Any, source=str)
_KeptModel = _entry(
    "ModelEntry",
    "A stored model in a list of models.",
    **_attributes(KeptModel, "trial levels metrics path"),
)
_Paper = _entry(
    "PaperEntry",
    "Results for a published paper. `cells` are the cells of its tables with the measured numbers.",
    **_attributes(PaperSheet, "paper printed claims figures studies cells"),
)
_Fault = _entry(
    "FaultEntry",
    "A fault of a study file or of a paper's text. `key` is the faulty key, such as `train.optimizer.lr`, or "
    "null. Lines count from 1, and columns from 0. `line` is 0 for an option such as `--set`, and null "
    "without a line.",
    file=str,
    **_attributes(StudyFault, "line key start end message"),
)
_Faults = Annotated[Sequence[_Fault], BeforeValidator(_fault_facts)]
_Check = _entry(
    "PassportCheck",
    "A check in a passport. `passed` is null if the check does not apply, or cannot be made.",
    name=str,
    passed=bool | None,
    finding=str,
)
_Fetched = _entry(
    "FetchedEntry",
    "The downloaded files of a corpus. There are none for a corpus that comes with activemem.",
    name=str,
    files=Sequence[Path],
)

_PAGES: Sequence[tuple[str, Any]] = (
    _page(
        "recipe check",
        "A recipe with its number of architectures. A wrong recipe has all of its faults instead. `holes` "
        "and `dimensions` name what the recipe leaves open: parts to fill in, and choices or ranges.",
        text=str,
        id=str | None,
        holes=Sequence[str],
        dimensions=Sequence[str],
        space=_SpaceSize | None,
        faults=Sequence[Fault],
    ),
    ("recipe show", RecipeCosts),
    _page(
        "recipe compare",
        "Recipes side by side, compared with the first one.",
        recipes=Sequence[RecipeCosts],
    ),
    ("list KIND", NameListPage),
    ("show NAME", NamePage),
    _page(
        "block verify",
        "All checks of a block. `passed` is true if no check has failed. `recorded` is true for a built-in "
        "block, which activemem's own tests have checked.",
        block=str,
        recorded=bool,
        passed=bool,
        checks=Sequence[_Check],
    ),
    ("study run", _STATUS),
    ("study watch", _STATUS),
    _page(
        "study plan",
        "The plan of a study: `models` with their costs, and `trials` with their estimated times. A model's "
        "`memory` is the largest memory in bytes that a training step of any of its trials takes. The page's "
        "`memory` is the largest of all models, with its parts. `match` names the size that is computed for "
        "each model so that costs match. `elsewhere` is the number of a search's points that other studies "
        "have trained. `ladder` has the sizes of [ladder], and `rungs` has the rungs of a search whose "
        "fidelity is not epochs. `max_seeds_note` is a sentence on seeds that have changed since there were "
        "results.",
        study=(str, "study.name"),
        **_attributes(Plan, "study.title total subset_size counts left elsewhere estimate"),
        design=(Annotated[Mapping[str, Any], BeforeValidator(_design_facts)], "study.design"),
        match=(str | None, "study.design.matched_size.name"),
        **_attributes(Plan, "models"),
        ladder=(Sequence[PlannedRung], "study.planned_sizes"),
        rungs=(Annotated[Sequence[RungCost], BeforeValidator(rung_costs)], "study"),
        **_attributes(Plan, "over_budget stale reach_limits insufficient_reach"),
        memory=Annotated[Mapping[str, Any] | None, BeforeValidator(_memory_facts)],
        **_attributes(Plan, "data flops"),
        trials=Sequence[_PlannedTrial],
        **_attributes(Plan, "noise max_seeds_note"),
    ),
    _page(
        "study show",
        "A study's settings. With --best, it is the table of its best points. If other levels of a factor "
        "override a value, its name ends in its level: `task.lengths[task=parity]`. `design` has settings "
        "that generate the cells, and `sizes` the size that `match` solves for each model, if any.",
        study=str,
        title=str,
        paper=str | None,
        settings=Sequence[_StudySetting],
        design=Mapping[str, Sequence[str]],
        sizes=Mapping[str, int],
        points=_Rows | None,
    ),
    ("study status", _STATUS),
    ("study forget", Forgotten),
    _page(
        "study export",
        "What was exported from a study.",
        study=str,
        to=str,
        out=str,
        exported=Mapping[str, int],
    ),
    _page(
        "study list",
        "Every study with its status. A study that cannot be read has the reason instead.",
        studies=Sequence[_StudyStatusEntry | _UnreadableStudy],
    ),
    _page("study query", "The rows of the result. Each row maps columns to values.", rows=_Rows),
    _page(
        "study importance",
        "The share of each dimension of a search, the largest first. `points` is the number of ranked "
        "points from which the shares are estimated.",
        study=str,
        importance=Mapping[str, float],
        points=int,
    ),
    _page(
        "study missing",
        "The single changes of a study's baseline of which the store lacks trials. `held` has the level at "
        "which each of the other factors stays fixed.",
        study=str,
        held=_Levels,
        cells=Sequence[MissingCell],
    ),
    _page(
        "probe run",
        "Counts of new and of earlier measurements. `left` has the reason for each skipped trial.",
        study=str,
        probed=int,
        tuned=int,
        stored=int,
        left=Mapping[str, str],
    ),
    _page(
        "model list",
        "The stored models of a study.",
        models=Sequence[_KeptModel],
    ),
    _page(
        "model show",
        "The facts in a model's file. `uses` are the commands that accept the model.",
        trial=(str, "file.trial.id"),
        study=(str, "file.trial.study"),
        levels=(_Levels, "file.trial.levels"),
        recipe=str,
        parameters=int,
        settings=(
            Annotated[Mapping[str, Any], BeforeValidator(lambda settings: settings.model_dump(mode="json"))],
            "file.trial.settings",
        ),
        metrics=(Mapping[str, float], "file.metrics"),
        symbols=(Annotated[Any, BeforeValidator(_without_content)], "file.symbols"),
        uses=Sequence[str],
        version=(str, "file.version"),
        commit=(str | None, "file.commit"),
    ),
    ("model predict", Prediction),
    _page("model generate", "The text to continue, and the continuation.", beginning=str, text=str),
    _page(
        "model score",
        "How likely a text is under a model.",
        nats=float,
        tokens=int,
        words=int,
        loss=float,
        bits_per_token=float,
        word_perplexity=float,
        bits_per_byte=float | None,
    ),
    _page("model export", "The folder to which a model was exported.", folder=Path),
    _page(
        "table render",
        "The cells of the tables, row by row. Each cell has its estimate, its spread and its published "
        "number.",
        cells=_Rows,
    ),
    _page("curve render", "The numbers that the figures of a study show.", curves=_Rows),
    _page(
        "report build",
        "The file of a report.",
        study=str,
        file=Path,
    ),
    _page(
        "claim check",
        "The verdict on each claim of a study, with all of its comparisons. `ours` are the settings in the "
        "study's file that are from neither the paper nor the program of the paper. `changes` are sentences "
        "on changes of seeds and claims since there were results.",
        study=str,
        overrides=Sequence[str],
        ours=Sequence[str],
        claims=Sequence[ClaimResult],
        changes=Sequence[str],
    ),
    _page(
        "paper show",
        "Results for one paper, or for every paper.",
        papers=Sequence[_Paper],
    ),
    _page(
        "paper build",
        "The files of the user's own paper, and the numbers in its text by name.",
        files=Sequence[Path],
        numbers=Mapping[str, PaperNumber],
    ),
    ("store check", StoreCheck),
    ("store repair", StoreCheck),
    _page(
        "store clean",
        "Unused files, and whether they were removed.",
        removed=bool,
        leftovers=Sequence[Finding],
    ),
    ("data list", _DATA),
    ("data check", _DATA),
    _page(
        "data fetch",
        "The downloaded files of each corpus.",
        datasets=Sequence[_Fetched],
    ),
    _page(
        "COMMAND FAULTY_STUDY",
        "The faults of a study file, which any command prints before it exits with 2.",
        faults=_Faults,
    ),
    _page(
        "config show",
        "The settings of this machine by name.",
        settings=Mapping[str, _SettingValue],
    ),
)
PAGES: Mapping[str, type[Any]] = dict(_PAGES)
"""The class of each command's JSON output. For a command that prints JSON lines, it is that of a line."""
