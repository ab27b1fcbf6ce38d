"""Selection of the trials that a run trains, and of finished trials that longer ones can continue.

A run leaves out trials with an outcome in the store, and those beyond the budget of their search.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ...errors import nearest_hint
from ...plugins import owners_to_load
from ...storage import Store, StoreError
from ...storage.rows import KEY_COLUMNS, has_trial
from ...storage.trial_files import STARTS_FILE, begun_trials, read_begun
from ..catalog.optimisers import rates_depend_on_length
from ..last_run import other_files
from ..resolve.costs import flops_of_test, max_training_flops
from ..resolve.trial import (
    ARITHMETIC,
    CellKey,
    Kind,
    Trial,
    code_owner,
    settings_from_json,
    tables_from_json,
    training_kind,
    trial_id,
)
from ..schema.factors import NamedLevels, level_text
from ..schema.search_settings import SearchBudget
from ..schema.settings import Level, TrainSettings, TrialSettings, read_recipe
from ..study import Study, load_recorded_study, load_study
from ..text.errors import StudyError, StudyFault

if TYPE_CHECKING:
    from ..resolve.search_source import SearchSource

DEVICE_COLUMNS = ("gpus", "cuda_version")
"""The columns that give the number of GPUs of a training."""

_log = logging.getLogger(__name__)


def unfinished_trials(root: Path, study: str | None = None) -> list[Trial]:
    """Return the begun trials below `root` that have no outcome yet, always in the same order.

    Each has its own folder. With `study`, only its trials are read, because trials of other studies may need
    plug-ins that are not loaded here. A trial with a damaged record is logged and left out.
    """
    found: list[Trial] = []
    for path in root.glob(f"*/{STARTS_FILE}"):
        try:
            if (unfinished := read_unfinished(path.parent, study)) is not None:
                found.append(unfinished)
        except (OSError, StoreError) as error:
            _warn_once(f"{error}; it is skipped")
    # a file system lists folders in any order
    return sorted(found, key=Trial.to_json)


@cache
def _warn_once(text: str) -> None:
    """Log a warning, which further reads of the same store do not repeat."""
    _log.warning("%s", text)


def read_unfinished(folder: Path, study: str | None = None) -> Trial | None:
    """Return the unfinished trial in a checkpoint folder; None if its record was never completed.

    With `study`, return None for a trial of another study, too. Raise `StoreError`, which names the file, and
    OSError.
    """
    found = read_begun(folder)
    if found is None:
        return None
    begun, _ = found
    if study is not None and begun.study != study:
        return None
    try:
        settings = settings_from_json(begun.settings)
    except ValueError as error:
        raise StoreError(f"{folder / STARTS_FILE}: expected a trial's settings: {error}") from error
    trial = Trial(study=begun.study, levels=begun.levels, settings=settings)
    if trial.id != folder.name:
        changed = f"started as trial {folder.name} by other code, now {trial.id}"
        raise StoreError(f"{folder / STARTS_FILE}: {changed}")
    return trial


def trials_to_run(
    study: Study,
    store: Store,
    statuses: Mapping[str, str],
    *,
    only: Collection[str] | None = None,
    retry_failed: bool = False,
) -> list[Trial]:
    """Return the trials of a grid that a run must train.

    `statuses` has the status of each trial with an outcome. Pruned trials, incomplete ones (with lost
    metrics), and done ones with missing weights run again; failed ones only with `retry_failed`. `only`
    restricts them to these ids.
    """
    repeated = {"pruned", "incomplete", *(["failed"] if retry_failed else [])}
    without_weights = set(trials_missing_weights(study, store, statuses))
    return [
        trial
        for trial in study.trials
        if (only is None or trial.id in only)
        and (trial.id not in statuses or statuses[trial.id] in repeated or trial.id in without_weights)
    ]


def start_turns(study: Study) -> dict[str, int]:
    """Return each grid trial's place in the starting order, as a number by trial id.

    Lower numbers, called turns, start first. Trials of one turn may start in any order. A trial's turn
    depends on the study, not on the store, so that a resumed run first completes the interrupted turn.
    """
    if study.header.order == "file":
        return {trial.id: 0 for trial in study.trials}
    seen, turns = Counter[CellKey](), dict[str, int]()
    for trial in study.trials:
        turns[trial.id] = seen[trial.cell]
        seen[trial.cell] += 1
    return turns


def trials_missing_weights(study: Study, store: Store, statuses: Mapping[str, str]) -> tuple[str, ...]:
    """Return the done trials whose weights the store should have but lacks; a run trains them again."""
    if not study.header.keep_weights or study.search is not None:
        return ()
    done = [trial.id for trial in study.trials if statuses.get(trial.id) == "done"]
    kept = store.files.trials_with_weights(done)
    return tuple(trial for trial in done if trial not in kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierTrial:
    """A finished trial from which another can continue.

    The two differ only in the number of epochs and in test sets. `epochs` is the number of epochs that the
    later trial can skip.
    """

    trial: str
    epochs: int

    def share_left(self, settings: TrialSettings) -> float:
        """Return the share of a trial's work that is left if it continues this trial."""
        training, test = max_training_flops(settings), flops_of_test(settings)
        return (training * (1 - self.epochs / settings.train.epochs) + test) / (training + test)


