"""Every trained model of a study measured once, and what was measured stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from ...storage import Store
from ...studies.catalog.metrics import PROBED_METRIC
from ...studies.catalog.tasks import DegradationProblem
from ...studies.planning.trial_values import trial_values
from ...studies.resolve.trial import Trial
from ...studies.schema.settings import TrialSettings
from ...studies.study import Study
from ..core.resources import ONE_CPU, Machine
from ..corpora import DataError
from ..data.pairs.corpus import PairSplit
from ..data.vocabularies.base import FIRST_SYMBOL
from ..objectives.generation import PairData
from ..tasks.memory_degradation import fixed_bigrams
from .comparison_groups import StandardTrials, group_key, standard_trials
from .encoders import NO_ENCODER, EncoderProbe, choose_pair
from .memory_change import theta
from .trained_models import NOT_KEPT, ProbeError, TrainedTrial, trained_trials

REQUESTED_METRIC, MEASURED_METRIC, PAIR_METRIC = PROBED_METRIC, "probed[measured]", "probed[shown]"
"""How many sequences were asked for, how many there were, and which pair is in the map of attention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What became of one trial: its measures, none if they were stored before or cannot be had.

    `reason` says why they cannot, `unclear` which attentions it is not compared with, since several trials
    have them.
    """

    trial: Trial
    metrics: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = None
    ambiguous: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measurement:
    """What was measured inside of a model by itself, and all of its Δ, to be compared with others'."""

    metrics: Mapping[str, float]
    changes: Tensor


def probe_study(
    study: Study, store: Store, machine: Machine = ONE_CPU, *, sequences: int = 10_000
) -> Iterator[ProbeResult]:
    """Measure every trained model of a study over the first `sequences` test sequences of its task.

    What is stored of as many sequences stays as it is, unless models have come that it can be compared with.
    All is computed by the processor, in double precision.
    """
    torch.set_num_threads(machine.threads)
    groups: dict[str, list[TrainedTrial]] = {}
    for done in trained_trials(study, store):
        name = group_key(done.trial.settings)
        if name is None:
            yield ProbeResult(trial=done.trial, reason=NO_ENCODER)
        elif not store.weights_file(done.trial.id).exists():
            yield ProbeResult(trial=done.trial, reason=NOT_KEPT)
        else:
            groups.setdefault(name, []).append(done)
    comparable = [_Group(members, store, sequences) for members in groups.values()]
    held = _stored_values(study.name, store, comparable)
    for group in comparable:
        yield from _probe(group, held, machine.data)
    store.compact()


class _Group:
    """Trials whose models read the same sequences with encoders of one kind."""

    def __init__(self, members: Sequence[TrainedTrial], store: Store, asked: int) -> None:
        self.members = {done.trial.id: done for done in members}
        self.store, self.asked = store, asked
        trials = [done.trial for done in members]
        self.standards: Mapping[str, StandardTrials] = {
            trial.id: standard_trials(trial, trials) for trial in trials
        }
        self._found: dict[str, _Measurement] = {}

    def names(self, trial: str) -> set[str]:
        """What can be measured of a trial only beside others."""
        return {_theta(attention) for attention in self.standards[trial].by_attention}

    def measure(self, trial: str, split: PairSplit) -> dict[str, float]:
        """All measures of a trial by name; raises ProbeError.

        It is not compared with a model whose weights cannot be read, which is told in that one's turn.
        """
        found = self._measure_one(trial, split)
        metrics = dict(found.metrics)
        for attention, other in self.standards[trial].by_attention.items():
            try:
                standard = self._measure_one(other.id, split).changes
            except ProbeError:
                continue
            metrics[_theta(attention)] = theta(standard, found.changes)
        return metrics

    def _measure_one(self, trial: str, split: PairSplit) -> _Measurement:
        """What a model has by itself, measured when it is first asked for; raises ProbeError."""
        if trial not in self._found:
            settings = self.members[trial].trial.settings
            encoder = EncoderProbe(settings, self.store.weights_file(trial))
            sequences = min(self.asked, len(split.source.lines) - 1)
            memory = encoder.memory(split, sequences)
            metrics = {
                REQUESTED_METRIC: float(self.asked),
                MEASURED_METRIC: float(sequences),
                **dict(memory.metrics()),
            }
            pair = choose_pair(split, sequences)
            if pair is not None and (weights := encoder.attention(split, pair)) is not None:
                metrics |= {PAIR_METRIC: float(pair), **dict(_attention_metrics(weights))}
                metrics |= dict(_pair_metrics(settings, split, pair, encoder.changes(split, pair)))
            self._found[trial] = _Measurement(metrics=metrics, changes=memory.changes)
        return self._found[trial]


