"""The file paper.toml: which studies a paper uses, and the numbers that its text quotes.

A number is an expression, like one side of a claim's comparison. It is read and evaluated as in a claim: over
the cells that it names, averaged over their seeds. Unknown metrics, factors and levels are faults.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from ...errors import FaultCollector, nearest_hint
from ...storage import Store
from ...storage.place import place_within
from ...studies.catalog.metrics import METRICS_AND_COSTS, find_metric
from ...studies.claims.comparisons import (
    Claim,
    ClaimSpec,
    Constant,
    Extrapolation,
    Number,
    Picked,
    Quantity,
    Ratio,
    Reduction,
    cell_label,
    iter_comparisons,
    iter_numbers,
    iter_terms,
)
from ...studies.claims.reader import claim_scope, key_faults, missing_metrics, read_number
from ...studies.last_run import load_last_run
from ...studies.resolve.costs import counted_cost
from ...studies.resolve.trial import cell_key
from ...studies.schema.settings import Names
from ...studies.sections import SECTIONS
from ...studies.study import Study, is_path
from ...studies.text.document import Diagnostics, read_document
from ...studies.text.errors import StudyError, StudyFault
from ...studies.text.strict_model import StrictModel
from ...studies.text.units import plural
from ..claims.terminal import format_missing, format_numbers
from ..claims.verdicts import ClaimResult
from ..snapshot import Snapshot

_MAX_FAULTS_SHOWN = 3  # of a study that cannot be read
_NUMBER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}")


class NumberKeys(StrictModel):
    """A number of a paper: an expression, alone or with the factors whose best level its cells have."""

    value: Annotated[str, Field(max_length=4000)]
    """the expression, as in claims"""
    over: Names = ()
    """factors, such as the learning rate, whose best level each cell has"""
    pick_by: str | None = None
    """the metric whose mean over the seeds picks the level of `over`"""

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, given: object) -> object:
        return {"value": given} if isinstance(given, str) else given


class PaperHeader(StrictModel):
    """[paper]: the studies, their store, and the folder of the generated files."""

    studies: Annotated[Names, Field(min_length=1)]
    """the studies: files relative to this one, or names, which mean studies as they last ran"""
    results: str | None = None
    """the store: a folder relative to this file, or s3://BUCKET/NAME (default: as configured)"""
    folder: str = "generated"
    """the folder that `activemem paper build` writes, relative to this file"""
    format: Literal["latex", "siunitx"] = "latex"
    """the format of tables"""

    @field_validator("folder")
    @classmethod
    def _check_folder(cls, folder: str) -> str:
        path = PurePosixPath(folder)
        if not path.parts or ".." in path.parts or path.is_absolute():
            raise ValueError(f"expected a subfolder of the folder with this file, got {folder!r}")
        return str(path)


class PaperKeys(StrictModel):
    """The contents of paper.toml. In `tables`, `figures` and `numbers`, the keys are names of studies."""

    paper: PaperHeader
    """the studies of the paper, and the places of files"""
    tables: dict[str, Names] = Field(default_factory=dict[str, Names])
    """for the name of a study, the tables to include, `[]` for none (default: all)"""
    figures: dict[str, Names] = Field(default_factory=dict[str, Names])
    """for the name of a study, the figures to include, `[]` for none (default: all)"""
    numbers: dict[str, dict[str, NumberKeys]] = Field(default_factory=dict[str, dict[str, NumberKeys]])
    """for the name of a study, its numbers: a name for `\\am`, and an expression as in claims, or `{ value =
    …, over = …, pick_by = … }`"""
    licences: dict[str, str] = Field(default_factory=dict[str, str])
    """for the name of a file of your own data, its licence; without it `compute.tex` has a TODO"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperNumber:
    """A number that the text of a paper quotes.

    `text` is None if the store has no value for it.

    `source` is its expression with study and number of seeds, `gaps` says which trials are missing, and
    `bias` how the choice of its levels biases it.
    """

    text: str | None
    source: str
    gaps: str
    bias: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manuscript:
    """A paper with its numbers by name, and its studies' results, read from the store at one moment."""

    path: Path
    keys: PaperKeys
    studies: tuple[Snapshot, ...]
    numbers: Mapping[str, PaperNumber]

    @property
    def folder(self) -> Path:
        """Return the folder of the generated files."""
        return self.path.parent / self.keys.paper.folder


