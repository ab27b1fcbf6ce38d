"""A training step never reads values from its device, which would synchronise with a GPU.

The model is on torch's device `meta`, whose tensors have shapes and no values, so that every operation that
reads a value raises an exception. Operations that need values anyway are listed here, and only these raise.
"""

from contextlib import nullcontext

import pytest
import torch

from activemem.blocks.testing.fixtures import example_block
from activemem.engine.optimisers.weights import Weights, make_weights
from activemem.engine.trial.training import Training
from activemem.grammar import render
from activemem.studies.catalog.optimisers import SCHEDULES
from activemem.studies.schema.settings import TrialSettings

from ...blocks.example_blocks import SEQUENCE_BLOCKS
from ...quick_cases import one_in

META = torch.device("meta")
TEXT = {"name": "language_model", "corpus": "paradise-lost"}
STREAM = {**TEXT, "batching": "stream", "tokens": "characters", "context": 16}
LINES = {**TEXT, "batching": "lines", "tokens": "bpe", "pieces": 300}
ATTENTION = "2 * (sa(heads=2, head_width=4) >> ff(8))"
PAIRS = f"seq2seq({ATTENTION}, {ATTENTION})"
SPAN = "2 * (sa(heads=2, head_width=4, pos=relative, span=16{}) >> ff(8))"
STEPS = {
    "tagging": ({"name": "addition"}, {"recipe": "2 * (cgru(k=3) + conv(k=3) >> ff(8))"}, {}),
    "drawn lengths": ({"name": "reverse"}, {"recipe": ATTENTION}, {"curriculum": None, "lengths": [4, 9]}),
    "padded examples": (
        {"name": "word_problem", "lengths": [3, 9], "test_lengths": [9]},
        {"recipe": "2 * (lstm >> ff(8))"},
        {"curriculum": None},
    ),
    "scored places": ({"name": "mqar"}, {"recipe": ATTENTION}, {"curriculum": None}),
    "numbers": (
        {"name": "recall_addition"},
        {"recipe": "dense >> mean_pool", "position": "none"},
        {"curriculum": None},
    ),
    "stream": (STREAM, {"recipe": SPAN.format("")}, {"curriculum": None}),
    "lines": (LINES, {"recipe": ATTENTION}, {"curriculum": None}),
    "pairs": ({"name": "reverse_copy"}, {"recipe": PAIRS}, {"curriculum": None}),
    "pairs of a recurrent block": (
        {"name": "reverse_copy"},
        {"recipe": "seq2seq(lstm(layers=2), lstm(layers=2), attention=luong)"},
        {"curriculum": None},
    ),
    "guesses": ({"name": "reverse_copy"}, {"recipe": PAIRS}, {"curriculum": None, "sampling": 0.2}),
    "an average": ({"name": "reverse"}, {"recipe": ATTENTION}, {"average": 0.9}),
    "clipping": ({"name": "reverse"}, {"recipe": ATTENTION}, {"clip_norm": 1.0}),
}
NEEDED = {
    "inverse_sqrt": {"warmup": 1},
    "milestones": {"milestones": [1]},
    "recent": {"every": 3},
    "warmup_stable_decay": {"cooldown": 1},
}
STEPS |= {
    f"schedule {name}": (
        {"name": "reverse"},
        {"recipe": ATTENTION},
        {"schedule": {"name": name, **NEEDED.get(name, {})}},
    )
    for name in SCHEDULES
}
STEPS |= {
    f"block {name}": ({"name": "reverse"}, {"recipe": render(example_block(name)), "dropout": 0.1}, {})
    for name in SEQUENCE_BLOCKS
}
STEPS |= {
    f"position {position}": (
        {"name": "reverse"},
        {"recipe": "sa(heads=2, pos=rope)", "position": position, "max_positions": 50},
        {},
    )
    for position in ("learned", "randomised", "randomised_pairs")
}
ASKING = {
    "the mean of recent losses": (
        {"name": "reverse"},
        {"recipe": ATTENTION},
        {"schedule": {"name": "recent", "every": 1}},
    ),
    "learnt spans": (
        STREAM,
        {"recipe": SPAN.format(", adaptive=true")},
        {"curriculum": None, "span_loss": 1e-4},
    ),
    "clusters of words": (
        {**STREAM, "tokens": "bpe", "pieces": 300},
        {"recipe": SPAN.format(""), "cutoffs": [100]},
        {"curriculum": None},
    ),
}


@pytest.fixture(autouse=True)
def _without_autocast(monkeypatch):
    """Disable autocast, which torch lacks on the meta device."""
    monkeypatch.setattr("activemem.engine.objectives.base.autocast", lambda *_: nullcontext())


@pytest.mark.parametrize("kind", one_in(2, STEPS))
def test_a_step_asks_its_device_for_nothing(kind, tmp_path):
    training = training_on_meta(STEPS[kind], tmp_path)
    for _ in range(2):
        training.take_steps()
    assert training.step == 2


@pytest.mark.parametrize("kind", ASKING)
def test_operations_that_depend_on_values_read_them(kind, tmp_path):
    with pytest.raises(RuntimeError, match="meta"):
        training_on_meta(ASKING[kind], tmp_path).take_steps()


def training_on_meta(asked, folder):
    """Return a training with normal data and a model on the meta device."""
    task, model, train = asked
    settings = {
        "model": {"d_model": 8, **model},
        "task": task,
        "train": {
            "optimizer": {"name": "adam", "lr": 0.01},
            "batch_size": 4,
            "epochs": 1,
            "steps_per_epoch": 2,
            "curriculum": {"start": 5},
            **train,
        },
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("activemem.engine.trial.training.make_weights", without_values)
        training = Training.begin(TrialSettings.model_validate(settings), torch.device("cpu"), folder)
    training.device = training.objective.device = META
    return training


def without_values(settings, *given):
    """Return the weights on the meta device."""
    made = Weights(make_weights(settings, *given).model.to(META), settings.train)
    for group in made.optimizer.param_groups:
        group["fused"] = False  # its kernels are for devices that have values
    return made
