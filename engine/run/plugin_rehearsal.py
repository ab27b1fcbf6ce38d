"""Rehearsal of plug-in code before anything trains, so that its exceptions cost no training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from ...errors import ActivememError
from ...plugins import OWN, PluginError
from ...studies.catalog.tasks import GeneratedTask, ModelInterface, TaskKind
from ...studies.schema.epoch_metrics import epoch_metrics
from ...studies.schema.settings import TrialSettings
from ..objectives.registered_metrics import RegisteredMetrics
from ..tasks.generated import draw_examples, draw_test_set
from ..trial.training import Training

_ROWS, _SYMBOLS = 8, 4  # of an evaluation by which metrics are tried; symbols where a task says no number
_SPLITS = ("", "dev", "test")


def rehearse_plugins(all_settings: Iterable[TrialSettings], data: Path) -> None:
    """Run the plug-in code of trials once: metrics, generators, loss terms and callbacks.

    Raises PluginError with everything that raised, each with its file and line.
    """
    every = list(all_settings)
    interfaces = {settings.task.interface: None for settings in every}
    tasks = {repr(each.task): each.task for each in every if isinstance(each.task, GeneratedTask)}
    parts = {
        (settings.task.name, settings.train.loss_terms, settings.train.callbacks): settings
        for settings in every
        if settings.train.loss_terms or settings.train.callbacks
    }
    faults = dict.fromkeys(
        [
            *(fault for interface in interfaces for fault in _metric_faults(interface)),
            *(fault for task in tasks.values() for fault in _task_faults(task)),
        ]
    )
    if not faults:  # else they would be met again
        faults |= dict.fromkeys(
            fault for settings in parts.values() for fault in _part_faults(settings, data)
        )
    if faults:
        raise PluginError("\n".join(faults))


def _metric_faults(interface: ModelInterface) -> Iterator[str]:
    """Yield what metrics raise over random outputs, and over outputs that are all the same."""
    for split in _SPLITS:
        for outputs, targets in _evaluations(interface):
            try:
                measured = RegisteredMetrics(interface.kind, split)
                measured.update(outputs, targets)
                measured.update(outputs[:1], targets[:1])
                measured.compute()
            except PluginError as error:
                yield f"{error} (compute may return None or NaN, which say that there is no value)"


def _evaluations(interface: ModelInterface) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield outputs and targets as `Measure.update` has them for a kind of task."""
    generator = torch.Generator().manual_seed(0)
    symbols = interface.classes or interface.vocab or _SYMBOLS
    targets = torch.randint(symbols, (_ROWS,), generator=generator)
    match interface.kind:
        case TaskKind.REGRESSION:
            columns = interface.targets or 1
            shape: tuple[int, ...] = (_ROWS, columns) if columns > 1 else (_ROWS,)
            numbers = torch.randn(2, *shape, generator=generator)
            yield numbers[0], numbers[1]
            yield torch.zeros(shape), numbers[1]
        case TaskKind.LANGUAGE:
            yield torch.rand(_ROWS, generator=generator), targets
            yield torch.zeros(_ROWS), targets
        case _:
            yield torch.randn(_ROWS, symbols, generator=generator).log_softmax(-1), targets
            first = one_hot(torch.zeros(_ROWS, dtype=torch.int64), symbols).float()
            yield first.log_softmax(-1), torch.full((_ROWS,), symbols - 1)


def _task_faults(task: GeneratedTask) -> Iterator[str]:
    """Yield what a plug-in's generator raises for examples and for its test sets."""
    if type(task).__module__.startswith(f"{OWN}."):
        return
    try:
        draw_examples(task, 2, torch.Generator().manual_seed(0))
        for name in task.test_sets():
            draw_test_set(task, name)
    except ActivememError as error:
        yield str(error)


def _part_faults(settings: TrialSettings, data: Path) -> Iterator[str]:
    """Yield what loss terms and callbacks raise in one step of a trial, and after it."""
    short = settings.train.model_copy(update={"epochs": 1, "compile": False})
    try:
        with torch.random.fork_rng(devices=[]):
            training = Training(settings.model_copy(update={"train": short}), torch.device("cpu"), data)
            training.take_steps()
            if training.callbacks:
                metrics = dict.fromkeys(("loss", *epoch_metrics(settings)), 0.5)
                training.callbacks.start(training.model)
                training.callbacks.after_epoch(training.model, 1, training.step, metrics, last=True)
    except ActivememError as error:
        yield str(error)
    except Exception:  # noqa: BLE001 -- not of a plug-in, such as short memory: the trial itself reports it
        return