class EarlierTrials:
    """Finished trials that other trials can continue, with more epochs or other test sets.

    Their last state, before its evaluation, is in a store. A trial whose row was lost continues from its own.
    """

    def __init__(self, store: Store) -> None:
        kept = store.files.trials_with_final_checkpoint()
        rows = store.trials(columns=(*KEY_COLUMNS, "status", "epochs", "arithmetic", "settings", *_GROUP))
        self._lost = kept.difference(rows.filter(pl.col("status") != "incomplete")["trial"])
        self._found = defaultdict[str, list[_Ended]](list)
        self._read = dict[str, tuple[Kind, Kind, int]]()
        self._trainings = dict[Kind, Kind]()
        self._unread = defaultdict[tuple[object, ...], list[tuple[_Ended, str]]](list)
        done = rows.filter(status="done").with_columns(
            pl.col("settings").str.extract(rf'"{name}":([^,}}]+)').cast(pl.Float64, strict=False).alias(name)
            for name in ("d_model", "lr")
        )
        columns = ("trial", "epochs", "arithmetic", "settings", *_GROUP, "d_model", "lr")
        for trial, epochs, arithmetic, text, *group in done.select(columns).iter_rows():
            is_current = (arithmetic or 0) == ARITHMETIC
            ended = _Ended(trial=trial, epochs=epochs, is_kept=trial in kept, is_current=is_current)
            self._unread[tuple(group)].append((ended, text))

    def add(self, settings: TrialSettings) -> None:
        """Add the finished trial with these settings, whose final state is kept."""
        epochs = settings.train.epochs
        ended = _Ended(trial=trial_id(settings), epochs=epochs, planned=epochs)
        self._found[training_kind(settings).id_with(settings.seed)].append(ended)

    def find(self, trial: Trial) -> EarlierTrial | None:
        """Return the longest finished trial that `trial` can continue, or None.

        If it has as many epochs, only its test differs, or it is `trial`, whose weights were lost. The result
        equals, bit for bit, that of a trial that starts from scratch.
        """
        train = trial.common.train
        if trial.id in self._lost:
            return EarlierTrial(trial=trial.id, epochs=train.epochs)
        fitting = [each for each in self._of(trial) if not each.fault(train)]
        longest = max(fitting, key=lambda each: each.epochs, default=None)
        return None if longest is None else EarlierTrial(trial=longest.trial, epochs=longest.epochs)

    def why_not(self, trial: Trial) -> str:
        """Return why `trial` continues no other finished trial of at most as many epochs, or "".

        The reason is that of the longest of them; without one, there is nothing to explain.
        """
        train = trial.common.train
        others = [each for each in self._of(trial) if each.trial != trial.id and each.planned <= train.epochs]
        faults = {each.epochs: each.fault(train) for each in others}
        return faults[max(faults)] if faults and all(faults.values()) else ""

    def _of(self, trial: Trial) -> Sequence[_Ended]:
        """Return the finished trials that differ from `trial` only in epochs and tests.

        The settings of stored rows are read when a trial of their group is first asked for, because this
        takes most of the time.
        """
        if not (self._unread or self._found):
            return ()
        common = trial.common
        recipe, lr = read_recipe(common.model.recipe).id, common.train.optimizer.lr
        group = (recipe, common.task.name, trial.seed, float(common.model.d_model), lr)
        for ended, text in self._unread.pop(group, ()):
            with suppress(ValueError):  # the trial needs a plug-in or a corpus that is no longer known
                whole = text.replace(f'"seed":{trial.seed},', '"seed":0,')  # the same for all seeds of a cell
                if whole not in self._read:
                    settings = settings_from_json(whole)
                    epochs = settings.train.epochs
                    self._read[whole] = Kind(settings), training_kind(settings), epochs
                kind, training, planned = self._read[whole]
                if (
                    kind.id_with(trial.seed) == ended.trial
                ):  # otherwise its results were of an earlier version
                    self._found[training.id_with(trial.seed)].append(replace(ended, planned=planned))
        if not self._found:
            return ()
        key = Kind(common)
        if key not in self._trainings:
            self._trainings[key] = training_kind(common)
        return self._found.get(self._trainings[key].id_with(trial.seed), ())


