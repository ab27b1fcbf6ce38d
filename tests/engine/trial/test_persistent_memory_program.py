"""All-attention and its Transformer train as in the program of Sukhbaatar et al. 2019."""

import math
from itertools import islice

import pytest
import torch

from activemem.engine.data.text.batches import iter_stream_batches
from activemem.engine.data.text.corpus import open_corpus
from activemem.engine.trial.training import Training
from activemem.studies.schema.settings import TrialSettings
from tests.engine.trial.persistent_memory_program import Program

STEPS = 25
RECIPES = {
    "all-attention": "2 * all_attn(N=24, span=64, heads=4, head_width=8, adaptive=true)",
    "Transformer": "2 * (sa(heads=4, head_width=8, pos=relative, span=64, adaptive=true) >> ff(48))",
}


@pytest.fixture
def in_double_precision():
    """Use double precision: early steps of Adagrad have full length even for rounding errors."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("in_double_precision")
@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(recipe, id=name, marks=[pytest.mark.heavy] * (name == "Transformer"))
        for name, recipe in RECIPES.items()
    ],
)
def test_curves_from_the_same_weights_coincide(recipe, tmp_path):
    settings = TrialSettings.model_validate(
        {
            "model": {
                "recipe": recipe,
                "d_model": 32,
                "norm": "post",
                "position": "none",
                "dropout": 0.0,
                "embedding": "unit",
                "init": "uniform",
                "zero_past": True,
            },
            "task": {
                "name": "language_model",
                "corpus": "paradise-lost",
                "tokens": "characters",
                "batching": "stream",
                "context": 24,
                "dev_tokens": 30,
            },
            "train": {
                "optimizer": {"name": "adagrad", "lr": 0.07, "eps": 1e-10},
                "schedule": {"name": "constant", "warmup": 100},
                "clip_step_norm": 0.03,
                "span_loss": 1e-6,
                "batch_size": 8,
                "epochs": STEPS + 1,
                "steps_per_epoch": 1,
            },
        }
    )
    training = Training.begin(settings, torch.device("cpu"), tmp_path)
    sizes = {"layers": 2, "heads": 4, "span": 64, "ramp": 32}
    rule = {"lr": 0.07, "warmup": 100, "clip": 0.03, "span_loss": 1e-6}
    started = training.state()  # spans of 0 stand on the kink of the ramp, whose slope is not defined
    for name, weight in started["model"].items():
        if name.endswith("spans.z"):
            weight.copy_(torch.linspace(0.1, 0.3, len(weight)))
    training.restore(started)
    program = Program(training.weights(), **sizes, **rule)
    tokens = open_corpus(settings.task, tmp_path).train.tokens
    batches = islice(iter_stream_batches(tokens, batch_size=8, context=24), STEPS)
    ours = [training.advance()["loss"] / math.log(2) for _ in range(STEPS)]
    theirs = [program.step(batch.inputs.long(), batch.targets.long()) / math.log(2) for batch in batches]
    assert ours == pytest.approx(theirs, abs=1e-3)
    assert ours[-1] < ours[0] - 0.2
