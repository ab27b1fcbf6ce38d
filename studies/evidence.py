"""The trials that could be seen when claims were judged, with a seal over claims and trials.

Evidence is bounded by identity, not by the name of a study. Every ended trial of the store counts whose
settings differ from those of a claim's cells only in the seed, whichever study trained it. The seal proves
that claims, trials and values fit together. It is no proof of honesty: whoever can write the folder can make
another one.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from ..storage import Store, StoreError
from ..storage.rows import KEY_COLUMNS
from .catalog.metrics import COSTS, metric_family, metric_index, read_target
from .planning.final_values import final_value
from .resolve.trial import CellKey, Kind, Trial, cell_key, settings_from_json, settings_to_json
from .schema.settings import read_recipe
from .study import Study, load_recorded_study
from .text.errors import StudyError
from .text.units import listed, number_range, plural, truncate

if TYPE_CHECKING:
    from .claims.comparisons import Claim

_COLUMNS = (*KEY_COLUMNS, "seed", "status", "recipe_id", "task", "settings", "metrics", *COSTS, "finished")
_SHOWN_DIGITS = 16  # of a seal's 64
_MAX_NAMED = 3  # studies or claims that a sentence names
_MAX_VALUE = 160  # characters of a changed value


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedClaim:
    """A claim: what it tests, and when a run first recorded it.

    `test` is the canonical text of what it tests, without its name and source. `cells` are the ids that the
    trials of its cells would have with the seed 0. `stated` is a time in ISO 8601, "" if no run has recorded
    this claim of these cells.
    """

    name: str
    test: str
    cells: tuple[str, ...]
    stated: str = ""

    @property
    def key(self) -> str:
        """Return the digest of what the claim tests in which cells."""
        return _digest([self.test, *self.cells])


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTrial:
    """An ended trial of the cells of claims. `values` has what the claims read of it, by metric.

    For a metric that is read from a history, such as `steps_to[dev_loss <= 1.5]`, this is a digest. A trial
    that an earlier seal has is `gone` if the store has no such row any more: it was forgotten, or trained
    again with another result.
    """

    trial: str
    cell: str
    seed: int
    study: str
    status: str
    finished: str
    values: Mapping[str, float | str | None]
    gone: bool = False


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The claims of a study, and all ended trials of their cells in a store, of which the study uses some.

    `is_recorded` says that the store has a record of a study with these trials, so that a claim without a
    time is newer than all of them. `others` counts the trials that the store has under the name of the study,
    and which the study does not have, for example since their settings were others.
    """

    claims: tuple[StatedClaim, ...]
    trials: tuple[SeenTrial, ...]
    used: tuple[str, ...]
    is_recorded: bool
    others: int = 0

    @cached_property
    def seal(self) -> str:
        """Return the SHA-256 of the claims with their times, and of all trials with their values."""
        return _seal_of(self.to_record())

    def to_record(self) -> dict[str, Any]:
        """Return claims and trials as the store keeps them beside their seal."""
        return {key: [asdict(each) for each in getattr(self, key)] for key in ("claims", "trials")}

    def ended_before(self, claim: StatedClaim) -> int | None:
        """Return how many trials of a claim's cells had ended when a run first recorded it.

        Of a claim that is newer than all runs, it is the number of all. It is None without any record.
        """
        if not self.is_recorded:
            return None
        own = [each.finished for each in self.trials if each.cell in set(claim.cells)]
        return sum(not claim.stated or finished < claim.stated for finished in own)

    @property
    def sentence(self) -> str:
        """Return when the claims were stated, which trials they use of those seen, and the seal.

        It is "" before any trial has ended.
        """
        if not self.trials:
            return ""
        others = f"{plural(self.others, 'trial')} of other settings under this name" if self.others else ""
        parts = (
            self._describe_statement(),
            self._describe_use(),
            others,
            f"seal {self.seal[:_SHOWN_DIGITS]}",
        )
        text = " · ".join(filter(None, parts))
        return f"{text[0].upper()}{text[1:]}."

    def _describe_statement(self) -> str:
        if not self.is_recorded:
            return "no run has recorded when these claims were stated"
        ages = {each.name: self.ended_before(each) for each in self.claims}
        late = [f"{name} (after {age})" for name, age in ages.items() if age]
        trials = f"{plural(len(self.trials), 'trial')} of these cells"
        more = len(late) - _MAX_NAMED
        named = "; ".join(late[:_MAX_NAMED]) + (f"; and {more} more" if more > 0 else "")
        if not late:
            return f"stated before the first of {trials}"
        if len(late) == len(ages):
            return f"stated after results: {named}, of {trials}"
        return f"stated before the first of {trials}, but for {named}"

    def _describe_use(self) -> str:
        left_out = [each for each in self.trials if each.gone or each.trial not in set(self.used)]
        gone = sum(each.gone for each in left_out)
        if not left_out:
            return f"uses all {len(self.trials)}"
        seeds = sorted({each.seed for each in left_out})
        is_range = seeds[-1] - seeds[0] == len(seeds) - 1
        which = number_range(seeds) if is_range else _first_of(seeds)
        studies = _first_of(name for name, _ in Counter(each.study for each in left_out).most_common())
        since = f"; {gone} removed or replaced since" if gone else ""
        return (
            f"uses {len(self.trials) - len(left_out)} of {len(self.trials)}, leaves out {len(left_out)} (seed"
            f"{'s' * (len(seeds) > 1)} {which} of {studies}{since}): valid only if the seeds were chosen "
            "before any result was seen"
        )