def read_manuscript(path: Path, find_store: Callable[[str | None], Store]) -> Manuscript:
    """Read the `paper.toml` of a paper. Raise StudyError with all faults of the file, or StoreError.

    `find_store` opens the store at a place, or the configured store if the file names no place.
    """
    if not path.exists():
        lines = 'two lines suffice, [paper] and studies = ["NAME"]; see docs/how-to/paper.md'
        message = f"no such file; write one that names the studies of your paper: {lines}"
        raise StudyError(str(path), [StudyFault(message=message)])
    diagnostics = Diagnostics(read_document(path))
    keys = diagnostics.validate(PaperKeys, (), diagnostics.data)
    if keys is None:
        raise StudyError(str(path), diagnostics.faults)
    place = keys.paper.results
    store = find_store(None if place is None else place_within(path.parent, place))
    studies = _load_studies(diagnostics, path.parent, keys, store)
    claims = {name: _read_numbers(diagnostics, keys, study) for name, study in studies.items()}
    if diagnostics.faults:
        raise StudyError(str(path), diagnostics.faults)
    snapshots, numbers = list[Snapshot](), dict[str, PaperNumber]()
    for name, study in studies.items():
        # the numbers are among the claims here, so that the snapshot has their metrics too
        now = Snapshot.of(study.with_claims((*study.claims, *claims[name])), store)
        snapshots.append(replace(now, study=study))
        checked = replace(now, study=study.with_claims(claims[name])).claims()
        own = snapshots[-1].claims() if checked else ()
        for result, claim in zip(checked, claims[name], strict=True):
            numbers.update(_numbers(_as_claimed(result, claim, study, own), claim, now))
    return Manuscript(path=path, keys=keys, studies=tuple(snapshots), numbers=numbers)


def _load_studies(diagnostics: Diagnostics, folder: Path, keys: PaperKeys, store: Store) -> dict[str, Study]:
    """Load the studies that a paper uses, and return them by name.

    Report studies that cannot be loaded, and studies, tables or figures that do not exist.
    """
    studies, all_known = dict[str, Study](), True
    for number, name in enumerate(keys.paper.studies):
        try:
            given = str(folder / name) if is_path(name) else name
            study = load_last_run(given, store, folder=folder, reads=SECTIONS)
        except StudyError as error:
            all_known = False
            shown, left = error.messages[:_MAX_FAULTS_SHOWN], len(error.messages) - _MAX_FAULTS_SHOWN
            more = (f"and {plural(left, 'more fault')}",) if left > 0 else ()
            diagnostics.report(("paper", "studies", number), f"{name}: {'; '.join((*shown, *more))}")
            continue
        if study.name in studies:
            diagnostics.report(("paper", "studies", number), f"'{study.name}' is listed twice")
        studies[study.name] = study
    files = {path.name for study in studies.values() for path in own_files(study)}
    for name in keys.licences.keys() - files if all_known else ():
        message = f"no study of the paper has a file '{name}' of its own{nearest_hint(name, files)}"
        diagnostics.report(("licences", name), message, key=True)
    for table in ("tables", "figures", "numbers"):
        for name in getattr(keys, table):
            if (study := studies.get(name)) is None:
                message = f"no study '{name}' in [paper] studies{nearest_hint(name, studies)}"
                if all_known:
                    diagnostics.report((table, name), message, key=True)
            elif table != "numbers":
                known = [each.name for each in (study.tables if table == "tables" else study.curves)]
                for number, shown in enumerate(getattr(keys, table)[name]):
                    if shown not in known:
                        hint = nearest_hint(shown, known) or "; it has none"
                        message = f"the study has no {table[:-1]} '{shown}'{hint}"
                        diagnostics.report((table, name, number), message)
    return studies


def own_files(study: Study) -> list[PurePath]:
    """Return the files of a study's own corpus."""
    return list(map(PurePath, study.own_corpus.paths)) if study.own_corpus else []


def _read_numbers(diagnostics: Diagnostics, keys: PaperKeys, study: Study) -> list[Claim]:
    """Read the numbers of a study that the paper quotes, and report those with faults.

    Each number is the left side of a claim, since claims are computed with intervals.
    """
    texts, path = keys.numbers.get(study.name, {}), ("numbers", study.name)
    if texts and study.search is not None:
        diagnostics.report(path, "a number is computed from cells of a grid; a search has none", key=True)
        return []
    claims, scope = list[Claim](), claim_scope(study.design, METRICS_AND_COSTS)
    for name, keys_of in texts.items():
        if not _NUMBER_NAME.fullmatch(name):
            diagnostics.report((*path, name), "expected a letter, then letters, digits, '-' or '_'", key=True)
        owner = next(each for each, numbers in keys.numbers.items() if name in numbers)
        if owner != study.name:
            diagnostics.report(
                (*path, name), f"the name '{name}' is already used for another number of {owner}", key=True
            )
        faults = FaultCollector(keys_of.value)
        spec = ClaimSpec(name=name, holds=keys_of.value, over=keys_of.over, pick_by=keys_of.pick_by)
        for key, message in key_faults(spec, study.factors):
            diagnostics.report((*path, name, key), message)
        claim = read_number(spec, scope, faults)
        is_text = isinstance(diagnostics.data["numbers"][study.name][name], str)
        place = (*path, name) if is_text else (*path, name, "value")
        for fault in faults:
            within = (fault.start, max(fault.end, fault.start + 1))
            diagnostics.report(place, fault.message, within=within)
        claims += [claim] if claim else []
    for claim, cell, fault in missing_metrics(claims, [*study.cells, *study.over_budget]):
        diagnostics.report((*path, claim.spec.name), f"{cell_label(cell)}: {fault}")
    return claims


