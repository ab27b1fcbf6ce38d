"""Fixtures of the engine's tests: tiny settings, a tiny study, and a recording listener."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from activemem.engine import Event
from activemem.studies import Trial
from activemem.studies.schema.settings import TrialSettings

from ..study_texts import study_text

os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # no token file in the home of whoever runs the tests

TINY = study_text(
    study={"title": "Two mixers on two tasks"},
    model={"recipe": "{mixer} >> ff(16)", "d_model": 16},
    train={"optimizer": {"name": "adam", "lr": 0.01}, "batch_size": 8, "epochs": 4, "steps_per_epoch": 2},
    factors={"mixer": ["sa(heads=2, head_width=8)", "conv(k=3)"], "task": ["not", "reverse"], "seed": [0, 1]},
    table=[{"name": "reached", "rows": "mixer", "columns": "task", "value": "max_length"}],
)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def tiny() -> str:
    """Return the text of a study of eight trials of less than a second."""
    return TINY


@pytest.fixture
def settings() -> Callable[..., TrialSettings]:
    """Return a factory of tiny trial settings; keywords go into [train] except recipe, task and seed."""

    def make(
        recipe: str = "conv(k=3) >> ff(16)", task: str = "not", seed: int = 0, **train: Any
    ) -> TrialSettings:
        return TrialSettings.model_validate(
            {
                "model": {"recipe": recipe, "d_model": 16},
                "task": {"name": task},
                "train": {
                    "optimizer": {"name": "adam", "lr": 1e-2},
                    "batch_size": 8,
                    "epochs": 4,
                    "steps_per_epoch": 5,
                    "curriculum": {"start": 5},
                }
                | train,
                "seed": seed,
            }
        )

    return make


@pytest.fixture
def bf16_at_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let trials with bf16 use it in tiny steps too, which are otherwise computed in float32."""
    monkeypatch.setattr("activemem.studies.resolve.costs.LEAST_BF16_PRODUCTS", 0)


@pytest.fixture
def returning_handlers() -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM in the program, so that a run that they stop returns its summary."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: None) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Notes:
    """A listener that records its events, and the trials that it was told of."""

    def __init__(self) -> None:
        self.announced: list[Trial] = []
        self.events: list[Event] = []
        self.hear: Callable[[Event], None] = lambda event: None

    def __call__(self, event: Event) -> None:
        self.announced += event.trials if event.kind == "planned" else ()
        if event.run.trial or event.kind == "machine_failed":
            self.events.append(event)
        if event.run.trial or event.kind == "waiting":
            self.hear(event)

    def of(self, kind: str) -> list[Any]:
        """Return the events of one kind."""
        return [event for event in self.events if event.kind == kind]


@pytest.fixture
def notes() -> Notes:
    """Return a listener that records its events."""
    return Notes()