def _first_of(words: Iterable[object]) -> str:
    found = list(map(str, words))
    more = len(found) - _MAX_NAMED
    return listed([*found[:_MAX_NAMED], f"{more} more"] if more > 0 else found)


def find_evidence(study: Study, store: Store) -> Evidence | None:
    """Return the evidence for the claims of a study; None if it is a search or has no claim."""
    if study.search is not None or not study.claims:
        return None
    quantities = [each for claim in study.claims for each in claim.quantities]
    compared = {cell_key(each.cell) for each in quantities}
    grown = study.with_later_seeds()
    trials = [trial for trial in grown.cells if trial.cell in compared]
    own = {*store.trials(columns=KEY_COLUMNS).filter(study=study.name)["trial"]}
    one_of_each = {id(trial.common): trial for trial in trials}.values()
    ids = {trial.cell: Kind(trial.common).id_with(0) for trial in one_of_each}
    there = list(_seen_trials(store, one_of_each, sorted({each.metric for each in quantities})))
    every = store.records.readable()
    seen = tuple(sorted([*there, *_gone(there, every.values(), set(ids.values()))], key=_order))
    names = {study.name, *(each.study for each in seen)}
    records = [record for name, record in every.items() if name in names]
    times: dict[str, str] = {}
    for key, time in (pair for record in records for pair in record.get("stated", {}).items()):
        times[key] = min(time, times.get(key, time))
    claims = (_identify(claim, ids) for claim in study.claims)
    return Evidence(
        claims=tuple(replace(each, stated=times.get(each.key, "")) for each in claims),
        trials=seen,
        used=tuple(sorted({trial.id for trial in trials}.intersection(each.trial for each in seen))),
        is_recorded=bool(records),
        others=len(own - {each.id for each in grown.trials} - {each.trial for each in there}),
    )


def _gone(
    there: Sequence[SeenTrial], records: Iterable[Mapping[str, Any]], cells: Collection[str]
) -> Iterator[SeenTrial]:
    """Yield the trials of these cells that seals have and the store has no more, each row once.

    A failed trial that was trained again is none of them.
    """
    known, ended = {_row_of(asdict(each)) for each in there}, {each.trial for each in there}
    for entry in (each for record in records for each in (record.get("seal") or {}).get("trials", ())):
        if entry["cell"] in cells and _row_of(entry) not in known:
            known.add(_row_of(entry))
            if entry["status"] == "done" or entry["trial"] not in ended:
                yield SeenTrial(**{**entry, "gone": True})


def _row_of(entry: Mapping[str, Any]) -> str:
    return _digest([entry["trial"], entry["finished"], entry["values"]])


def _order(each: SeenTrial) -> tuple[str, bool, str]:
    return each.trial, each.gone, each.finished


def _identify(claim: Claim, ids: Mapping[CellKey, str]) -> StatedClaim:
    spec = claim.spec.model_copy(update={"holds": " ".join(claim.spec.holds.split())})
    test = spec.model_dump_json(exclude={"name", "source"}, exclude_defaults=True)
    cells = {ids[key] for each in claim.quantities if (key := cell_key(each.cell)) in ids}
    return StatedClaim(name=spec.name, test=test, cells=tuple(sorted(cells)))


def _seen_trials(store: Store, cells: Iterable[Trial], metrics: Sequence[str]) -> Iterator[SeenTrial]:
    """Yield the ended trials of these cells in the whole store, sorted by their ids."""
    common = [trial.common for trial in cells]
    recipes = {read_recipe(each.model.recipe).id for each in common}
    tasks = {each.task.name for each in common}
    is_candidate = pl.col("recipe_id").is_in(recipes) & pl.col("task").is_in(tasks)
    rows = store.trials(columns=_COLUMNS).filter(is_candidate).sort("trial")
    rows = rows.with_columns(kind=pl.col("settings").str.replace(r'"seed":\d+,"code"', '"seed":0,"code"'))
    ids = {settings_to_json(each.with_seed(0)): Kind(each).id_with(0) for each in common}
    own = set(ids.values())
    for text in rows["kind"].unique():
        if text not in ids:
            with suppress(StoreError):  # no store has written these settings
                ids[text] = Kind(settings_from_json(text)).id_with(0)
    rows = rows.with_columns(cell=pl.col("kind").replace_strict(ids, default="", return_dtype=pl.String))
    rows = rows.filter(pl.col("cell").is_in(own))
    rows = rows.with_columns(final_value(name).alias(f"value {name}") for name in metrics)
    histories = _histories(store, rows["trial"].to_list(), metrics)
    for row in rows.iter_rows(named=True):
        yield SeenTrial(
            trial=row["trial"],
            cell=row["cell"],
            seed=row["seed"],
            study=row["study"],
            status=row["status"],
            finished=row["finished"].isoformat(),
            values={name: row[f"value {name}"] for name in metrics} | histories.get(row["trial"], {}),
        )


