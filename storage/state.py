"""State of a store by names and times alone: cheap to read, and enough to see what has changed."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .checkpoint_notes import NOTE_FILE
from .paths import Layout, entries, study_name_fault, trial_id_fault
from .rows import MEASURED_LATER

_RECORD: Final = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreState:
    """The files of a store that show the progress of its studies.

    - `rows` are the data files of trials.
    - `measured` maps data files of probes, tunings and trials taken from other studies to their times.
    - `records` are the times of the studies' records.
    - `notes` are the times of the notes of unfinished trials, 0 before their first epoch is over.
    """

    rows: frozenset[str]
    measured: Mapping[str, int]
    records: Mapping[str, int]
    notes: Mapping[str, int]

    @property
    def studies(self) -> list[str]:
        """Return the names of the studies that have run, sorted."""
        return sorted({*self.records, *(name.partition("/")[0] for name in self.rows)})


def read_state(layout: Layout) -> StoreState:
    """Return the state of a store now; no file is opened."""
    trials, later = layout.root / "trials", [layout.root / dataset for dataset in (*MEASURED_LATER, "taken")]
    layout.place.list_names(trials, *later, layout.studies, layout.checkpoints_folder)
    records = ((path.stem, path) for path in entries(layout.studies, _RECORD))
    return StoreState(
        rows=frozenset(f"{each.parent.name}/{each.name}" for each in _files(trials)),
        measured={str(path): _time(path) for folder in later for path in _files(folder)},
        records={name: _time(path) for name, path in records if study_name_fault(name) is None},
        notes={
            each.name: _time(each / NOTE_FILE)
            for each in entries(layout.checkpoints_folder)
            if trial_id_fault(each.name) is None
        },
    )


def _files(dataset: Path) -> list[Path]:
    folders = [path for path in entries(dataset) if path.is_dir()]
    return [path for folder in folders for path in entries(folder, ".parquet")]


def _time(path: Path) -> int:
    """Return the time of a file in nanoseconds; 0 if it is not there."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 -- many a second
    except OSError:
        return 0