_GROUP = ("recipe_id", "task", "seed")
"""The columns of a row in which two trials agree if one continues the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """A finished trial: its epochs, those that its settings planned, and whether its last state is usable."""

    trial: str
    epochs: int
    planned: int = 0
    is_kept: bool = True
    is_current: bool = True

    def fault(self, train: TrainSettings) -> str:
        """Return why a trial with these settings cannot continue this one, or ""."""
        rates = f"the learning rates of {train.schedule.name} depend on the number of epochs"
        faults = (
            (train.seconds is not None, "with train.seconds, epochs have other steps"),
            (self.planned > train.epochs, "it is longer"),
            (not can_continue(train, self.planned), rates),
            (self.epochs < self.planned, "the shorter training stopped early"),
            (not self.is_kept, "the last state of the shorter training is not kept"),
            (not self.is_current, "an earlier version of activemem rounded the shorter training differently"),
        )
        return next((text for is_so, text in faults if is_so), "")


def can_continue(train: TrainSettings, epochs: int) -> bool:
    """Return whether a training has the same steps up to this number of epochs as if it ended there."""
    if epochs >= train.epochs:
        return epochs == train.epochs
    return not rates_depend_on_length(train.schedule, epochs * train.steps_per_epoch)


def keeps_last_state(study: Study, settings: TrialSettings) -> bool:
    """Return whether the store keeps a trial's last state: the study asks for it, and others can continue it.

    Others have more epochs, or other tests after the same training.
    """
    train = settings.train
    if not study.header.keep_checkpoints or train.seconds is not None:
        return False
    depends = rates_depend_on_length(train.schedule, train.epochs * train.steps_per_epoch)
    return bool(settings.task.test_keys) or not depends


def was_trained(row: Mapping[str, Any]) -> bool:
    """Return whether a search has trained the trial of a row. It may be a copy of another study's row."""
    return row["continued_from"] != row["trial"]


