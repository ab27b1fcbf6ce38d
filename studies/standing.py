"""How a study stands: its trials by status in the store, and why some failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import polars as pl

from ..storage import Reached, Store
from .labels import one_line
from .quantities import plural
from .study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A study's trials: how many there are in all, those with an outcome by id and status, those begun.

    `reached` says of those begun how far they came, the latest first. `weightless` are done and would be
    trained again, for their weights. `reasons` counts the first lines of why trials failed, the most frequent
    first.
    """

    total: int
    held: Mapping[str, str]
    begun: tuple[str, ...]
    reached: Mapping[str, Reached]
    weightless: tuple[str, ...]
    reasons: tuple[tuple[str, int], ...]

    @property
    def counts(self) -> Counter[str]:
        """The outcomes by status."""
        return Counter(self.held.values())

    @property
    def left(self) -> int:
        """The trials without an outcome."""
        return max(0, self.total - len(self.held))

    def words(self) -> str:
        """The counts in one line, those of nothing left out, except for what is done and what is left."""
        counts = self.counts
        parts = [f"{counts['done']:,} of {plural(self.total, 'trial')} done"]
        parts += [f"{counts[status]} {status}" for status in ("failed", "pruned") if counts[status]]
        parts += [f"{self.left} left" + (f", {len(self.begun)} of them begun" if self.begun else "")]
        if self.weightless:
            parts += [f"weights of {len(self.weightless)} not here"]
        return " · ".join(parts)


def standing(study: Study, store: Store, outcomes: pl.DataFrame | None = None) -> Standing:
    """How a study stands in a store, whose latest attempts are read unless they are given."""
    rows = own(study, store.trials() if outcomes is None else outcomes)
    total = len(study.trials()) if study.search is None else study.search.trials * len(study.seeds)
    held = dict(rows.select("trial", "status").iter_rows())
    failed = rows.filter(pl.col("status") == "failed")["reason"]
    reasons = Counter(one_line((reason or "").partition("\n")[0]) for reason in failed)
    open_ones = begun(study, store, held)
    reached = [(trial, far) for trial in open_ones if (far := store.reached(trial)) is not None]
    return Standing(
        total=total,
        held=held,
        begun=open_ones,
        reached=dict(sorted(reached, key=lambda each: each[1].at, reverse=True)),
        weightless=weightless(study, store, held),
        reasons=tuple(reasons.most_common()),
    )


def own(study: Study, outcomes: pl.DataFrame) -> pl.DataFrame:
    """The outcomes of a study's trials, whatever study they ran for; of a search, all that it has tried."""
    if study.search is not None:
        return outcomes.filter(pl.col("study") == study.name)
    return outcomes.filter(pl.col("trial").is_in([trial.id for trial in study.trials()]))


def begun(study: Study, store: Store, held: Collection[str]) -> tuple[str, ...]:
    """The trials of a grid with a checkpoint that are not held; those of a search are not listed."""
    open_ones = (trial.id for trial in study.trials() if trial.id not in held)
    return tuple(trial for trial in open_ones if store.has_checkpoint(trial))


def weightless(study: Study, store: Store, statuses: Mapping[str, str]) -> tuple[str, ...]:
    """The done trials of a grid that keeps weights whose weights are not in the store, by their statuses.

    A run trains them again.
    """
    if not study.keep_weights or study.search is not None:
        return ()
    done = (trial.id for trial in study.trials() if statuses.get(trial.id) == "done")
    return tuple(trial for trial in done if not store.weights_file(trial).exists())
