"""A trial's checkpoint: all that it needs to resume, replaced after each epoch, removed when it ends."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...storage import MetricRow, checkpoint_notes
from ...storage.durable_write import replacing
from .outcome import Totals, last_epoch_metrics

STARTS_FILE = "begun"
"""The file with the trial in its first line, then a line for each start: the run, and the epoch before."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointData:
    """A training's state, the metrics of its epochs so far, and its totals."""

    state: dict[str, Any]
    metrics: list[MetricRow]
    totals: Totals


class Checkpoint:
    """The folder of one unfinished trial: its settings, its starts, and its state."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._state, self._starts = folder / "state.pt", folder / STARTS_FILE

    def record_start(self, trial: str, run: str, epoch: int) -> int:
        """Record that a run starts the trial, as JSON, after an epoch; how often it has, now included."""
        start = f"{run} {epoch}"
        if not self._starts.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            self._starts.write_text(f"{trial}\n{start}\n", encoding="utf-8")
            return 1
        with self._starts.open("a", encoding="utf-8") as starts:
            starts.write(start + "\n")
        return self._starts.read_text(encoding="utf-8").splitlines().count(start)

    def save(self, saved: CheckpointData) -> None:
        """Replace the state; a crash at any moment leaves the old one or the new one intact."""
        metrics = [asdict(row) for row in saved.metrics]
        with replacing(self._state) as temporary, temporary.open("wb") as file:
            torch.save({"state": saved.state, "metrics": metrics, "totals": asdict(saved.totals)}, file)
        if saved.metrics:
            checkpoint_notes.write_note(self._folder, saved.totals.epochs, last_epoch_metrics(saved.metrics))

    def load(self, device: torch.device) -> CheckpointData | None:
        """What was saved last, or None; a damaged file is named in the log and renamed."""
        if not self._state.exists():
            return None
        try:
            saved = torch.load(self._state, map_location=device, weights_only=True)
        except (RuntimeError, EOFError, OSError, ValueError, KeyError) as error:
            _log.warning("checkpoint %s cannot be read (%s); its trial starts again", self._state, error)
            self._state.replace(self._state.with_suffix(".damaged"))
            return None
        metrics = [MetricRow(**row) for row in saved["metrics"]]
        return CheckpointData(state=saved["state"], metrics=metrics, totals=Totals(**saved["totals"]))

    def remove(self) -> None:
        """Remove the folder: its trial has ended."""
        shutil.rmtree(self._folder, ignore_errors=True)


def unfinished_trials(root: Path) -> list[str]:
    """The trials, as JSON, that have a checkpoint below a folder, sorted."""
    texts = (path.read_text(encoding="utf-8") for path in root.glob(f"*/{STARTS_FILE}"))
    return sorted(text.splitlines()[0] for text in texts if "\n" in text)


def save_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Write weights by name; a crash at any moment leaves the file intact or as it was."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        torch.save({name: weight.cpu() for name, weight in weights.items()}, file)


def load_weights(path: Path) -> dict[str, Tensor]:
    """The weights of a file; FileNotFoundError if there is none."""
    return torch.load(path, map_location="cpu", weights_only=True)