def _as_claimed(checked: ClaimResult, claim: Claim, study: Study, own: Sequence[ClaimResult]) -> ClaimResult:
    """Return the result of the study's claim about the same difference or speedup, or else the number's own.

    So the text has the same seeds and the same interval as the verdict. `own` are the results of the study's
    claims. A difference that a claim has the other way round changes its sign.
    """
    number = next(iter_comparisons(claim.statement))
    asked = Counter(iter_terms(number.left, 1))
    if len(asked) == 1 and not number.is_ratio:  # it compares nothing
        return checked
    reverse = Counter({(-sign, term): count for (sign, term), count in asked.items()})
    for each, result in zip(study.claims, own, strict=True):
        for comparison, finding in zip(each.comparisons, result.findings, strict=True):
            if comparison.subtracts_constant:  # its effect is another number
                continue
            terms = Counter(term for term in comparison.terms if not isinstance(term[1], Constant | Ratio))
            if terms == asked:
                return replace(result, deciding=finding)
            if terms == reverse and not number.is_ratio:
                return replace(result, deciding=finding.reversed)
    return checked


def _numbers(checked: ClaimResult, claim: Claim, now: Snapshot) -> Iterator[tuple[str, PaperNumber]]:
    """Yield a number, its interval and its count of seeds, each with a name that the paper can quote.

    The names end in `.low` and `.high` for the interval, in `.level` for its level in percent, and in `.n`
    for the count of seeds.

    The prediction of a power law has the interval of a table of the kind `scaling`. A number that is computed
    from such a prediction has none, since its spread over seeds leaves out the error of the law. A number
    that is counted from settings, such as `parameters`, has no seeds and no interval.
    """
    study, found, level = now.study, checked.deciding, checked.level
    match number := next(iter_comparisons(claim.statement)).left:
        case Extrapolation() if found.effect is not None and (predicted := now.prediction(number)):
            value, low, high = predicted
            interval = None if low is None or high is None else (low, high)
            level = 0.95
            found = replace(found, effect=value, interval=interval, n=found.n)
        case _ if any(isinstance(each, Extrapolation) for each in iter_numbers(number)):
            found = replace(found, interval=None)
        case _ if found.interval:
            (low, high), (lowest, highest) = found.interval, _bounds(number)
            found = replace(found, interval=(max(low, lowest), min(high, highest)))
        case _:
            pass
    gaps = "; ".join(format_missing([found])) or ("" if found.effect_text else "not run")
    counted = _is_counted(claim, study)
    origin = "counted from the settings" if counted else plural(found.n, "seed")
    source = f"{claim.spec.holds} ({study.name}, {origin})"
    texts = {"": found.effect_text or None}
    if not counted:
        texts |= zip((".low", ".high"), format_numbers(found, checked.verdict)[1], strict=False)
        texts |= {".level": f"{100 * level:.4g}"} if ".low" in texts else {}
        texts |= {".n": str(found.n)}
    for suffix, text in texts.items():
        name = f"{claim.spec.name}{suffix}"
        yield name, PaperNumber(text=text, source=source, gaps=gaps, bias=claim.bias)


def _bounds(number: Number) -> tuple[float, float]:
    """Return the smallest and the largest possible value of a number; a difference has no bounds."""
    match number:
        case Quantity(metric=metric) | Picked(metric=metric):
            return find_metric(metric).bounds
        case Reduction(parts=parts):
            lowest, highest = zip(*map(_bounds, parts), strict=True)
            return min(lowest), max(highest)
        case _:
            return -math.inf, math.inf


def _is_counted(claim: Claim, study: Study) -> bool:
    """Return whether a number needs no training, since it is computed from the settings of its cells."""
    known = {trial.cell: trial.settings for trial in study.cells}
    return all(
        (settings := known.get(cell_key(each.cell))) and counted_cost(each.metric, settings) is not None
        for each in claim.quantities
    )