def own_costs(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Return outcomes with the FLOPs and seconds that each trial added to the trial that it continues.

    The row of a trial has the costs of its whole training. Its earlier trial may be among the outcomes, too,
    so only these parts can be added up.
    """
    earlier = outcomes.select(pl.col("trial", *_COSTS).name.prefix("earlier_"))
    found = outcomes.join(
        earlier, left_on="continued_from", right_on="earlier_trial", how="left", maintain_order="left"
    )
    parts = (pl.col(name) - pl.col(f"earlier_{name}").fill_null(0.0) for name in _COSTS)
    return found.with_columns(*parts).select(outcomes.columns)


_COSTS = ("flops", "seconds")


@dataclass(slots=True)
class Spent:
    """The total cost of a search's trainings so far, to compare with its budget."""

    trainings: int = 0
    flops: float = 0.0
    seconds: float = 0.0
    gpu_seconds: float = 0.0

    def add(self, row: Mapping[str, Any], times: int = 1) -> None:
        """Add the cost of a row's trial, or subtract it with `times = -1`."""
        self.trainings += times
        self.flops += times * (row["flops"] or 0)
        self.seconds += times * row["seconds"]
        self.gpu_seconds += times * row["seconds"] * _num_gpus(row)


def _num_gpus(row: Mapping[str, Any]) -> float:
    if row.get("gpus") is not None:
        return row["gpus"]
    return 1.0 if row.get("cuda_version") else 0.0  # rows of earlier releases had a whole one


def budget_exhausted(budget: SearchBudget | None, spent: Spent, running: int = 0) -> bool:
    """Return whether a search has spent its budget, including the `running` trainings."""
    if budget is None:
        return False
    limits = (
        (budget.trainings, spent.trainings + running),
        (budget.flops, spent.flops),
        (budget.hours, spent.seconds / 3600),
        (budget.gpu_hours, spent.gpu_seconds / 3600),
    )
    return any(limit is not None and taken >= limit for limit, taken in limits)


def left_within_budget(search: SearchSource, tried: pl.DataFrame, begun: Iterable[Trial]) -> int | None:
    """Return how many trials a search still trains after its budget is spent.

    They complete points that have begun. Return None while the search has budget left. `tried` has the
    search's outcomes, including outcomes from other studies; `begun` has trials without an outcome.
    """
    own = own_costs(tried).filter(pl.col("study") == search.study)
    columns = own.select("trial", "continued_from", "flops", "seconds", *DEVICE_COLUMNS)
    spent = Spent()
    for row in columns.iter_rows(named=True):
        if was_trained(row):
            spent.add(row)
    if not budget_exhausted(search.settings.budget, spent):
        return None
    levels = [json.loads(factors) for factors in own["factors"]]
    points = {_point(search, each): each for each in (*levels, *(trial.levels for trial in begun))}
    ended = tried.filter(pl.col("status") != "incomplete")["factors"]
    done = sum(_point(search, json.loads(factors)) in points for factors in ended)
    return max(0, sum(search.count_trials(search.values_of(each)) for each in points.values()) - done)


def _point(search: SearchSource, levels: Mapping[str, Level]) -> tuple[object, ...]:
    return (search.rungs.rung_of(levels), *(levels.get(name) for name in search.dimensions))


_SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})", re.ASCII)


def select_trials(study: Study, selectors: Sequence[str], option: str = "--only") -> frozenset[str]:
    """Return the ids of the trials that match all selectors, such as `mixer=sa`.

    Several levels of one factor are alternatives. Raise StudyError, with every fault, for an unknown factor
    or level, if no trial matches, and for a search, whose trials are unknown. `option` gave the selectors.
    """

    def fault(text: str, start: int, end: int, message: str) -> StudyFault:
        return StudyFault(message=message, line=0, text=text, start=start, end=end, option=option)

    every = ", ".join(selectors)
    if study.search is not None:
        message = "a search has no trials to select, because they are not known in advance"
        raise StudyError(study.document.source, [fault(every, 0, len(every), message)])
    asked: dict[str, set[str]] = {}
    faults: list[StudyFault] = []
    for text in selectors:
        before, sign, after = text.partition("=")
        factor, name = before.strip(), after.strip()
        if factor not in study.factors:
            message = f"unknown factor '{factor}'{nearest_hint(factor, study.factors)}"
            faults.append(fault(text, 0, len(before), message))
            continue
        levels = (trial.levels[factor] for trial in (*study.cells, *study.over_budget))
        names = NamedLevels({level_text(level): level for level in levels}.values(), f"of {factor}")
        if message := names.fault(name):
            faults.append(fault(text, len(before + sign), len(text), message))
        else:
            asked.setdefault(factor, set()).add(level_text(names.find(name)))
    found = frozenset(
        trial.id
        for trial in study.cells
        if all(level_text(trial.levels[factor]) in texts for factor, texts in asked.items())
    )
    if not (faults or found):
        faults = [fault(every, 0, len(every), "no trial has all of these levels")]
    if faults:
        raise StudyError(study.document.source, faults)
    return found


