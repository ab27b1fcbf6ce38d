"""All measurements of a study's trained models, including the probes of plug-ins.

A plug-in's probe is a function that measures every trained model; its results are stored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import partial

import torch

from ...plugins import PluginError
from ...storage import Store
from ...studies.catalog.metrics import PROBES, RegisteredProbe, metric_family
from ...studies.catalog.tasks import Examples
from ...studies.planning.final_values import encoder_arguments, trial_values
from ...studies.resolve.trial import SHOWN_DIGITS, digest
from ...studies.study import Study
from ..core.process import prepare_cpu, restored_process
from ..core.resources import ONE_CPU, Machine
from ..objectives.build import draw_test_batches
from .study_probes import ProbeResult, measure_one, probe_study
from .trained_models import NOT_KEPT, ProbeError, TrainedTrial, load_kept_model, trained_trials
from .tuning import tune_study

_INDEX = re.compile(r"[\w.+-]+(,[\w.+-]+){0,2}")


def measure_study(
    study: Study, store: Store, machine: Machine | None = None, *, sequences: int = 10_000
) -> Iterator[tuple[str, Iterator[ProbeResult]]]:
    """Yield each kind of measurement that suits a study, with an iterator over its results.

    The kinds are "probed" and "tuned". The memory probe suits models with a recurrent encoder, and tuning
    suits studies with [decode]. Probes of plug-ins run if there are any.
    """
    machine = machine or ONE_CPU
    # a search lists no trials, so its models are not known
    recipes = {trial.settings.model.recipe for trial in study.trials}
    has_encoder = not recipes or any(encoder_arguments(recipe) is not None for recipe in recipes)
    if not PROBES or has_encoder:
        yield "probed", probe_study(study, store, machine, sequences=sequences)
    if PROBES:
        yield "probed", run_registered_probes(study, store, machine)
    if study.decode is not None:
        yield "tuned", tune_study(study, store, machine)


def run_registered_probes(study: Study, store: Store, machine: Machine = ONE_CPU) -> Iterator[ProbeResult]:
    """Run the plug-in probes on the trained models of a study.

    A probe runs only on the kinds of tasks that it supports. Stored results of a probe with the same source
    are reused. If a probe fails, or a model exceeds the machine's time limit, the result says so, and the
    other probes and models continue.
    """
    with restored_process():
        prepare_cpu(machine.threads)
        for trained in trained_trials(study, store):
            kind = trained.trial.settings.task.spec.kind
            for probe in [probe for probe in PROBES.values() if kind in probe.kinds]:
                if not trained.is_kept:
                    yield ProbeResult(trial=trained.trial, reason=NOT_KEPT)
                    break
                outcomes = store.trials({mark := _mark(probe), metric_family(mark)})
                stored = trial_values(study.name, [trained.trial.id], outcomes, mark)["value"]
                if stored.drop_nulls().len():
                    yield ProbeResult(trial=trained.trial)
                    continue
                yield measure_one(trained, store, machine, partial(_measure, probe, trained, store, machine))
        store.upkeep.compact()


def run_probe(
    probe: RegisteredProbe, model: torch.nn.Module, batches: Iterator[Examples]
) -> dict[str, float]:
    """Return the results of a probe by metric name. Raise PluginError with its name if it fails."""
    where = f"{PROBES.owner(probe.name)}: probe '{probe.name}'"
    try:
        with torch.no_grad():
            found = {str(index): float(value) for index, value in probe.measure(model, batches).items()}
    except Exception as error:
        raise PluginError(f"{where}: {type(error).__name__}: {error}") from error
    for index, value in found.items():
        if index and not _INDEX.fullmatch(index):
            raise PluginError(f"{where}: expected an index of a word or a number, got {index!r}")
        if not math.isfinite(value):
            raise PluginError(f"{where}: expected finite numbers, got {value} at '{index}'")
    if not found:
        raise PluginError(f"{where}: expected at least one number, got none")
    return {f"{probe.name}[{index}]" if index else probe.name: value for index, value in found.items()}


def _measure(
    probe: RegisteredProbe, trained: TrainedTrial, store: Store, machine: Machine
) -> Mapping[str, float]:
    trial = trained.trial
    model = load_kept_model(trial.settings, store.files.weights_file(trial.id)).eval()
    try:
        return run_probe(probe, model, draw_test_batches(trial, machine.data)) | {_mark(probe): 1.0}
    except PluginError as error:
        raise ProbeError(str(error)) from error


def _mark(probe: RegisteredProbe) -> str:
    return f"{probe.name}[source-{digest(PROBES.code(probe.name) or '')[:SHOWN_DIGITS]}]"