def _probe(group: _Group, held: Mapping[str, Mapping[str, float]], data: Path) -> Iterator[ProbeResult]:
    """Every trial of a group in turn; their pairs are read, or drawn, once and only if they are needed."""
    pairs: PairData | None = None
    for name, done in group.members.items():
        before, unclear = held[name], group.standards[name].ambiguous
        if before.get(REQUESTED_METRIC) == group.asked and group.names(name) <= before.keys():
            yield ProbeResult(trial=done.trial, ambiguous=unclear)
            continue
        try:
            pairs = pairs or PairData(done.trial.settings, data)
            metrics = group.measure(name, pairs.test)
        except (DataError, ProbeError) as error:
            yield ProbeResult(trial=done.trial, reason=str(error))
            continue
        group.store.write_probes(done.row, done.metric_rows(metrics))
        yield ProbeResult(trial=done.trial, metrics=metrics, ambiguous=unclear)


def _stored_values(study: str, store: Store, groups: Sequence[_Group]) -> dict[str, dict[str, float]]:
    """What is stored of trials, as far as it tells whether there is something left to measure."""
    trials = [trial for group in groups for trial in group.members]
    names = {REQUESTED_METRIC}.union(*(group.names(trial) for group in groups for trial in group.members))
    outcomes = store.trials(names)
    found: dict[str, dict[str, float]] = {trial: {} for trial in trials}
    for name in names:
        values = trial_values(study, trials, outcomes, name).drop_nulls("value")
        for trial, value in values.select("trial", "value").iter_rows():
            found[trial][name] = value
    return found


def _theta(attention: str) -> str:
    return f"theta[{attention}]"


def _pair_metrics(
    settings: TrialSettings, split: PairSplit, pair: int, changes: Tensor
) -> Iterator[tuple[str, float]]:
    """The symbols of a pair, and Δ of its source where one of the problem's frequent bigrams stands."""
    source, target = (
        each.tokens[each.lines[pair] : each.lines[pair + 1]].tolist() for each in (split.source, split.target)
    )
    for name, symbols in (("source_symbol", source), ("target_symbol", target)):
        for place, symbol in enumerate(symbols, start=1):
            yield f"{name}[{place}]", float(symbol)
    problem = settings.task.spec
    if isinstance(problem, DegradationProblem) and problem.num_bigrams:
        firsts, seconds, _ = fixed_bigrams(problem, settings.seed)
        pairs = set(zip((firsts + FIRST_SYMBOL).tolist(), (seconds + FIRST_SYMBOL).tolist(), strict=True))
        for place, (bigram, change) in enumerate(
            zip(pairwise(source), changes.tolist(), strict=True), start=1
        ):
            if bigram in pairs:
                yield f"bigram_change[{place}]", change


def _attention_metrics(weights: Tensor) -> Iterator[tuple[str, float]]:
    """A map of attention by name, outputs and inputs counted from 1."""
    for output, row in enumerate(weights.tolist(), start=1):
        for place, value in enumerate(row, start=1):
            yield f"attention[{output},{place}]", value
