"""The stored outcome of a trial: its row, and its model if weights are kept."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

import torch

from ...grammar import parse
from ...storage import MetricRow, Store, TrialRow
from ...studies.planning.reused_trials import ShorterTrial
from ...studies.resolve.trial import Trial, settings_to_json
from ..core.model_file import ModelFile, write_model_file
from . import provenance
from .training import TOKENS_PER_S, Training


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A trial to run: the number of the attempt, from 0, and the run of the study that it belongs to.

    Until it is claimed, the attempt is the first number that the store did not know at planning; attempts up
    to `gone` belong to dead processes. `keep_weights` says whether the store gets its trained weights,
    `keep_checkpoint` whether it gets the last state of its training. Without its own checkpoint it continues
    the last state of a `shorter` trial, if there is one. Jobs of an earlier `turn` start first.
    """

    trial: Trial
    attempt: int
    run: str
    gone: int = -1
    keep_weights: bool = False
    keep_checkpoint: bool = False
    shorter: ShorterTrial | None = None
    turn: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The resources that a trial used up to its last epoch; `flops` and `seconds` are of training only.

    `peak_mib` is the peak memory of the device. `packed_steps` counts the `steps` taken together with other
    trials. The versions are None in checkpoints of earlier releases.
    """

    parameters: int = 0
    epochs: int = 0
    steps: int = 0
    packed_steps: int = 0
    flops: float = 0.0
    seconds: float = 0.0
    peak_mib: float = 0.0
    device: str = ""
    torch_version: str | None = None
    cuda_version: str | None = None
    python_version: str | None = None
    continued_from: str | None = None
    continued_after: int | None = None


def trial_row(
    job: Job,
    totals: Totals,
    final: Mapping[str, float],
    *,
    status: str,
    reason: str | None,
    started: datetime,
) -> TrialRow:
    """Return the row of a trial that ends now; the first line of the reason is a summary."""
    trial, settings = job.trial, job.trial.settings
    recipe = parse(settings.model.recipe)
    return TrialRow(
        trial=trial.id,
        attempt=job.attempt,
        study=trial.study,
        recipe=recipe.text,
        recipe_id=recipe.id,
        task=settings.task.name,
        seed=settings.seed,
        status=status,
        reason=reason,
        factors=json.dumps(dict(trial.levels)),
        settings=settings_to_json(settings),
        metrics=tuple(final.items()),
        version=provenance.version(settings),
        commit=provenance.commit(),
        host=platform.node(),
        started=started,
        finished=datetime.now(UTC),
        **asdict(totals),
    )


def measured_totals(
    before: Totals, training: Training, device: torch.device, *, device_suffix: str
) -> Totals:
    """Return the resources used so far; `device_suffix` is appended to the device's name."""
    return replace(
        before,
        parameters=training.parameters,
        epochs=training.epoch,
        steps=training.step,
        packed_steps=training.packed_steps,
        flops=training.flops,
        seconds=training.seconds,
        peak_mib=max(before.peak_mib, provenance.peak_mib(device)),
        device=provenance.device_name(device) + device_suffix,
        torch_version=str(torch.__version__),
        cuda_version=(torch.version.cuda or "") if device.type == "cuda" else "",
        python_version=platform.python_version(),
    )


def keep_model(store: Store, trial: Trial, training: Training, row: TrialRow) -> None:
    """Write the trained model with its metrics, except speed metrics."""
    model = ModelFile(
        trial=trial,
        weights=training.weights(),
        symbols=training.symbols(),
        metrics={name: value for name, value in row.metrics if name != TOKENS_PER_S},
        version=row.version,
        commit=row.commit,
    )
    path = store.files.weights_file(row.trial)
    write_model_file(path, model)
    store.files.place.put(path)


def last_epoch_metrics(rows: Sequence[MetricRow]) -> dict[str, float]:
    """Return the metrics of the last epoch; none before the first."""
    return {row.name: row.value for row in rows if row.epoch == rows[-1].epoch}
