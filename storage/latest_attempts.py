"""The latest attempts of a growing store: each file is read once, however often they are refreshed."""

import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from .integrity.quarantine import Quarantine
from .paths import Layout, data_files, is_compacted
from .read import read_verified
from .rows import TRIALS


class LatestAttempts(Mapping[str, Mapping[str, Any]]):
    """The row of each trial's latest attempt, by trial, as far as `refresh` has read."""

    def __init__(self, layout: Layout, quarantine: Quarantine) -> None:
        self._layout, self._quarantine = layout, quarantine
        self._known: set[Path] = set()
        self._rows: dict[str, dict[str, Any]] = {}

    def refresh(self) -> None:
        """Read the files that are new.

        A compaction may remove a file before it is read, and a listing may miss the merged file that replaces
        it; so a folder is listed twice, and again until there is nothing new.
        """
        for partition in self._layout.partitions("trials"):
            while new := {*data_files(partition), *data_files(partition)} - self._known:
                for path in sorted(new, key=lambda path: (not is_compacted(path), path.name)):
                    self._read(path)

    def frame(self, trials: Iterable[str]) -> pl.DataFrame:
        """The rows of these trials, as far as they have any."""
        return pl.DataFrame([self._rows[trial] for trial in trials if trial in self._rows], schema=TRIALS)

    def _read(self, path: Path) -> None:
        try:
            data = read_verified(path, self._quarantine)
        except FileNotFoundError:
            return
        self._known.add(path)
        if data is not None:
            for row in pl.read_parquet(io.BytesIO(data), columns=TRIALS.names()).iter_rows(named=True):
                known = self._rows.get(row["trial"])
                if known is None or known["attempt"] <= row["attempt"]:
                    self._rows[row["trial"]] = row

    def __getitem__(self, trial: str) -> Mapping[str, Any]:
        return self._rows[trial]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