def stored_part(study: Study, store: Store, selectors: Sequence[str]) -> frozenset[str]:
    """Return the ids of a study's trials that match selectors, as in `select_trials`.

    Without selectors, these are all of its trials, with those that are begun, and those that are stored from
    earlier versions of its file or of plug-ins.
    """
    if selectors:
        return select_trials(study.with_later_seeds(), selectors)
    rows = store.trials(columns=KEY_COLUMNS, first=[study.name]).filter(study=study.name)
    begun = begun_trials(store.files.checkpoints_folder(), study.name)
    return frozenset(rows["trial"]) | {trial.id for trial in study.trials} | begun


def stale_part(study: Study, store: Store) -> frozenset[str]:
    """Return the ids of a study's stored or begun trials that its present version does not have.

    They had other settings, data or code. Of a study with overrides, its trials without them are not stale:
    a run with --set must not endanger them. Nor are those of another file with the same name; if such a file
    has faults or a search, no trial is. Nor are trials whose plug-ins are not loaded, which may belong to a
    co-author's file. Raise StudyError for a search, whose trials are not known in advance.
    """
    if study.search is not None:
        message = "a search has no stale trials, because its trials are not known in advance"
        raise StudyError(study.name, [StudyFault(message=message)])
    versions = [study]
    if study.document.overrides and (record := store.records.load(study.name)):
        with suppress(StudyError):  # a text that needs an override
            versions.append(load_recorded_study({**record, "overrides": ()}))
    try:
        versions += [load_study(path) for path in other_files(study, store)]
    except StudyError:
        return frozenset()
    if any(each.search is not None for each in versions):
        return frozenset()
    present = {trial.id for each in versions for trial in each.with_later_seeds().trials}
    rows = store.trials(columns=KEY_COLUMNS).filter(~has_trial(present), study=study.name)
    begun = begun_trials(store.files.checkpoints_folder(), study.name)
    unknown = {trial for trials in trials_by_lacking_plugin(study, store).values() for trial in trials}
    return (frozenset(rows["trial"]) | begun.difference(present)) - unknown


def trials_by_lacking_plugin(study: Study, store: Store) -> dict[str, set[str]]:
    """Return the stored trials under a study's name that need a plug-in which is not loaded, by plug-in.

    Plug-ins are files, scripts and cells; packages are left out, since their names contain their versions.
    """
    found: dict[str, set[str]] = {}
    rows = store.trials(columns=(*KEY_COLUMNS, "settings")).filter(study=study.name)
    has_plugin = pl.col("settings").str.contains('"code":{"', literal=True)
    for trial, text in rows.filter(has_plugin).select("trial", "settings").iter_rows():
        with suppress(StoreError):  # no store has written these settings
            for owner in owners_to_load(map(code_owner, tables_from_json(text)["code"].values())):
                found.setdefault(owner, set()).add(trial)
    return found


def select_shard(study: Study, text: str) -> frozenset[str]:
    """Return the ids of the trials in one shard of a grid.

    "3/16" is the third of sixteen shards. Shards are disjoint and cover all trials. A trial's id alone
    decides its shard. Raise StudyError for any other text, and for a search, whose trials are not known in
    advance.
    """
    if study.search is not None:
        message = (
            "a search has no shards, because its trials are not known in advance; "
            "runs that you start with one store share the trials"
        )
        raise StudyError(study.name, [StudyFault(message=f"--shard {text}: {message}")])
    found = _SHARD.fullmatch(text)
    number, count = (int(each) for each in found.groups()) if found else (0, 0)
    if not 1 <= number <= count:
        message = f"--shard: expected I/N with I from 1 to N, such as 3/16, got {text!r}"
        raise StudyError(study.name, [StudyFault(message=message)])
    return frozenset(trial.id for trial in study.cells if int(trial.id, 16) % count == number - 1)
