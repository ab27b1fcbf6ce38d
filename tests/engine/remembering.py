"""A study of models with memories, stored as if they had been trained."""

from datetime import UTC, datetime

import torch

from activemem.engine import weights
from activemem.engine.models import build_model
from activemem.engine.outcome import Task, Totals, outcome
from activemem.studies.demands import demand
from activemem.studies.study import load

STUDY = """
[study]
name = "memories"
title = "Memories of small models that have learnt nothing"
keep_weights = true

[model]
recipe = "{model}"
d_model = 6
position = "none"
dropout = 0.5

[task]
name = "reverse_copy"

[train]
optimizer = { name = "adam", lr = 1e-3 }
batch_size = 32
epochs = "{epochs}"
steps_per_epoch = 1

[factors]
model = [MODELS]
epochs = [1]
seed = [3]
"""
NAIVE = "seq2seq(lstm, lstm)"
LUONG = "seq2seq(lstm, lstm, attention=luong)"
BAHDANAU = "seq2seq(lstm, lstm, attention=bahdanau)"
INPUTS = "seq2seq(lstm, lstm, attention=luong, attend=inputs)"
GRU = "seq2seq(gru(layers=2), gru(layers=2), attention=bahdanau)"
STACK = "seq2seq(sa(heads=1), sa(heads=1))"


def a_study(*models, more=""):
    return load(STUDY.replace("MODELS", ", ".join(f'"{model}"' for model in models)) + more)


def finish(store, study, *, keep=lambda trial: True):
    """Store each trial as if it had been trained; its weights are those that it began with."""
    for number, trial in enumerate(study.trials()):
        row = outcome(
            Task(trial=trial, number=0, run="r"),
            Totals(epochs=trial.settings.train.epochs, steps=7, device="none"),
            {"loss": 1.0},
            status="done",
            reason=None,
            started=datetime.now(UTC),
        )
        store.write(row, [])
        if keep(trial):
            weights.save(store.weights_file(trial.id), a_model(trial, number).state_dict())


def a_model(trial, number):
    """A model with larger weights than at the beginning, so that its gates move."""
    settings = trial.settings
    model = build_model(settings.model, demand(settings.task), torch.Generator().manual_seed(number))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3.0)
    return model
