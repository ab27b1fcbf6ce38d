"""A tiny study, trained once for all tests of trackers."""

import optuna
import pytest
import torch

from activemem import load_study, run_study
from activemem.storage import Store

from ..study_texts import study_text

TINY = study_text(
    study={"title": "Two mixers"},
    model={"recipe": "{mixer} >> ff(8)", "d_model": 8},
    task={"name": "not"},
    train={"optimizer": {"name": "adam", "lr": 0.01}, "epochs": 3, "steps_per_epoch": 1},
    factors={"mixer": ["sa(heads=1, head_width=8)", "conv(k=3)"], "seed": [0, 1]},
    table=[{"name": "reached", "rows": "mixer", "value": "max_length"}],
)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Return the tiny study and a store with its four trials."""
    torch.set_num_threads(1)
    study, store = load_study(TINY), Store(tmp_path_factory.mktemp("results"))
    run_study(study, store, local=True)
    return study, store


@pytest.fixture
def storages():
    """Return the file storages by path, closed after the test."""
    opened = []

    def open_file(path):
        opened.append(optuna.storages.RDBStorage(f"sqlite:///{path}"))
        return opened[-1]

    yield open_file
    for each in opened:
        each.remove_session()
        each.engine.dispose()
