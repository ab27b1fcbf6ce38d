"""Checkpoints of unfinished trials, sealed by checksums.

The previous checkpoint is kept: if the last one is damaged, the trial resumes from the previous one.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ...storage import MetricRow, Store, trial_files
from ...storage.checksums import sealing, verify_seal
from ...storage.errors import DamagedError, UnreadableError
from ...storage.files import open_regular, replacing
from ...storage.trial_files import STARTS_FILE
from ...studies.planning.trials_to_run import EarlierTrial
from ..core.run import Run
from .failures import CrashCounts
from .outcome import last_epoch_metrics

STOPPED = "stopped"
"""The line of `STARTS_FILE` after a start that stopped cleanly before the trial's end."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointData:
    """The contents of a checkpoint: the training's state, its metrics so far, and its run."""

    state: dict[str, Any]
    metrics: list[MetricRow]
    run: Run

    @property
    def place(self) -> str:
        """Return where the trial resumes: "3" after 3 epochs, "3+20" after 20 more steps."""
        taken = self.state.get("epoch", {}).get("taken", 0)
        return f"{self.run.epoch}+{taken}" if taken else f"{self.run.epoch}"


class Checkpoint:
    """The folder of an unfinished trial, with its last two states.

    It also has the trial's settings, and a log of its starts. If the trial has no state of its own, it
    continues from `earlier`, a stored trial with fewer epochs or other tests. When a method returns, the data
    that it wrote are in the store.
    """

    def __init__(self, store: Store, trial: str, earlier: EarlierTrial | None = None) -> None:
        self._files, self._place, self._earlier = store.files, store.files.place, earlier
        self.folder = folder = store.files.checkpoint_dir(trial)
        self._state, self._previous = folder / "state.pt", folder / "previous.pt"
        self._starts = folder / STARTS_FILE

    def record_start(self, trial: str, run: str, place: str) -> CrashCounts:
        """Record that a process starts or resumes the trial at position `place`.

        `trial` is the trial as JSON. Return how often processes have died after an earlier start at this
        position.
        """
        try:
            begun = trial_files.read_begun(self.folder)
        except (DamagedError, UnreadableError) as error:
            _log.warning(
                "%s; the trial continues, and the count of its workers that died restarts at 0", error
            )
            begun = None
        if begun is None:
            self._create_starts(trial)
        self._add_line(f"{run} {place}")
        return _count_deaths([] if begun is None else begun[1], run, place)

    def record_begun(self, trial: str) -> None:
        """Record that a trial belongs to a begun search point, before a process starts it.

        A folder that already has a record keeps it. `trial` is the trial as JSON.
        """
        self._place.fetch(self._starts)
        if not trial_files.is_begun(self.folder) and self._create_starts(trial):
            self._place.put(self._starts)

    def record_stop(self) -> None:
        """Record that the process stops on purpose. Otherwise it counts as a process that died."""
        with suppress(OSError):  # a start without this line counts as a death
            self._place.fetch(self._starts)
            if self._starts.is_file():
                self._add_line(STOPPED)

    def _create_starts(self, trial: str) -> bool:
        """Create the log of starts. Return False if another process has created it at the same moment."""
        self.folder.mkdir(parents=True, exist_ok=True)
        _set_aside(self._starts)
        try:
            with self._starts.open("x", encoding="utf-8") as starts:
                starts.write(trial_files.encode_begun(trial))
        except FileExistsError:
            return False
        return True

    def _add_line(self, line: str) -> None:
        with self._starts.open("a", encoding="utf-8") as starts:
            starts.write(f"{line}\n")
        self._place.put(self._starts)

    def save(self, saved: CheckpointData) -> None:
        """Save a new state. After a crash at any moment, the new or the previous state is intact."""
        with replacing(self._state) as temporary:
            _write(temporary, saved)
            # the new state is complete before the old one moves, so that one of them is always intact
            with suppress(FileNotFoundError):
                self._place.move(self._state, self._previous)
        self._place.put(self._state)
        if saved.metrics:
            last, run = last_epoch_metrics(saved.metrics), saved.run
            trial_files.write_note(self.folder, run.epoch, last, saved.metrics, seconds=run.seconds)
            if (note := self.folder / trial_files.NOTE_FILE).is_file():
                self._place.put(note)

    def save_final(self, saved: CheckpointData) -> None:
        """Save a training's last state, from which a trial with more epochs can continue.

        It is not flushed to disk, which would take longer than a short training. Its seal shows if a crash of
        the machine has damaged it; a longer trial then starts from the beginning.
        """
        path = self._files.final_checkpoint_file(self.folder.name)
        with replacing(path, flush=False) as temporary:
            _write(temporary, saved)
        self._place.put(path)

    def load(self) -> CheckpointData | None:
        """Return the last intact state, with its tensors on the CPU, or None if there is none.

        Damaged files are logged and renamed.
        """
        self._place.list(self.folder, contents=True)
        for path in (self._state, self._previous):
            try:
                return _read(path)
            except FileNotFoundError:
                continue
            except (DamagedError, UnreadableError) as error:
                has_other = path is self._state and self._previous.is_file()
                then = "continues from the previous one" if has_other else "starts from the beginning"
                _log.warning("checkpoint %s: %s; its trial %s", path, error, then)
                _set_aside(path)
        return self._load_earlier()

    def _load_earlier(self) -> CheckpointData | None:
        """Return the last state of the earlier trial that this trial continues.

        That trial had the same settings, but fewer epochs or other tests, or is this one and has lost its row
        or its weights. Return None if its state is missing or damaged. The run says which other trial it
        comes from.
        """
        if (earlier := self._earlier) is None:
            return None
        path = self._files.final_checkpoint_file(earlier.trial)
        self._place.fetch(path)
        try:
            saved = _read(path)
        except FileNotFoundError:
            return None
        except (DamagedError, UnreadableError) as error:
            _log.warning(
                "checkpoint %s: %s; the trial that would continue from it starts from the beginning",
                path,
                error,
            )
            return None
        if earlier.trial == self.folder.name:
            return saved
        origin = {"continued_from": earlier.trial, "continued_after": earlier.epochs}
        return replace(saved, run=replace(saved.run, trial=self.folder.name, **origin))

    def remove(self) -> None:
        """Remove the checkpoint of an ended trial. Files that cannot be deleted stay, without an error."""
        with suppress(OSError):
            self._place.delete(self.folder)


