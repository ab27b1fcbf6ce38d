"""Notes on seeds that a study file has changed after there were results.

A verdict is weaker if a seed was added after results could be seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from ..storage import Store
from ..storage.rows import KEY_COLUMNS, has_trial
from .resolve.trial import (
    first_of_each_kind,
    settings_from_json,
    training_id,
)
from .schema.factors import SEED, as_list
from .study import Study
from .text.document import parse_document
from .text.errors import StudyError
from .text.strict_model import as_table
from .text.units import listed, plural

if TYPE_CHECKING:
    pass


def describe_max_seeds(study: Study, store: Store) -> str:
    """Return a note if `max_seeds` or the file's seeds have changed, or if it has no effect, else ""."""
    now = study.header.max_seeds
    if not study.claims:
        return "" if now is None else f"max_seeds = {now} changes nothing: the study has no claim"
    record = store.records.load(study.name)
    if record is None or not (last := as_table(_tables_of(record).get("study"))):
        return ""
    before, rows = last.get("max_seeds"), store.trials(columns=KEY_COLUMNS)
    ended = rows.filter(pl.col("study") == study.name)["trial"].n_unique()
    if before == now or not ended:
        return _describe_changed_seeds(study, store)
    when = f"max_seeds was {'not set' if before is None else before} when {plural(ended, 'trial')} ended"
    if now is None:
        return f"{when}: trials stay, but verdicts are no longer corrected for several looks at the results"
    change = "stricter, since claims are tested several times"
    change = change if before is None else "corrected for tests at other numbers of seeds"
    is_advice = record.get("seeds_before") == list(study.seeds) and now == len(_seeds_of(record))
    valid = "" if before is None and is_advice else "; this is valid only if you have not seen a result yet"
    return f"{when}: trials stay, but verdicts are now {change}{valid}"


def _describe_changed_seeds(study: Study, store: Store) -> str:
    """Return a note if a study's file got more or fewer seeds after there were results, else ""."""
    if not (before := seeds_before(study, store)):
        return ""
    most = study.header.max_seeds
    told = f"the study had results for {plural(len(before), 'seed')} before it got {len(study.seeds)}: the"
    if dropped := sorted(_dropped_seeds(study, before)):
        which = f"results of seed{'s' * (len(dropped) > 1)} {listed(dropped)} count, since max_seeds = {most}"
        return f"{told} {which} allows for them; verdicts are valid only if you have not seen a result yet"
    if not set(before) < set(study.seeds):  # an override has other seeds than the file
        return ""
    if most is not None:
        keep = f"to account for it, set seed = {list(before)} and keep max_seeds = {most}"
        return f"{told} error level of its verdicts leaves out the look at {len(before)} seeds; {keep}"
    return (
        f"{told} error level of its verdicts is that of a single look; to account for both looks, set "
        f"seed = {list(before)} and max_seeds = {len(study.seeds)}"
    )


def seeds_before(study: Study, store: Store) -> tuple[int, ...]:
    """Return the seeds for which a study had results before its file got more seeds or dropped some, or ().

    The record of the last run either has them, or has the file with other seeds. Seeds that only an override
    leaves out are the file's. A single seed decides no claim, so that results for one seed do not count.
    """
    record = store.records.load(study.name)
    if record is None or study.search is not None:
        return ()
    before = set(record.get("seeds_before") or _seeds_of(record))
    has_more = before < set(study.design.known_levels[SEED])
    if len(before) < 2 or not (has_more or _dropped_seeds(study, before)):
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


def _dropped_seeds(study: Study, before: Iterable[int]) -> set[int]:
    """Return the seeds that an earlier file had and the present one lacks, but that `max_seeds` may add."""
    return set(before).difference(study.design.known_levels[SEED]).intersection(study.later_seeds)


def _training_of(text: str) -> tuple[str, int] | None:
    """Return the id and the epochs of the training with these stored settings; None if they are invalid."""
    try:
        settings = settings_from_json(text)
    except ValueError:
        return None
    return training_id(settings), settings.train.epochs


def _seeds_of(record: Mapping[str, Any]) -> set[int]:
    """Return the seeds of a study's last run, including seeds of its file that an override left out."""
    tables = (_tables_of(each).get("factors") for each in (record, {**record, "overrides": ()}))
    return {seed for each in tables for seed in as_list(as_table(each).get(SEED)) if isinstance(seed, int)}


def _tables_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tables of a study as it last ran; none if its text is no longer valid."""
    try:
        return parse_document("study", record["text"], record.get("overrides", ())).data
    except StudyError:
        return {}
