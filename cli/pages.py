"""The fields of each command's JSON output, with their types. The reference is generated from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from ..blocks.testing.passport import Check
from ..engine.corpora.availability import Availability
from ..engine.inference.answers import Prediction
from ..grammar import Cardinality, Fault
from ..plugins import BrokenPlugin
from ..reporting.claims.verdicts import ClaimResult
from ..reporting.curves.curve import Curve
from ..reporting.manuscript.paper_file import PaperNumber
from ..reporting.missing_ablations import MissingCell
from ..reporting.paper import PaperSheet
from ..reporting.recipes.breakdown import RecipeCosts
from ..storage.store_upkeep import Finding, Forgotten, StoreCheck
from ..studies.evidence import Evidence, Verification
from ..studies.plan import Plan
from ..studies.planning.other_versions import OtherVersions
from ..studies.planning.status import StudyStatus
from ..studies.resolve.grid import PlannedRung
from ..studies.schema.settings import Level
from ..studies.schema.source_sheet import SourcedSetting
from ..studies.searches.points import BestPoint
from ..studies.searches.words import RungCost
from ..tracking.export import StudyExport
from .views.catalog import NameEntry
from .views.study_keys import KeyEntry, StudyTableEntry

_Rows = Sequence[Mapping[str, Any]]


class JsonPage(NamedTuple):
    """The JSON output of a command: a sentence on it, and the type of each field."""

    summary: str
    fields: Mapping[str, Any]


def _page(summary: str, result: type | None = None, /, **others: Any) -> JsonPage:  # noqa: ANN401 -- types
    """Return the page of a command that prints the fields of a result, and others."""
    own = {} if result is None else get_type_hints(result)
    return JsonPage(summary or (result.__doc__ if result else None) or "", {**own, **others})


_STATUS: Mapping[str, Any] = {
    "study": str,
    "title": str,
    "counts": Mapping[str, int],
    "other_versions": OtherVersions,
    "best": Sequence[BestPoint],
    "left_out": Sequence[tuple[int, str]],
    "run": Mapping[str, Any] | None,
}
_STATUS_PAGE = _page(
    "A study's status and its best points. `counts` are its trials by status. `left_out` has the numbers of "
    "points that are not ranked, with the reasons. `run` is null, or for `study run` the end of the run: "
    "`stopped` is true after an interrupt, `reason` is any other cause of an early end, `given_up` lists "
    "abandoned trials, and `resume` is the command that continues, if trials are left.",
    StudyStatus,
    **_STATUS,
)
_DATASETS = _page("The corpora, and their files on this machine.", datasets=Sequence[Availability])

PAGES: Mapping[str, JsonPage] = {
    "recipe check": _page(
        "A recipe with its number of architectures. A wrong recipe has all of its faults instead. `holes` "
        "and `dimensions` name what the recipe leaves open: parts to fill in, and choices or ranges.",
        text=str,
        id=str | None,
        holes=Sequence[str],
        dimensions=Sequence[str],
        space=Cardinality | None,
        faults=Sequence[Fault],
    ),
    "recipe show": _page("", RecipeCosts),
    "recipe compare": _page(
        "Recipes side by side, compared with the first one.", recipes=Sequence[RecipeCosts]
    ),
    "list KIND": _page(
        "The names of one kind. `problems` are plug-ins that cannot be used.",
        kind=str,
        names=Sequence[NameEntry],
        problems=Sequence[BrokenPlugin],
    ),
    "show NAME": _page(
        "The names of all kinds, the keys and the table of study files with this name.",
        names=Sequence[NameEntry],
        keys=Sequence[KeyEntry],
        table=StudyTableEntry | None,
    ),
    "block verify": _page(
        "All checks of a block. `passed` is true if no check has failed. `recorded` is true for a built-in "
        "block, which activemem's own tests have checked.",
        block=str,
        recorded=bool,
        checks=Sequence[Check],
        passed=bool,
    ),
    "study run": _STATUS_PAGE,
    "study watch": _STATUS_PAGE,
    "study plan": _page(
        "The plan of a study. `design` has the kind of its design and a sentence on it; `ladder` the sizes "
        "of [ladder], and `rungs` the rungs of a search whose fidelity is not epochs.",
        Plan,
        design=Mapping[str, Any],
        ladder=Sequence[PlannedRung],
        rungs=Sequence[RungCost],
    ),
    "study show": _page(
        "A study's settings. With --best, it is the table of its best points. If other levels of a factor "
        "override a value, its name ends in its level: `task.lengths[task=parity]`. `design` has settings "
        "that generate the cells, and `sizes` the size that `match` solves for each model, if any.",
        study=str,
        title=str,
        paper=str | None,
        settings=Sequence[SourcedSetting],
        design=Mapping[str, Sequence[str]],
        sizes=Mapping[str, int],
        points=_Rows | None,
    ),
    "study status": _STATUS_PAGE,
    "study forget": _page("", Forgotten),
    "study export": _page("What was exported from a study.", StudyExport, study=str, to=str, out=str),
    "study list": _page(
        "The status of each study by its name. A study that cannot be read has the field `error` instead.",
        studies=Mapping[str, Any],
    ),
    "study query": _page("The rows of the result. Each row maps columns to values.", rows=_Rows),
    "study importance": _page(
        "The share of each dimension of a search, the largest first. `points` is the number of ranked "
        "points from which the shares are estimated. A p-value says how often a dimension matters as much "
        "if the points' values are shuffled.",
        study=str,
        importance=Mapping[str, float],
        p_values=Mapping[str, float],
        points=int,
    ),
    "study missing": _page(
        "The single changes of a study's baseline of which the store lacks trials. `held` has the level at "
        "which each of the other factors stays fixed.",
        study=str,
        held=Mapping[str, Level],
        cells=Sequence[MissingCell],
    ),
    "probe run": _page(
        "Counts of new and of earlier measurements. `left` has the reason for each skipped trial.",
        study=str,
        probed=int,
        tuned=int,
        stored=int,
        left=Mapping[str, str],
    ),
    "model list": _page(
        "The stored models of a study: the trial of each with its levels, its metrics and its file.",
        models=_Rows,
    ),
    "model show": _page(
        "The facts in a model's file. `uses` are the commands that accept the model.",
        trial=str,
        study=str,
        levels=Mapping[str, Level],
        recipe=str,
        parameters=int,
        settings=Mapping[str, Any],
        metrics=Mapping[str, float],
        symbols=Mapping[str, Any] | None,
        uses=Sequence[str],
        version=str,
        commit=str | None,
    ),
    "model predict": _page("", Prediction),
    "model generate": _page("The text to continue, and the continuation.", beginning=str, text=str),
    "model score": _page(
        "How likely a text is under a model.",
        nats=float,
        tokens=int,
        words=int,
        loss=float,
        bits_per_token=float,
        word_perplexity=float,
        bits_per_byte=float | None,
    ),
    "model export": _page("The folder to which a model was exported.", folder=Path),
    "table render": _page(
        "The cells of the tables, row by row. Each cell has its estimate, its spread and its published "
        "number.",
        cells=_Rows,
    ),
    "curve render": _page("The numbers that the figures of a study show.", curves=Sequence[Curve]),
    "report build": _page("The file of a report.", study=str, file=Path),
    "claim check": _page(
        "The verdict on each claim of a study, with all of its comparisons. `ours` are the settings in the "
        "study's file that are from neither the paper nor the program of the paper, and `fitted` those that "
        "were chosen by results of the study's cells. `changes` are sentences on changes of `max_seeds` and "
        "of the seeds since there were results. `evidence` has when a run first recorded each claim, all "
        "ended trials of their cells in the store, and those that count. `seal` covers it.",
        study=str,
        overrides=Sequence[str],
        ours=Sequence[str],
        fitted=Sequence[str],
        claims=Sequence[ClaimResult],
        changes=Sequence[str],
        evidence=Evidence | None,
        seal=str,
    ),
    "claim verify": _page(
        "What has changed in claims and trials since each study of a store was sealed.",
        seals=Sequence[Verification],
    ),
    "judge": _page(
        "The tables and verdicts over runs of another program. `notes` say how the files were read, and what "
        "the verdicts depend on. `cells` and `claims` are those of `table render` and `claim check`.",
        study=str,
        origin=str,
        notes=Sequence[str],
        cells=_Rows,
        claims=Sequence[ClaimResult],
    ),
    "paper show": _page("Results for one paper, or for every paper.", papers=Sequence[PaperSheet]),
    "paper build": _page(
        "The files of the user's own paper, and the numbers in its text by name.",
        files=Sequence[Path],
        numbers=Mapping[str, PaperNumber],
    ),
    "store check": _page("", StoreCheck),
    "store repair": _page("", StoreCheck),
    "store clean": _page(
        "Unused files, and whether they were removed.", removed=bool, leftovers=Sequence[Finding]
    ),
    "data list": _DATASETS,
    "data check": _DATASETS,
    "data fetch": _page(
        "The downloaded files of each corpus. There are none for a corpus that comes with activemem.",
        files=Mapping[str, Sequence[Path]],
    ),
    "COMMAND FAULTY_STUDY": _page(
        "The faults of a study file or of a paper's text, which any command prints before it exits with 2. "
        "Each has its file, its line, its columns, the faulty key, such as `train.optimizer.lr`, and a "
        "message. Lines count from 1, and columns from 0. `line` is 0 for an option such as `--set`, and "
        "null without a line.",
        faults=_Rows,
    ),
    "config show": _page(
        "The value of each setting of this machine, and its source.",
        settings=Mapping[str, Mapping[str, Any]],
    ),
}
"""The JSON output of each command. For a command that prints JSON lines, it is that of a line."""