def _histories(store: Store, trials: Sequence[str], metrics: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return digests of the stored histories that metrics with an index are read from, by trial."""
    indexed = (name for name in metrics if metric_index(name))
    read = {name: target.metric if (target := read_target(name)) else metric_family(name) for name in indexed}
    if not read or not trials:
        return {}
    found: dict[str, dict[str, str]] = {}
    for (trial,), rows in store.metrics(trials, set(read.values())).group_by("trial", maintain_order=True):
        for name, source in read.items():
            own = rows.filter(pl.col("name").str.starts_with(source)).select("name", "step", "epoch", "value")
            found.setdefault(str(trial), {})[name] = _digest(own.rows())[:_SHOWN_DIGITS]
    return found


def state_claims(study: Study, store: Store) -> dict[str, str]:
    """Return the time at which a run first recorded each claim, by its key; now for a new claim."""
    evidence, now = find_evidence(study, store), datetime.now(UTC).isoformat(timespec="microseconds")
    return {each.key: each.stated or now for each in evidence.claims} if evidence else {}


def seal_claims(study: Study, store: Store) -> None:
    """Keep the seal over a study's claims and their trials in its record, if trials have ended."""
    record, evidence = store.records.load(study.name), find_evidence(study, store)
    if record is not None and evidence is not None and evidence.trials:
        seal = {"seal": evidence.seal, **evidence.to_record()}
        if seal != record.get("seal"):
            store.records.save(study.name, {**record, "seal": seal})


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The comparison of a study's claims and trials with its seal. `changes` says what is different now."""

    study: str
    seal: str
    claims: int
    trials: int
    changes: tuple[str, ...]


def verify_seals(store: Store) -> list[Verification]:
    """Recompute the seals of all studies of a store, from its rows and records alone.

    A study that cannot be read here, for example without its plug-in, counts as changed, with the reason.
    """
    found: list[Verification] = []
    for name, record in sorted(store.records.readable().items()):
        if not (sealed := record.get("seal")):
            continue
        then = {key: sealed[key] for key in ("claims", "trials")}
        is_own = _seal_of(then) == sealed["seal"]
        changes = [] if is_own else ["the list of claims and trials beside the seal was changed itself"]
        try:
            evidence = find_evidence(load_recorded_study(record), store)
        except StudyError as error:
            changes += (f"it cannot be read here: {fault.message}" for fault in error.faults)
        else:
            # as JSON, in which the seal is kept
            now = json.loads(json.dumps(evidence.to_record() if evidence else {"claims": [], "trials": []}))
            changes += _changes(then, now)
        found.append(
            Verification(
                study=name,
                seal=sealed["seal"][:_SHOWN_DIGITS],
                claims=len(then["claims"]),
                trials=len(then["trials"]),
                changes=tuple(changes),
            )
        )
    return found


def _changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is different between two records of evidence, in words."""
    for what, key in (("claim", "name"), ("trial", "trial")):
        before, after = (
            {each[key]: each for each in side[f"{what}s"] if not each.get("gone")} for side in (then, now)
        )
        for name in sorted({*before, *after}):
            old, new = before.get(name), after.get(name)
            if old is None or new is None:
                how = "added" if old is None else "dropped"
                yield f"{what} {name} was {how}{_describe(old or new or {})}"
            # as text, in which a value that is no number equals itself
            elif differ := [field for field in old if json.dumps(old[field]) != json.dumps(new.get(field))]:
                texts = (f"{field} was {_short(old[field])}, is {_short(new[field])}" for field in differ)
                yield f"{what} {name} was changed: {'; '.join(texts)}"


def _describe(entry: Mapping[str, Any]) -> str:
    if "trial" not in entry:
        return f": {_short(entry['test'])}"
    return f": seed {entry['seed']} of {entry['study']}, ended {entry['finished'][:16]}"


def _short(value: object) -> str:
    return truncate(json.dumps(value, ensure_ascii=False), _MAX_VALUE)


def _seal_of(record: Mapping[str, Any]) -> str:
    return _digest([record["claims"], record["trials"]])


def _digest(values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
