"""Memory probe that measures the encoder of each trained model of a study once, and stores the results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

from torch import Tensor

from ...errors import argument_fault, check_arguments, number_fault
from ...grammar.canonical import identity
from ...grammar.vocabulary.spec import as_word
from ...storage import Store, open_store, store_fault
from ...studies.catalog.metrics import PROBED_METRIC
from ...studies.catalog.tasks import DegradationProblem
from ...studies.planning.final_values import encoder_arguments, trial_values
from ...studies.resolve.trial import Trial
from ...studies.schema.settings import TrialSettings
from ...studies.study import Study, study_fault
from ..core.process import TimeLimitPassed, interruptible, prepare_cpu, restored_process
from ..core.resources import ONE_CPU, Machine
from ..corpora.files import DataError
from ..data.sentence_pairs import PairSplit
from ..data.vocabularies.vocabulary import FIRST_SYMBOL
from ..objectives.generation import PairData
from ..tasks.memory_degradation import fixed_bigrams
from ..trial.failures import MachineError, is_out_of_memory, machine_failure, note_lost_gpu
from .encoders import NO_ENCODER, EncoderProbe, choose_pair, theta
from .trained_models import NO_TRANSLATION, NOT_KEPT, ProbeError, TrainedTrial, trained_trials

_DURATION_KEYS = ("epochs", "steps_per_epoch", "seconds", "stop")
"""Keys of [train] in which compared trials may differ: models without attention take longer to train."""


def group_key(settings: TrialSettings) -> str | None:
    """Return a key that is equal for all trials with the same sequences and the same encoder.

    These trials form a group. They may differ in the decoder's attention and in the length of training.
    Return None if the trial has no recurrent encoder.
    """
    arguments = encoder_arguments(settings.model.recipe)
    if arguments is None:
        return None
    record = settings.model_dump(mode="json")
    record["model"]["recipe"] = [identity(arguments[name]) for name in ("encoder", "decoder")]
    record["train"] = {key: value for key, value in record["train"].items() if key not in _DURATION_KEYS}
    return json.dumps(record, sort_keys=True)


def standard_trials(trial: Trial, others: Sequence[Trial]) -> dict[str, list[Trial]]:
    """Return those trials among `others` that have standard attention, by the kind of attention.

    Their decoders attend to the outputs of the encoder. `others` may include `trial`. If several trials have
    the same attention, and one of them has the same [train] as `trial`, only this one is returned.
    """
    found: dict[str, list[Trial]] = {}
    for other in others:
        arguments = encoder_arguments(other.settings.model.recipe)
        assert arguments is not None, "only trials of a group are compared"
        attention = as_word(arguments, "attention")
        if attention != "none" and as_word(arguments, "attend") == "outputs":
            found.setdefault(attention, []).append(other)
    for attention, trials in found.items():
        trained_alike = [other for other in trials if other.settings.train == trial.settings.train]
        found[attention] = trained_alike if len(trained_alike) == 1 else trials
    return found


REQUESTED_METRIC, MEASURED_METRIC, PAIR_METRIC = PROBED_METRIC, "probed[measured]", "probed[shown]"
"""Metrics for the number of requested and measured sequences, and for the pair of the attention map."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The result of a probe for one trial.

    `metrics` is empty if nothing new was measured. `reason` says why a model cannot be measured. A trial is
    not compared with `ambiguous` attentions, which several trials share.
    """

    trial: Trial
    metrics: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = None
    ambiguous: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Return whether the measurement failed. A probe that does not suit the model has not failed."""
        return self.reason not in (None, NO_ENCODER, NO_TRANSLATION)


def probe_study(
    study: Study, store: Store | str | Path, machine: Machine = ONE_CPU, *, sequences: int = 10_000
) -> Iterator[ProbeResult]:
    """Measure the encoder's memory in every trained model of a study.

    Each model reads the first `sequences` test sequences of its task. A model is measured again only if the
    number of sequences differs from the last time, or if new models can be compared with it. Everything runs
    on the CPU in double precision, within the machine's time limit for each model.
    """
    check_arguments(
        study_fault(study),
        store_fault(store),
        argument_fault("machine", machine, Machine),
        number_fault("sequences", sequences, least=1),
    )
    store = open_store(store)
    with restored_process():
        prepare_cpu(machine.threads)
        groups: dict[str, dict[str, TrainedTrial]] = {}
        for trained in trained_trials(study, store):
            key = group_key(trained.trial.settings)
            if key is None:
                yield ProbeResult(trial=trained.trial, reason=NO_ENCODER)
            elif not trained.is_kept:
                yield ProbeResult(trial=trained.trial, reason=NOT_KEPT)
            else:
                groups.setdefault(key, {})[trained.trial.id] = trained
        comparable = [_Group(members, store, sequences) for members in groups.values()]
        stored = {trial: dict[str, float]() for group in comparable for trial in group.members}
        names = {REQUESTED_METRIC}.union(
            *(group.theta_names(trial) for group in comparable for trial in group.members)
        )
        outcomes = store.trials(names)
        for name in names:
            values = trial_values(study.name, list(stored), outcomes, name).drop_nulls("value")
            for trial, value in values.select("trial", "value").iter_rows():
                stored[trial][name] = value
        for group in comparable:
            yield from group.probe(stored, machine)
        # each measured trial has left a small file
        store.upkeep.compact()


