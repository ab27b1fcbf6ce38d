"""A training interrupted between steps or in evaluation resumes with identical bits."""

import io
import itertools

import pytest
import torch

from activemem.engine.core.process import StoppedMidway
from activemem.engine.objectives import seq2seq
from activemem.engine.trial.training import Training
from activemem.studies.schema.settings import TrialSettings

from ..text_factories import tiny_corpus

CPU = torch.device("cpu")
STEPS, EPOCHS = 4, 2
LEFT_AFTER = {"tagging": (1, STEPS, STEPS + 2), "drawn lengths": (STEPS, STEPS + 2), "stream": (1, STEPS + 2)}
"""The steps at which trainings are interrupted; most kinds of task use only the last of them."""
LANGUAGE = {"name": "language_model", "corpus": "tiny", "context": 16, "dev_tokens": 200}
KINDS = {
    "tagging": (
        {"name": "reverse"},
        {"recipe": "sa(heads=2, head_width=8) + conv(k=3) >> ff(16)"},
        {
            "curriculum": {"start": 5, "grow_at": 0.1},
            "schedule": {"name": "recent", "every": 3, "patience": 1},
        },
    ),
    "drawn lengths": (
        {"name": "copy", "test_lengths": [9], "test_examples": 5, "dev_examples": 6},
        {"recipe": "conv(k=3) >> ff(16)"},
        {
            "lengths": [1, 6],
            "accumulate": 2,
            "measure": ["gradient_norm"],
            "early_stopping": {"metric": "dev_loss", "patience": 1, "min_change": 100.0},
            "epochs": 4,
        },
    ),
    "regression": (
        {"name": "recall_addition"},
        {"recipe": "mean_pool"},
        {"stop": {"within": 1e-9, "epochs": 1}},
    ),
    "varied": ({"name": "recall_multiplication", "variable": True}, {"recipe": "mean_pool"}, {}),
    "seq2seq": (
        {"name": "reverse_copy"},
        {"recipe": "seq2seq(gru, gru, attention=luong)", "position": "none"},
        {"sampling": 0.5, "clip_norm": 1.0},
    ),
    "scheduled sampling": (
        {"name": "reverse_copy"},
        {"recipe": "seq2seq(gru, gru)", "position": "none"},
        {"sampling": 0.9, "scheduled_sampling": {"start": 0.5, "double_every": 4}},
    ),
    "stream": (
        {**LANGUAGE, "random_offset": True},
        {"recipe": "sa(heads=2, head_width=8, span=16) >> ff(16)", "position": "none"},
        {"accumulate": 2, "schedule": {"name": "plateau", "warmup": 3}},
    ),
    "lines": ({**LANGUAGE, "batching": "lines"}, {"recipe": "conv(k=3)"}, {"schedule": {"name": "cosine"}}),
}


def make_training(kind, folder):
    task, model, train = KINDS[kind]
    settings = {
        "model": {"d_model": 16, **model},
        "task": task,
        "train": {
            "optimizer": {"name": "adam", "lr": 0.01},
            "batch_size": 4,
            "epochs": EPOCHS,
            "steps_per_epoch": STEPS,
            **train,
        },
    }
    return Training.begin(TrialSettings.model_validate(settings), CPU, folder)


def finish(training):
    """Return the metrics of the remaining epochs, without speeds."""
    history = []
    while not training.finished:
        history.append({name: value for name, value in training.advance().items() if name != "tokens_per_s"})
    return history


def leave_after(training, steps):
    """Train this many steps in all, then interrupt; return the metrics of complete epochs."""
    history, taken = [], itertools.count(1)

    def leave():
        if next(taken) == steps:
            raise StoppedMidway

    with pytest.raises(StoppedMidway):
        while True:
            measured = training.advance(leave)
            history.append({name: value for name, value in measured.items() if name != "tokens_per_s"})
    return history


def carried(training, kind, folder):
    """Return the training restored from a file, as in another process."""
    assert training.can_be_saved
    file = io.BytesIO()
    torch.save(training.state(), file)
    file.seek(0)
    other = make_training(kind, folder)
    other.restore(torch.load(file, weights_only=True))
    return other


def bits(training):
    """Return the state without times: tensors as bytes, all else as text."""
    state = training.state()
    state["progress"] = [each for place, each in enumerate(state["progress"]) if place != 2]
    state["epoch"] = {name: value for name, value in state["epoch"].items() if name != "seconds"}
    return list(leaves(state))


def leaves(state, path=""):
    """Yield the leaves of a nested state with their paths."""
    if isinstance(state, torch.Tensor):
        yield path, state.dtype, state.shape, state.detach().reshape(-1).view(torch.uint8).numpy().tobytes()
    elif isinstance(state, dict | list | tuple):
        for name, each in state.items() if isinstance(state, dict) else enumerate(state):
            yield from leaves(each, f"{path}.{name}")
    else:
        yield path, str(state)


@pytest.fixture(autouse=True)
def _short_evaluations(monkeypatch):
    """Score pairs on a few symbols without generation, which would be a hundred times slower."""
    truncate = seq2seq._truncate
    monkeypatch.setattr(seq2seq, "_truncate", lambda split, _: truncate(split, 300))
    monkeypatch.setattr(seq2seq, "generate", lambda *_, **__: [])
    monkeypatch.setattr(seq2seq, "score_outputs", lambda *_: {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    with tiny_corpus(folder):
        yield folder


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.heavy] * (kind in ("stream", "varied"))) for kind in KINDS]
)
def test_a_training_left_between_steps_resumes_bit_for_bit(kind, folder):
    whole = make_training(kind, folder)
    history = finish(whole)
    for steps in LEFT_AFTER.get(kind, (STEPS + 2,)):
        first = make_training(kind, folder)
        before = leave_after(first, steps)
        rest = carried(first, kind, folder)
        assert (rest.epoch, rest.step) == ((steps - 1) // STEPS, steps)
        assert before + finish(rest) == history
        assert bits(rest) == bits(whole)


@pytest.mark.parametrize("kind", ["tagging", "drawn lengths", "regression", "seq2seq"])
def test_a_training_left_in_its_evaluation_is_evaluated_again(kind, folder, monkeypatch):
    whole = make_training(kind, folder)
    history = finish(whole)
    first = make_training(kind, folder)
    evaluate = first.objective.evaluate

    def interrupted(*arguments, **options):
        evaluate(*arguments, **options)
        raise StoppedMidway

    monkeypatch.setattr(first.objective, "evaluate", interrupted)
    with pytest.raises(StoppedMidway):
        first.advance()
    rest = carried(first, kind, folder)
    assert finish(rest) == history
    assert bits(rest) == bits(whole)


def test_a_training_left_within_a_step_cannot_be_saved(folder, monkeypatch):
    training = make_training("tagging", folder)

    def interrupted(_):
        raise StoppedMidway

    monkeypatch.setattr(torch.optim.Adam, "step", interrupted)
    with pytest.raises(StoppedMidway):
        training.advance()
    assert not training.can_be_saved


def test_the_time_of_an_epoch_in_pieces_is_that_of_its_pieces(folder):
    first = make_training("tagging", folder)
    leave_after(first, 2)
    before = first.work.seconds
    rest = carried(first, "tagging", folder)
    assert rest.work.seconds == before > 0
    rest.advance()
    assert rest.work.seconds > before
