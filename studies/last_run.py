"""Loading of studies as they last ran.

The store keeps their text and overrides. For an untrained study, an outline gives the number of trials,
counted from its design.
"""

from __future__ import annotations

import json
import logging
import operator
import os
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..errors import check_arguments, hint
from ..plugins import inline_codes, is_inline, loaded_files, loading_advice
from ..storage import Store, StoreError, open_store, store_fault
from ..storage.rows import KEY_COLUMNS, has_trial
from ..storage.trial_files import STARTS_FILE, read_begun
from .resolve.trial import cell_key, code_owner, first_of_each_kind, settings_from_json, training_id
from .schema.factors import SEED, as_list
from .study import (
    Study,
    follow_rounds,
    hint_beside,
    is_path,
    kind_of_name,
    load_recorded_study,
    load_study,
    read_size,
    shipped_studies,
)
from .text.document import Diagnostics, parse_document, read_document
from .text.errors import StudyError, StudyFault, command_line
from .text.strict_model import as_table
from .text.units import plural

if TYPE_CHECKING:
    from .claims.comparisons import Claim, ClaimSpec

_log = logging.getLogger(__name__)

Traits = tuple[Any, ...]
"""The values of the keys by which an outline distinguishes trials."""

_KEYS = (
    *(("task", "name"), ("model", "d_model"), ("train", "batch_size"), ("train", "epochs")),
    ("train", "steps_per_epoch"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOutline:
    """The title and the number of trials of a study that is not loaded in full.

    `held` counts the trials that gates hold back before the first run.
    """

    title: str
    trials: int
    held: int = 0


def outline(path: Path, known: Collection[Traits]) -> StudyOutline | None:
    """Return the title and the number of trials of a study file, or None if the study must be loaded.

    A study must be loaded if one of its trials may be among those with the `known` traits, because a store
    may then have the trial. It must also be loaded if the file has faults, and if cells may be left out for
    their size. A search has the trials that it requests; whether its space has as many is not counted.
    """
    try:
        document = read_document(path)
        own = traits(document.data)
        # a missing key or a hole may have any value in a trial
        is_open = [value is None or (isinstance(value, str) and "{" in value) for value in own]
        if any(all(map(operator.or_, is_open, map(operator.eq, own, each))) for each in known):
            return None
        if "search" in document.data:
            study = load_study(path)
            assert study.search is not None
            return StudyOutline(title=study.title, trials=study.search.requested_trials)
    except StudyError:
        return None
    diagnostics = Diagnostics(document)
    header, trials, held = read_size(diagnostics)
    if header is None or diagnostics.faults or header.limits:
        return None
    return StudyOutline(title=header.title, trials=trials, held=held)


def traits(tables: Mapping[str, Any]) -> Traits:
    """Return the traits of a trial or study, such as task, width and batch size.

    These are also the epochs and the steps per epoch. Two studies can share a trial only if their traits are
    equal, which is faster to compare than the trials. `tables` are a trial's settings or the tables of a
    study file. A missing key has the value None.
    """
    return tuple(as_table(tables.get(table)).get(key) for table, key in _KEYS)


def known_traits(
    store: Store, loaded: Iterable[Study] = (), stored: pl.DataFrame | None = None
) -> set[Traits]:
    """Return the traits of all trials in a store or in the loaded studies.

    `stored` are the trials of the store, if they have been read already.
    """
    trials = [trial for study in loaded for trial in study.trials]
    kinds = [each.settings for each in first_of_each_kind(trials)]
    found: set[Traits] = {tuple(getattr(getattr(each, table), key) for table, key in _KEYS) for each in kinds}
    other = ~has_trial(trial.id for trial in trials)
    texts = list[str]()
    stored = store.trials(columns=KEY_COLUMNS) if stored is None else stored
    if len(stored.filter(other)):
        settings = store.trials(columns=(*KEY_COLUMNS, "settings")).filter(other)["settings"]
        texts += settings.str.replace(r'"seed":\d+', '"seed":0').unique().to_list()
    for path in store.files.checkpoints_folder(STARTS_FILE).glob(f"*/{STARTS_FILE}"):
        with suppress(OSError, StoreError):  # `unfinished_trials` reports these errors
            texts += [] if (begun := read_begun(path.parent)) is None else [begun[0].settings]
    for text in texts:
        with suppress(ValueError, RecursionError, AttributeError):
            found.add(traits(json.loads(text)))
    return found


def load_last_run(
    name_or_path: str | None,
    store: Store,
    overrides: Sequence[str] = (),
    *,
    quiet: bool = False,
    folder: Path | None = None,
) -> Study:
    """Return a study as it last ran in a store.

    Without a name, it is the study that ran last. A path means the current file, and so does a name that has
    never run here. Further overrides come last. Unless `quiet`, log a warning if the file of that name, in
    the working directory or in `folder`, has changed since.
    """
    name = store.records.latest() if name_or_path is None else name_or_path
    if name is None:
        message = (
            f"no study has run in {store.absolute_place}{other_results(store)}; "
            "train one first: activemem study run NAME"
        )
        raise StudyError(store.place, [StudyFault(message=message)])
    record = None if is_path(name) else store.records.load(name)
    if record is None:
        _check_known(name, store)
        try:
            return follow_rounds(load_study(name, overrides), store)
        except StudyError as error:
            raise _with_hint(error, _missing_data_hint(Path(name), store)) from error
    try:
        found = load_recorded_study(record, overrides)
    except StudyError as error:
        lacking = [StudyFault(message=each) for each in _lacking_plugins(name, store)]
        failed = StudyError(f"{name} (last run)", [*lacking, *error.faults])
        way = f"delete such levels from {record.get('path') or f'{name}.toml'}, and give its path"
        way = f"; an earlier version ran it: {way}; no result is lost"
        raise _with_hint(failed, "" if lacking or overrides else way) from error
    files = () if quiet else (Path(f"{name}.toml"), (folder or Path()) / f"{name}.toml")
    if changed := next((file for file in files if _has_changed(file, record["text"])), None):
        _note_change(changed)
    return follow_rounds(found, store)


def _with_hint(error: StudyError, text: str) -> StudyError:
    """Return the error with a text at the end of its last fault."""
    *others, last = error.faults
    return StudyError(error.source, [*others, replace(last, message=f"{last.message}{text}")])


def _missing_data_hint(path: Path, store: Store) -> str:
    """Return a hint at the last run of a study, which needs no data, if data files are missing, else ""."""
    from .own_data.own_corpus import corpus_paths  # noqa: PLC0415 -- few studies bring data along

    with suppress(StudyError, StoreError, OSError, KeyError, TypeError):  # its faults are reported already
        data = read_document(path).data
        name, corpus = data["study"]["name"], data["task"]["corpus"]
        record = store.records.load(name)
        missing = not all((path.parent / each).exists() for each in corpus_paths(corpus))
        if missing and record is not None and record.get("own_corpus"):
            place = None if store.place == "results" else store.place
            show = command_line("table", "render", name, results=place)
            return f"; without it, show the study as it last ran, by its name: {show}"
    return ""


def _has_changed(path: Path, text: str) -> bool:
    """Return whether there is a study file at `path` with another text."""
    try:
        return path.is_file() and read_document(path).text != text
    except (OSError, StudyError):  # nobody can read the changed file as a study
        return True


@cache
def _note_change(file: Path) -> None:
    _log.warning("%s has changed since its last run, which is shown; for the file, give its path", file)


def recorded_text(name_or_path: str, store: Store) -> str:
    """Return a study's text at its last run, even with faults; "" for a path or a name that never ran."""
    record = None if is_path(name_or_path) else store.records.load(name_or_path)
    return "" if record is None else record["text"]


def load_to_run(name_or_path: str, store: Store, overrides: Sequence[str] = ()) -> Study:
    """Load a study from its current file, to run it.

    If its design has rounds, such as an ablation path, the study gets the round to which the stored results
    lead. Raise StudyError if the study is invalid, or if there is no file but only a record in the store; the
    error then names the file of the last run.
    """
    record = None if is_path(name_or_path) else store.records.load(name_or_path)
    if record is None or name_or_path in shipped_studies() or Path(name_or_path).exists():
        return follow_rounds(load_study(name_or_path, overrides), store)
    message = f"expected the file of the study, got the name {name_or_path}; the study last ran from"
    if (file := record.get("path")) and Path(file).exists():
        message += f" {file}"
    else:
        show = command_line("study", "show", name_or_path, toml=True)
        message += f" {file or 'a text'}, which no longer exists; print its text with: {show}"
    raise StudyError(name_or_path, [StudyFault(message=message)])


def describe_taken_name(study: Study, store: Store, when: str) -> str:
    """Return a note if the store knows the study's name from another file, which still exists, else "".

    `when` says from when on the name refers to this file.
    """
    record, path = store.records.load(study.name), study.document.path
    if not record or not record.get("path") or path is None or record["text"] == study.document.text:
        return ""
    before = Path(record["path"])
    if before.absolute() == path.absolute() or not before.exists():
        return ""
    return f"the name {study.name} belonged to {before}; {when} it refers to {path}"


def other_files(study: Study, store: Store) -> list[str]:
    """Return the other files, which still exist, from which a study of this name has run in the store."""
    record, path = store.records.load(study.name) or {}, study.document.path
    own = None if path is None else str(path.absolute())
    if own is None and record.get("text") == study.document.text:  # the study is read from its record
        own = record.get("path")
    known = dict.fromkeys([*record.get("other_paths", ()), record.get("path")])
    return [each for each in known if each and each != own and Path(each).exists()]


def describe_max_seeds(study: Study, store: Store) -> str:
    """Return a note if `max_seeds` has changed or has no effect, or if seeds were added by hand, else ""."""
    now = study.header.max_seeds
    if not study.asks_for_seeds:
        without = "the study has no claim, and no table with smallest_difference"
        return "" if now is None else f"max_seeds = {now} changes nothing: {without}"
    record = store.records.load(study.name)
    if record is None or not (last := as_table(_tables_of(record).get("study"))):
        return ""
    before, rows = last.get("max_seeds"), store.trials(columns=KEY_COLUMNS)
    ended = rows.filter(pl.col("study") == study.name)["trial"].n_unique()
    if before == now or not ended:
        return describe_added_seeds(study, store)
    when = f"max_seeds was {'not set' if before is None else before} when {plural(ended, 'trial')} ended"
    if now is None:
        return f"{when}: trials stay, but verdicts are no longer corrected for several looks at the results"
    change = "stricter, since claims are tested several times"
    change = change if before is None else "corrected for tests at other numbers of seeds"
    later = _seeds_of(record).difference(study.seeds)
    is_advice = before is None and now == len(study.seeds) + len(later)  # of `describe_added_seeds`
    valid = "" if is_advice and later else "; this is valid only if you have not seen a result yet"
    return f"{when}: trials stay, but verdicts are now {change}{valid}"


def describe_added_seeds(study: Study, store: Store) -> str:
    """Return a note if seeds were added to a study's file after there were results, else ""."""
    before = seeds_before(study, store)
    if not before or not set(before) < set(study.seeds):  # an override has other seeds than the file
        return ""
    told = f"the study had results for {plural(len(before), 'seed')} before it got {len(study.seeds)}: the"
    if (most := study.header.max_seeds) is not None:
        keep = f"to account for it, set seed = {list(before)} and keep max_seeds = {most}"
        return f"{told} error level of its verdicts leaves out the look at {len(before)} seeds; {keep}"
    return (
        f"{told} error level of its verdicts is that of a single look; to account for both looks, set "
        f"seed = {list(before)} and max_seeds = {len(study.seeds)}"
    )


def claim_ages(study: Study, store: Store) -> dict[str, int]:
    """Return how many trials of a study had ended when each of its claims was first recorded by a run.

    Trials count that have a task, and the data, of the claim's cells, also if their other settings differ.
    The key of a claim is what it tests: another statement or level is another claim. A claim that no run has
    recorded has the number of trials by now. A study without a record, such as a copy with another name,
    has the claims of the studies that trained its trials. Without a record that knows claims, as in a clone,
    all are 0.
    """
    done = store.trials(columns=(*KEY_COLUMNS, "status", "settings")).filter(status="done")
    in_cells = has_trial(trial.id for trial in study.cells)
    is_recorded = store.records.load(study.name) is not None
    names = [study.name] if is_recorded else done.filter(in_cells)["study"].unique().to_list()
    records = [record for name in names if (record := store.records.load(name)) and "claims" in record]
    own = done.filter(in_cells | (pl.col("study") == study.name)) if records else done.clear()
    ended = Counter(_data_of(json.loads(settings)) for settings in own["settings"])
    data = {
        cell_key(trial.levels): _data_of(trial.settings.model_dump(mode="json", include={"task"}))
        for trial in (study.cells if ended else ())
    }

    def before(claim: Claim) -> int:
        cells = {cell_key(each.cell) for each in claim.quantities}
        return sum(ended[task] for task in {data[cell] for cell in cells & data.keys()})

    ages = {_tested(each.spec): before(each) for each in study.claims}
    recorded = [each for record in records for each in record["claims"].items()]
    return ages | dict(sorted(recorded, key=operator.itemgetter(1), reverse=True))  # the lowest number wins


def _data_of(settings: Mapping[str, Any]) -> tuple[str, str]:
    """Return the names of the task and of the corpus in a trial's settings. All own data have one name."""
    corpus = settings["task"].get("corpus", "")
    return settings["task"]["name"], corpus if isinstance(corpus, str) else "own"


def describe_late_claims(study: Study, store: Store) -> str:
    """Return a note on the claims that were changed or added after trials had ended, else ""."""
    if not study.claims:
        return ""
    ages = claim_ages(study, store)
    late = {each.spec.name: ended for each in study.claims if (ended := ages[_tested(each.spec)])}
    if not late:
        return ""
    named = "; ".join(f"{name} (after {plural(ended, 'trial')})" for name, ended in late.items())
    return f"claims that were changed or added after there were results: {named}"


def _tested(spec: ClaimSpec) -> str:
    holds = " ".join(spec.holds.split())
    return spec.model_copy(update={"holds": holds}).model_dump_json(
        exclude={"name", "source"}, exclude_defaults=True
    )


def seeds_before(study: Study, store: Store) -> tuple[int, ...]:
    """Return the seeds for which a study had results before its file got more seeds, or ().

    The record of the last run either has them, or has the file with fewer seeds. Seeds that only an override
    leaves out are the file's. A single seed decides no claim, so that results for one seed do not count.
    """
    record = store.records.load(study.name)
    if record is None or study.search is not None:
        return ()
    before = set(record.get("seeds_before") or _seeds_of(record))
    if len(before) < 2 or not before < set(study.design.known_levels[SEED]):
        return ()
    trials = [trial for trial in study.cells if trial.seed in before]
    done = store.trials(columns=(*KEY_COLUMNS, "status", "seed", "settings")).filter(status="done")
    had_results = len(done.filter(has_trial(trial.id for trial in trials))) > 0
    if not had_results:  # results of the same trainings in other test sets count, too
        kinds = [each.settings for each in first_of_each_kind(trials)]
        trainings = {(training_id(each.with_seed(0)), each.train.epochs) for each in kinds}
        earlier = done.filter(pl.col("seed").is_in(list(before)), study=study.name)["settings"]
        texts = earlier.str.replace(r'"seed":\d+', '"seed":0').unique()
        had_results = any(_training_of(text) in trainings for text in texts)
    return tuple(sorted(before)) if had_results else ()


def _training_of(text: str) -> tuple[str, int] | None:
    """Return the id and the epochs of the training with these stored settings; None if they are invalid."""
    try:
        settings = settings_from_json(text)
    except ValueError:
        return None
    return training_id(settings), settings.train.epochs


def _seeds_of(record: Mapping[str, Any]) -> set[int]:
    """Return the seeds of a study's last run, with those of its file that an override left out."""
    tables = (_tables_of(each).get("factors") for each in (record, {**record, "overrides": ()}))
    return {seed for each in tables for seed in as_list(as_table(each).get(SEED)) if isinstance(seed, int)}


def _tables_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tables of a study as it last ran; none if its text is no longer valid."""
    try:
        return parse_document("study", record["text"], record.get("overrides", ())).data
    except StudyError:
        return {}


def other_results(store: Store, study: str = "", file: Path | None = None) -> str:
    """Return a hint at another folder that has results of the study; "" if there is none.

    It is the nearest folder `results` with trials of the study: in the folder of the study's file, in the
    working directory, or in a parent of these folders. Of a shipped study's folder no parent counts: it is
    not the user's.
    """
    if store.address is not None:
        return ""
    here = Path.cwd()
    beside = [file.resolve().parent] if file else []
    if file is not None and file.resolve() not in shipped_studies().values():
        beside += beside[0].parents
    for folder in (each / "results" for each in (*beside, here, *here.parents)):
        if (folder / "trials" / study).is_dir() and folder.resolve() != store.root.resolve():
            shown = os.path.relpath(folder) if here.parent in folder.parents else str(folder)
            return f", but there are results in {folder}: --results {shlex.quote(shown)}"
    return ""


def _check_known(name: str, store: Store) -> None:
    shipped = shipped_studies()
    if is_path(name) or name in shipped or Path(name).exists():
        return
    store.check_readable(name)
    source, studies = name, store.trials(columns=KEY_COLUMNS)["study"]
    if (damaged := store.records.find_damaged(name)) is not None:
        source = f"{name} (last run)"
        message = (
            f"its damaged record in the store was moved to {damaged}; run the study again from its "
            f"file, which rewrites the record: activemem study run FILE"
        )
    elif kind := kind_of_name(name):
        message = f"it is a {kind}, not a study: activemem show {shlex.quote(name)}"
    elif count := len(studies.filter(studies == name)):
        trials = plural(count, "trial")
        message = f"the store has {trials} of it, but no copy of its file: give the file's path"
    else:
        nearest = hint(name, {*shipped, *studies.unique()}) or hint_beside(Path(name))
        near = nearest or ". Train it first: activemem study run FILE; other stores: --results PATH"
        where = f"{store.absolute_place}{other_results(store, name)}"
        message = f"there is no such file, and no study of that name has run in {where}{near}"
    raise StudyError(source, [StudyFault(message=message)])


def _lacking_plugins(name: str, store: Store) -> Iterator[str]:
    own = store.trials(columns=(*KEY_COLUMNS, "version")).filter(pl.col("study") == name)
    # a version is `0.1.0 with mqar.py 1a2b3c4d, …`
    lists = (version.partition(" with ")[2] for version in own["version"].unique())
    used = {code for listed in lists for code in listed.split(", ")}
    here = {file.path.name for file in loaded_files()} | set(map(code_owner, inline_codes()))
    for owner in sorted(set(map(code_owner, used)) - here):
        if advice := loading_advice(owner):
            what = owner if is_inline(owner) else f"the plug-in {owner}"
            yield f"the stored trials used {what}: {advice}"


def load_studies(store: Store | str | Path) -> dict[str, Study | StudyError]:
    """Return all studies by name: those that are shipped, and those of a store as they last ran.

    A study that cannot be read, for example because keys have changed since, maps to its error.
    """
    check_arguments(store_fault(store))
    store = open_store(store)
    names = shipped_studies().keys() | _ran(store, store.trials(columns=KEY_COLUMNS))
    return {name: _load_or_fail(name, store) for name in sorted(names)}


def users_of_trials(store: Store, trials: Collection[str], *, apart_from: str) -> dict[str, str]:
    """Return which of these trials another study of the store has, too, with the name of that study.

    A search has the trials that it has adopted. Studies that cannot be read are left out.
    """
    found: dict[str, str] = {}
    for name in store.records.names():
        study = _load_or_fail(name, store) if name != apart_from else None
        if isinstance(study, Study):
            own = {trial.id for trial in study.with_later_seeds().trials} | {*store.adopted(name)["trial"]}
            found |= dict.fromkeys(own.intersection(trials), name)
    return found


def outline_studies(
    store: Store, stored: pl.DataFrame | None = None
) -> dict[str, Study | StudyOutline | StudyError]:
    """Return all studies by name; unused shipped studies only as outlines, where possible.

    A shipped study is unused if the store has no trial of it. The user's own studies come first. `stored` are
    the trials of the store, if they have been read already.
    """
    shipped, stored = shipped_studies(), store.trials(columns=KEY_COLUMNS) if stored is None else stored
    ran = _ran(store, stored) | {name for name in shipped if store.records.load(name) is not None}
    found: dict[str, Study | StudyOutline | StudyError] = {name: _load_or_fail(name, store) for name in ran}
    known = known_traits(store, [each for each in found.values() if isinstance(each, Study)], stored)
    for name in shipped.keys() - ran:
        found[name] = outline(shipped[name], known) or _load_or_fail(name, store)
    return {name: found[name] for name in sorted(found, key=lambda name: (name in shipped, name))}


def _ran(store: Store, stored: pl.DataFrame) -> set[str]:
    """Return the recorded studies that have stored trials, also if these are trials of another study, too."""
    ids, own = set(stored["trial"]), set(stored["study"])
    found = {name for name in own if store.records.load(name) is not None}
    others = set[str]()
    if ids:
        with suppress(StoreError):  # a record of a newer version
            others = set(store.records.names()) - own
    for name in others:
        study = _load_or_fail(name, store)
        if isinstance(study, Study) and any(trial.id in ids for trial in study.trials):
            found.add(name)
    return found


def _load_or_fail(name: str, store: Store) -> Study | StudyError:
    try:
        return load_last_run(name, store)
    except StudyError as error:
        return error
