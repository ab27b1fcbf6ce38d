"""The stored outcome of a trial: its row, with the code and the device, and its trained model."""

from __future__ import annotations

import json
import platform
import re
import resource
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

import torch

from ... import __version__
from ...storage import MetricRow, Store, TrialRow
from ...studies.catalog.metrics import METRICS
from ...studies.planning.trials_to_run import EarlierTrial
from ...studies.resolve.trial import ARITHMETIC, Trial, settings_to_json, shown
from ...studies.schema.settings import TrialSettings, read_recipe
from ..core.models import ModelFile, write_model_file
from ..core.run import Run
from .commit import commit
from .training import TOKENS_PER_S, Training

_CLEAR_REFS, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def version(settings: TrialSettings) -> str:
    """Return the versions of this package and of all plug-ins that a trial uses, as one text.

    Plug-ins that measure it are among them, although they are not part of its id.
    """
    kind = settings.task.spec.kind
    measured = (METRICS.code(name) for name, each in METRICS.items() if each.measure and kind in each.kinds)
    others = sorted(set(map(shown, filter(None, (*settings.code.values(), *measured)))))
    return " with ".join([__version__, *([", ".join(others)] if others else [])])


def device_name(device: torch.device) -> str:
    """Describe a device: the GPU's name, or the processor's name and the number of threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{_processor()}, {threads} thread{'s' if threads > 1 else ''}"


def reset_peak_memory(device: torch.device) -> None:
    """Start a new measurement of peak memory on a device, if the system supports it."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif sys.platform == "linux":
        try:
            # 5 resets the peak VmHWM; see proc(5)
            _CLEAR_REFS.write_text("5", encoding="ascii")
        except OSError:
            return


def peak_mib(device: torch.device) -> float:
    """Return the peak memory of the GPU or, without one, of the process since the last reset, in MiB."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    if sys.platform == "linux":
        match = re.search(r"^VmHWM:\s+(\d+) kB$", _STATUS.read_text(encoding="ascii"), re.MULTILINE)
        if match:
            return int(match[1]) / 1024
    # ru_maxrss is in bytes on macOS, and in KiB on other systems
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)


@cache
def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else platform.machine()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A trial to train in a run of a study.

    `attempt` is the number of this attempt, from 0. Before the trial is claimed, `attempt` is the first
    number that the store did not know when the run was planned. Attempts up to `gone` belong to dead
    processes. `keep_weights` says whether the store gets its trained weights, `keep_checkpoint` whether it
    gets the last state of its training. If the trial has no checkpoint, it continues from the last state of
    the `earlier` trial, if there is one. Jobs of an earlier `turn` start first. The training pauses after
    epoch `until`, if given; `is_resumed` says that this run has paused the trial before.
    """

    trial: Trial
    attempt: int
    run: str
    gone: int = -1
    keep_weights: bool = False
    keep_checkpoint: bool = False
    earlier: EarlierTrial | None = None
    turn: int = 0
    until: int | None = None
    is_resumed: bool = False

    def to_json(self) -> str:
        """Return the job as text for `from_json`."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        earlier = None if self.earlier is None else asdict(self.earlier)
        return json.dumps({**values, "trial": self.trial.to_json(), "earlier": earlier})

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Read a job that `to_json` wrote. The plug-ins of its trial must be loaded."""
        record = json.loads(text)
        earlier = record["earlier"] and EarlierTrial(**record["earlier"])
        return cls(**{**record, "trial": Trial.from_json(record["trial"]), "earlier": earlier})


def trial_row(trial: Trial, run: Run, *, started: datetime) -> TrialRow:
    """Return the row of a trial that ends now; the first line of `run.reason` says why it has its status."""
    settings = trial.settings
    recipe = read_recipe(settings.model.recipe)
    return TrialRow(
        trial=trial.id,
        attempt=run.attempt,
        study=trial.study,
        recipe=recipe.text,
        recipe_id=recipe.id,
        task=settings.task.name,
        seed=settings.seed,
        status=run.status,
        reason=run.reason,
        factors=json.dumps(dict(trial.levels)),
        settings=settings_to_json(settings),
        metrics=tuple(run.metrics.items()),
        version=version(settings),
        commit=commit(),
        host=platform.node(),
        started=started,
        finished=datetime.now(UTC),
        epochs=run.epoch,
        steps=run.step,
        **{name: getattr(run, name) for name in _SAME},
    )


_SAME = (
    *("parameters", "flops", "seconds", "peak_mib", "device", "gpus", "arithmetic"),
    *("torch_version", "cuda_version", "python_version", "optuna_version"),
    *("continued_from", "continued_after"),
)
"""The columns of a row that have the names of attributes of `Run`."""


def measured(
    run: Run, training: Training, device: torch.device, *, gpu_share: float, device_suffix: str
) -> Run:
    """Return a run with the resources that its training has used so far.

    `gpu_share` is the part of a GPU that the trial has, if `device` is one.
    """
    shared = f", a share of {gpu_share:g}" if gpu_share < 1.0 else ""
    return replace(
        run,
        parameters=training.parameters,
        epoch=training.epoch,
        step=training.step,
        flops=training.work.flops,
        seconds=training.work.seconds,
        peak_mib=max(run.peak_mib, peak_mib(device)),
        device=device_name(device) + shared + device_suffix,
        torch_version=str(torch.__version__),
        cuda_version=(torch.version.cuda or "") if device.type == "cuda" else "",
        gpus=gpu_share if device.type == "cuda" else 0.0,
        python_version=platform.python_version(),
        optuna_version=metadata.version("optuna"),
        arithmetic=ARITHMETIC,
    )


def keep_model(store: Store, trial: Trial, training: Training, row: TrialRow) -> None:
    """Store a trial's trained weights and final metrics, except machine-dependent speed, in one file."""
    model = ModelFile(
        trial=trial,
        weights=training.weights(),
        symbols=training.objective.symbols(),
        metrics={name: value for name, value in row.metrics if name != TOKENS_PER_S},
        version=row.version,
        commit=row.commit,
    )
    path = store.files.weights_file(row.trial)
    write_model_file(path, model)
    store.files.place.put(path)


def last_epoch_metrics(rows: Sequence[MetricRow]) -> dict[str, float]:
    """Return the metrics of the last epoch by name. Without rows there are none."""
    return {row.name: row.value for row in rows if row.epoch == rows[-1].epoch}
