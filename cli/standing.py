"""How a study stands: its trials by status in the store, and why some failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from ..storage import Store
from ..studies.labels import one_line
from ..studies.study import Study
from .figures import crop, plural

_LONGEST_REASON = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A study's trials: how many there are in all, those with an outcome by id and status, those begun.

    `reasons` counts the first lines of why trials failed, the most frequent first.
    """

    total: int
    held: Mapping[str, str]
    begun: int
    reasons: tuple[tuple[str, int], ...]

    @property
    def counts(self) -> Counter[str]:
        """The outcomes by status."""
        return Counter(self.held.values())

    @property
    def left(self) -> int:
        """The trials without an outcome."""
        return max(0, self.total - len(self.held))


def standing(study: Study, store: Store) -> Standing:
    """How a study stands in a store; of a search, all that it has tried so far."""
    columns = ("trial", "study", "status", "reason")
    rows = store.trials().select(*columns)
    if study.search is None:
        ids = [trial.id for trial in study.trials()]
        rows, total = rows.filter(pl.col("trial").is_in(ids)), len(ids)
    else:
        rows, total = rows.filter(pl.col("study") == study.name), study.search.trials * len(study.seeds)
    held = dict(rows.select("trial", "status").iter_rows())
    failed = rows.filter(pl.col("status") == "failed")["reason"]
    reasons = Counter(one_line((reason or "").partition("\n")[0]) for reason in failed)
    return Standing(
        total=total, held=held, begun=_begun(study, store, held), reasons=tuple(reasons.most_common())
    )


def words(now: Standing) -> str:
    """The counts in one line, those of nothing left out, except for what is done and what is left."""
    counts = now.counts
    parts = [f"{counts['done']} of {plural(now.total, 'trial')} done"]
    parts += [f"{counts[status]} {status}" for status in ("failed", "pruned") if counts[status]]
    parts += [f"{now.left} left" + (f", {now.begun} of them begun" if now.begun else "")]
    return " · ".join(parts)


def failures(now: Standing) -> list[str]:
    """A line for each reason why trials failed."""
    return [f"  {count} failed   {crop(reason, _LONGEST_REASON)}" for reason, count in now.reasons]


def _begun(study: Study, store: Store, held: Mapping[str, str]) -> int:
    """How many trials of a grid have a checkpoint and no outcome yet; those of a search are not listed."""
    return sum(trial.id not in held and store.checkpoint_dir(trial.id).exists() for trial in study.trials())


def as_data(now: Standing) -> dict[str, object]:
    """The same for a program: counts of all, by status, of what is left and begun, and the reasons."""
    counts = now.counts
    return {
        "trials": now.total,
        **{status: counts[status] for status in ("done", "failed", "pruned")},
        "left": now.left,
        "begun": now.begun,
        "reasons": dict(now.reasons),
    }
