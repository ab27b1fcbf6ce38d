"""Which trainings can have their gradients recorded, and those that have."""

from __future__ import annotations

import logging
from pathlib import Path

import torch

from ...blocks.layers.window_attention import looks_at_weights
from ...studies.schema.settings import TrialSettings
from ..core.models import AnyModel, outline_model
from ..objectives import Stackable, has_one_shape
from ..trial.training import Training
from .cuda_capture import CudaCapture
from .recorded_gradients import RecordedGradients
from .recorded_work import Recordings

_log = logging.getLogger(__name__)


def make_recordings(device: torch.device) -> Recordings | None:
    """What a worker records on a device; None where there is no GPU, which is told."""
    if device.type == "cuda":
        return Recordings(CudaCapture(device))
    _log.warning("steps are not recorded as graphs: there is no GPU")
    return None


def steps_are_recorded(settings: TrialSettings) -> bool:
    """Whether the gradients of a trial would be recorded on a GPU; nothing is allocated to find out."""
    return graph_fault(settings, outline_model(settings)) is None


def graph_fault(settings: TrialSettings, model: AnyModel) -> str | None:
    """Why the gradients of a trial with this model cannot be recorded; None if they can."""
    train, one_shape = settings.train, has_one_shape(settings)
    faults = {
        f"batches of task {settings.task.name} are not of one shape": not one_shape,
        "the parts of a batch come one after the other ([train] accumulate)": train.accumulate > 1,
        "products have 16 bits ([train] precision)": train.precision == "bf16",
        "its model is compiled ([train] compile)": train.compile,
        "its loss has a term of learnt spans ([train] span_loss)": bool(train.span_loss),
        "its loss has other terms ([train] loss_terms)": bool(train.loss_terms),
        "its model looks at its weights between steps": any(map(looks_at_weights, model.modules())),
    }
    return next((fault for fault, holds in faults.items() if holds), None)


class GraphedTrainings:
    """Makes trainings whose gradients are recorded where they can be; each other reason is told once."""

    def __init__(self, recordings: Recordings) -> None:
        self._recordings = recordings

    def __call__(self, settings: TrialSettings, device: torch.device, data: Path) -> Training:
        """A training on this device."""
        training = Training(settings, device, data)
        if (fault := graph_fault(settings, training.model)) is not None:
            self._recordings.tell(fault)
        else:
            assert isinstance(training.objective, Stackable), "it was looked at before"
            training.gradients = RecordedGradients(training.model, training.objective, self._recordings)
        return training