def record_stops(store: Store, trials: Iterable[str]) -> None:
    """Record that the processes of these trials stopped on purpose.

    Trials without a checkpoint are skipped. A stop that cannot be recorded counts as a death.
    """
    with suppress(OSError):
        for trial in store.files.trials_with_checkpoint(trials):
            Checkpoint(store, trial).record_stop()


def dies_often(folder: Path) -> bool:
    """Return whether the processes of a trial's last two starts both died, so that it should run last."""
    try:
        begun = trial_files.read_begun(folder)
    except (OSError, DamagedError, UnreadableError):
        return False
    return begun is not None and len(begun[1]) > 1 and STOPPED not in begun[1][-2:]


def _count_deaths(lines: Sequence[str], run: str, place: str) -> CrashCounts:
    starts: list[str] = []
    for line in lines:
        if line != STOPPED:
            starts.append(line)
        # a clean stop is not a death, so the start before it does not count
        elif starts:
            starts.pop()
    same = [start for start in starts if start.rpartition(" ")[2] == place]
    return CrashCounts(in_run=same.count(f"{run} {place}"), in_all=len(same))


def _write(path: Path, saved: CheckpointData) -> None:
    metrics = [asdict(row) for row in saved.metrics]
    with sealing(path) as file:
        torch.save({"state": saved.state, "metrics": metrics, "run": asdict(saved.run)}, file)


def _read(path: Path) -> CheckpointData:
    """Verify the checksum at the end of a file, and load the file; raise DamagedError if a byte differs."""
    with open_regular(path) as file:
        verify_seal(file)
        try:
            saved = torch.load(file, map_location="cpu", weights_only=True)
            metrics = [MetricRow(**row) for row in saved["metrics"]]
            return CheckpointData(state=saved["state"], metrics=metrics, run=Run(**saved["run"]))
        # another program wrote this file
        except pickle.UnpicklingError as error:
            raise DamagedError("expected only tensors and plain values, got other objects") from error
        except (KeyError, TypeError, AttributeError) as error:
            raise DamagedError("expected a training's state, metrics and run, got other values") from error


def _set_aside(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.replace(path.with_name(f"{path.name}.damaged"))