class _Group:
    """Group of trials with the same sequences and the same encoder.

    The first `requested` test sequences are measured. A trial is compared with the trial of each kind of
    standard attention, but not with ambiguous ones.
    """

    def __init__(self, members: Mapping[str, TrainedTrial], store: Store, requested: int) -> None:
        self.members, self.store, self.requested = members, store, requested
        trials = [trained.trial for trained in members.values()]
        self.standards = {trial.id: standard_trials(trial, trials) for trial in trials}
        self._measured: dict[str, tuple[Mapping[str, float], Tensor]] = {}

    def probe(self, stored: Mapping[str, Mapping[str, float]], machine: Machine) -> Iterator[ProbeResult]:
        """Measure the group's trials, store their metrics and yield the results, with pairs loaded once."""
        first = next(iter(self.members.values())).trial
        pairs = cache(lambda: PairData(first.settings, machine.data))
        for trial, trained in self.members.items():
            ambiguous = tuple(name for name, trials in self.standards[trial].items() if len(trials) > 1)
            known = stored[trial].get(REQUESTED_METRIC) == self.requested
            if known and self.theta_names(trial) <= stored[trial].keys():
                yield ProbeResult(trial=trained.trial, ambiguous=ambiguous)
                continue
            probed = measure_one(
                trained, self.store, machine, lambda trial=trial: self._measure(trial, pairs().test)
            )
            yield probed if probed.reason else replace(probed, ambiguous=ambiguous)

    def theta_names(self, trial: str) -> set[str]:
        """Return the names of the metrics Θ of a trial. There is one for each kind of standard attention."""
        return {_theta(name) for name, trials in self.standards[trial].items() if len(trials) == 1}

    def _measure(self, trial: str, split: PairSplit) -> dict[str, float]:
        """Return all metrics of a trial. An unreadable model is not compared, and reported in its turn."""
        own, changes = self._measure_alone(trial, split)
        metrics = dict(own)
        for attention, trials in self.standards[trial].items():
            if len(trials) == 1:
                with suppress(ProbeError):
                    metrics[_theta(attention)] = theta(self._measure_alone(trials[0].id, split)[1], changes)
        return metrics

    def _measure_alone(self, trial: str, split: PairSplit) -> tuple[Mapping[str, float], Tensor]:
        """Return the cached metrics of one trial's model, and Δ of each two consecutive steps."""
        if trial not in self._measured:
            settings = self.members[trial].trial.settings
            encoder = EncoderProbe(settings, self.store.files.weights_file(trial))
            sequences = min(self.requested, len(split.source.lines) - 1)
            memory = encoder.memory(split, sequences)
            metrics = {
                REQUESTED_METRIC: float(self.requested),
                MEASURED_METRIC: float(sequences),
                **dict(memory.metrics()),
            }
            pair = choose_pair(split, sequences)
            if pair is not None and (weights := encoder.attention(split, pair)) is not None:
                metrics[PAIR_METRIC] = float(pair)
                for output, row in enumerate(weights.tolist(), start=1):
                    for place, value in enumerate(row, start=1):
                        metrics[f"attention[{output},{place}]"] = value
                metrics |= dict(_pair_metrics(settings, split, pair, encoder.changes(split, pair)))
            self._measured[trial] = metrics, memory.changes
        return self._measured[trial]


def within_limit(trial: Trial, machine: Machine, measure: Callable[[], Mapping[str, float]]) -> ProbeResult:
    """Measure a trial's model within the machine's time limit.

    Return the results, or the reason why there are none, such as a lack of memory. Raise MachineError if the
    machine fails. All other errors are raised unchanged.
    """
    try:
        with interruptible(machine.time_limit_s):
            return ProbeResult(trial=trial, metrics=measure())
    except (DataError, ProbeError) as error:
        return ProbeResult(trial=trial, reason=str(error))
    except TimeLimitPassed:
        return ProbeResult(trial=trial, reason=f"time limit of {machine.time_limit_s:g} s passed")
    except Exception as error:
        note_lost_gpu(error)
        if (reason := machine_failure(error)) is not None:
            raise MachineError(reason) from error
        if not is_out_of_memory(error):
            raise
        return ProbeResult(trial=trial, reason="out of memory")


def measure_one(
    trained: TrainedTrial, store: Store, machine: Machine, measure: Callable[[], Mapping[str, float]]
) -> ProbeResult:
    """Measure a trained model as `within_limit` does, and store the result."""
    probed = within_limit(trained.trial, machine, measure)
    if probed.reason is None:
        store.write_probes(trained.row, trained.metric_rows(probed.metrics))
    return probed


def _theta(attention: str) -> str:
    return f"theta[{attention}]"


def _pair_metrics(
    settings: TrialSettings, split: PairSplit, pair: int, changes: Tensor
) -> Iterator[tuple[str, float]]:
    source, target = (
        side.tokens[side.lines[pair] : side.lines[pair + 1]].tolist() for side in (split.source, split.target)
    )
    for name, symbols in (("source_symbol", source), ("target_symbol", target)):
        for place, symbol in enumerate(symbols, start=1):
            yield f"{name}[{place}]", float(symbol)
    problem = settings.task.spec
    if isinstance(problem, DegradationProblem) and problem.num_bigrams:
        firsts, seconds, _ = fixed_bigrams(problem, settings.seed)
        frequent = set(zip((firsts + FIRST_SYMBOL).tolist(), (seconds + FIRST_SYMBOL).tolist(), strict=True))
        measured = {
            place: change
            for place, (bigram, change) in enumerate(
                zip(pairwise(source), changes.tolist(), strict=True), start=1
            )
            if bigram in frequent
        }
        if measured:
            yield "bigram_change", sum(measured.values()) / len(measured)
        for place, change in measured.items():
            yield f"bigram_change[{place}]", change
