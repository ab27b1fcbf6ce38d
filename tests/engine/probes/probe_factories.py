"""A study of models with memories, stored as if trained."""

from datetime import UTC, datetime

import torch

from activemem import load_study
from activemem.engine.core.models import ModelFile, build_model, write_model_file
from activemem.engine.core.run import Run
from activemem.engine.trial.outcome import trial_row

from ...study_texts import study_text

NAIVE = "seq2seq(lstm, lstm)"
LUONG = "seq2seq(lstm, lstm, attention=luong)"
BAHDANAU = "seq2seq(lstm, lstm, attention=bahdanau)"
INPUTS = "seq2seq(lstm, lstm, attention=luong, attend=inputs)"
GRU = "seq2seq(gru(layers=2), gru(layers=2), attention=bahdanau)"
STACK = "seq2seq(sa(heads=1), sa(heads=1))"


def make_study(*models, more="", task="reverse_copy"):
    text = study_text(
        study={"name": "memories", "title": "Models that have learnt nothing", "keep_weights": True},
        model={"recipe": "{model}", "d_model": 6, "position": "none", "dropout": 0.5},
        task={"name": task},
        train={"batch_size": 32, "epochs": "{epochs}", "steps_per_epoch": 1, "curriculum": None},
        factors={"model": list(models), "epochs": [1], "seed": [3]},
    )
    return load_study(text + more)


def store_outcomes(store, study, *, keeps_weights=lambda trial: True):
    """Store each trial as if trained, with its initial weights."""
    for number, trial in enumerate(study.trials):
        epochs = trial.settings.train.epochs
        run = Run(status="done", metrics={"loss": 1.0}, epoch=epochs, step=7, device="none")
        store.write(trial_row(trial, run, started=datetime.now(UTC)), [])
        if keeps_weights(trial):
            model = make_model(trial, number)
            kept = ModelFile(trial=trial, weights=model.state_dict(), metrics={}, version="", commit=None)
            write_model_file(store.files.weights_file(trial.id), kept)


def make_model(trial, number):
    """Return a model with larger weights than at initialisation, so that its gates vary."""
    settings = trial.settings
    model = build_model(settings, torch.Generator().manual_seed(number))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3.0)
    return model
