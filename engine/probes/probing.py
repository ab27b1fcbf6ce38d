"""Every trained model of a study measured once, and what was measured stored."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor

from ...storage import MetricRow, Store, TrialRow
from ...studies.metrics import PROBED
from ...studies.settings import Settings
from ...studies.standing import own
from ...studies.study import Study
from ...studies.trial import Trial
from ..corpora import DataError
from ..data.pairs import PairSplit
from ..machine import Machine
from ..objectives.writing import Pairs
from .encoders import NO_ENCODER, Encoder, ProbeError, shown
from .memory import theta
from .pairing import Standards, group, standards

ASKED, MEASURED, SHOWN = PROBED, "probed[measured]", "probed[shown]"
"""How many sequences were asked for, how many there were, and which pair is in the map of attention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What became of one trial: its measures, none if they were stored before or cannot be had.

    `reason` says why they cannot, `unclear` which attentions it is not compared with, since several trials
    have them.
    """

    trial: Trial
    metrics: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = None
    unclear: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    """A trial that is done, and its row in the store."""

    trial: Trial
    row: TrialRow


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What was measured inside of a model by itself, and all of its Δ, to be compared with others'."""

    metrics: Mapping[str, float]
    changes: Tensor


def probe_study(study: Study, store: Store, machine: Machine, *, sequences: int) -> Iterator[Probed]:
    """Measure every trained model of a study over the first so many test sequences of its task.

    What is stored of as many sequences stays as it is, unless models have come that it can be compared with.
    All is computed by the processor, in double precision.
    """
    torch.set_num_threads(machine.threads)
    groups: dict[str, list[_Done]] = {}
    for done in _done(study, store):
        name = group(done.trial.settings)
        if name is None:
            yield Probed(trial=done.trial, reason=NO_ENCODER)
        elif not store.weights_file(done.trial.id).exists():
            yield Probed(trial=done.trial, reason="its weights were not kept")
        else:
            groups.setdefault(name, []).append(done)
    held = _held(store, [done.trial.id for members in groups.values() for done in members])
    for members in groups.values():
        yield from _probe(_Group(members, store, sequences), held, machine.data)
    store.compact()


class _Group:
    """Trials whose models read the same sequences with encoders of one kind."""

    def __init__(self, members: Sequence[_Done], store: Store, asked: int) -> None:
        self.members = {done.trial.id: done for done in members}
        self.store, self.asked = store, asked
        trials = [done.trial for done in members]
        self.standards: Mapping[str, Standards] = {trial.id: standards(trial, trials) for trial in trials}
        self._found: dict[str, _Found] = {}

    def names(self, trial: str) -> set[str]:
        """What can be measured of a trial only beside others."""
        return {_theta(attention) for attention in self.standards[trial].of}

    def measured(self, trial: str, split: PairSplit) -> dict[str, float]:
        """All measures of a trial by name; raises ProbeError.

        It is not compared with a model whose weights cannot be read, which is told in that one's turn.
        """
        found = self._alone(trial, split)
        metrics = dict(found.metrics)
        for attention, other in self.standards[trial].of.items():
            try:
                standard = self._alone(other.id, split).changes
            except ProbeError:
                continue
            metrics[_theta(attention)] = theta(standard, found.changes)
        return metrics

    def _alone(self, trial: str, split: PairSplit) -> _Found:
        """What a model has by itself, measured when it is first asked for; raises ProbeError."""
        if trial not in self._found:
            settings = self.members[trial].trial.settings
            encoder = Encoder(settings, self.store.weights_file(trial))
            sequences = min(self.asked, len(split.source.lines) - 1)
            memory = encoder.memory(split, sequences)
            metrics = {ASKED: float(self.asked), MEASURED: float(sequences), **dict(memory.metrics())}
            pair = shown(split, sequences)
            if pair is not None and (weights := encoder.attention(split, pair)) is not None:
                metrics |= {SHOWN: float(pair), **dict(_map(weights))}
            self._found[trial] = _Found(metrics=metrics, changes=memory.changes)
        return self._found[trial]


def _probe(group: _Group, held: Mapping[str, Mapping[str, float]], data: Path) -> Iterator[Probed]:
    """Every trial of a group in turn; their pairs are read, or drawn, once and only if they are needed."""
    pairs: Pairs | None = None
    for name, done in group.members.items():
        before, unclear = held.get(name, {}), group.standards[name].unclear
        if before.get(ASKED) == group.asked and group.names(name) <= before.keys():
            yield Probed(trial=done.trial, unclear=unclear)
            continue
        try:
            pairs = pairs or Pairs(done.trial.settings, data)
            metrics = group.measured(name, pairs.test)
        except (DataError, ProbeError) as error:
            yield Probed(trial=done.trial, reason=str(error))
            continue
        row = done.row
        rows = [
            MetricRow(step=row.steps, epoch=row.epochs, name=each, value=value)
            for each, value in metrics.items()
        ]
        group.store.write_probes(row, rows)
        yield Probed(trial=done.trial, metrics=metrics, unclear=unclear)


def _done(study: Study, store: Store) -> Iterator[_Done]:
    """The trials of a study that are done, in its order; of a search, all that it tried."""
    rows = {row["trial"]: row for row in own(study, store.trials()).iter_rows(named=True)}
    known = {trial.id: trial for trial in study.trials()}
    for name in known or rows:
        row = rows.get(name)
        if row is not None and row["status"] == "done":
            finals = tuple((each["name"], each["value"]) for each in row["metrics"])
            yield _Done(trial=known.get(name) or _tried(row), row=TrialRow(**{**row, "metrics": finals}))


def _tried(row: Mapping[str, Any]) -> Trial:
    """The trial of a row."""
    settings = Settings.model_validate_json(row["settings"])
    return Trial(study=row["study"], levels=json.loads(row["factors"]), settings=settings)


def _held(store: Store, trials: Sequence[str]) -> dict[str, dict[str, float]]:
    """What is stored of trials, as far as it tells whether there is something left to measure."""
    name = pl.col("name")
    kept = name.str.starts_with("probed[") | name.str.starts_with("theta[")
    found: dict[str, dict[str, float]] = {}
    for trial, each, value in store.metrics(trials).filter(kept).select("trial", "name", "value").iter_rows():
        found.setdefault(trial, {})[each] = value
    return found


def _theta(attention: str) -> str:
    return f"theta[{attention}]"


def _map(weights: Tensor) -> Iterator[tuple[str, float]]:
    """A map of attention by name, outputs and inputs counted from 1."""
    for output, row in enumerate(weights.tolist(), start=1):
        for place, value in enumerate(row, start=1):
            yield f"attention[{output},{place}]", value
