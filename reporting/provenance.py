"""The origin of rows for a reader: the commit of the code, and the versions below it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from ..studies.planning.reused_trials import describe_stale, find_stale_trials
from ..studies.schema.level_names import one_line
from ..studies.study import Study

COMMIT_DIGITS = 7
"""So many digits of a commit are shown."""


def short_commit(commit: str) -> str:
    """Return a row's commit with fewer digits, and all of what differed from it: 5d02964+a1b2c3d4."""
    base, plus, changes = commit.partition("+")
    return base[:COMMIT_DIGITS] + plus + changes


def torch_words(torch_version: str, cuda_version: str | None) -> str:
    """Return a row's versions of torch and, on a GPU, of CUDA."""
    return f"torch {torch_version}" + (f" with CUDA {cuda_version}" if cuda_version else "")


def provenance(trials: Collection[str], outcomes: pl.DataFrame) -> str:
    """Return the origin of these trials' numbers: how many, by what code, on what machine and when."""
    known = outcomes.filter(pl.col("trial").is_in(trials))
    count = f"{len(known)}" if len(known) == len(trials) else f"{len(known)} of {len(trials)}"
    parts = [f"{count} trial{'' if len(trials) == 1 else 's'}"]
    for version in known["version"].unique().sort():
        commits = known.filter(pl.col("version") == version)["commit"].drop_nulls()
        short = ", ".join(sorted({short_commit(each) for each in commits}))
        parts.append(f"activemem {version}" + (f" ({short})" if short else ""))
    versions = known.select("torch_version", "cuda_version").drop_nulls("torch_version").unique()
    parts += [", ".join(sorted(torch_words(*each) for each in versions.iter_rows()))] if len(versions) else []
    if len(known):
        parts.append(", ".join(known["device"].unique().sort()))
        parts.extend(known.select(pl.col("finished").max().dt.strftime("%Y-%m-%d")).to_series())
    return one_line(" · ".join(parts))


def overrides_sentence(overrides: Sequence[str]) -> str:
    """Return the settings that are overridden, as the caption of a table has them; empty without any.

    Levels are left out: they can be seen.
    """
    changed = [change for change in overrides if not change.startswith("factors.")]
    return one_line(f"Other than in the study's file: {', '.join(changed)}.") if changed else ""


def stale_sentence(study: Study, outcomes: pl.DataFrame) -> str:
    """Return how many results are left out because plug-ins have changed since; empty without any."""
    stale = find_stale_trials(study, outcomes)
    return one_line(f"{describe_stale(stale)} and left out.") if stale else ""
