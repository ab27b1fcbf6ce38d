"""The long-term problems: sequences by plain rules, and trainings that end once solved."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from activemem.engine.objectives.build import build_objective
from activemem.engine.tasks.long_term import LONG_TERM_PROBLEMS, draw_lengths
from activemem.engine.trial.training import Training
from activemem.studies.catalog.tasks import TOLERANCE
from activemem.studies.schema.settings import TrialSettings

CPU = torch.device("cpu")
TASKS = tuple(LONG_TERM_PROBLEMS)


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def settings(**changes):
    task = {"name": "recall_addition", "length": 12} | changes.pop("task", {})
    train = {"batch_size": 100, "epochs": 8, "steps_per_epoch": 20} | changes
    return TrialSettings.model_validate(
        {
            "model": {
                "recipe": "activation(act=leaky_relu) >> attention_pool >> dense(act=leaky_relu)",
                "d_model": 50,
                "norm": "none",
                "residual": False,
                "position": "none",
                "dropout": 0.0,
                "init": "he",
            },
            "task": task,
            "train": {"optimizer": {"name": "adam", "lr": 0.01}} | train,
        }
    )


def answer(name, row):
    """Return the target of one sequence from its marks."""
    one, other = (number for number, mark in row if mark == 1.0)
    return 0.5 + (one + other) / 4 if name == "recall_addition" else one * other


@pytest.mark.parametrize("shortest", [12, 50, 301])
@pytest.mark.parametrize("name", TASKS)
def test_a_sequence_has_its_marks_and_its_answer(name, shortest):
    longest, generator = shortest + shortest // 10, seeded(shortest)
    lengths = draw_lengths(shortest, longest, 200, generator)
    batch = LONG_TERM_PROBLEMS[name].batch(lengths, longest, generator)
    assert batch.inputs.shape == (200, longest, 2)
    assert set(batch.lengths.tolist()) <= set(range(shortest, longest + 1))
    for row, target, length in zip(*(each.tolist() for each in batch), strict=True):
        marks = [mark for _, mark in row]
        first, second = (place for place, mark in enumerate(marks) if mark == 1.0)
        assert [place for place, mark in enumerate(marks) if mark == -1.0] == [0, length - 1]
        assert marks.count(0.0) == longest - 4
        assert 1 <= first <= 9
        assert second < length // 2 or second <= 9
        assert row[length:] == [[0.0, 0.0]] * (longest - length)
        assert target == pytest.approx(answer(name, row), abs=1e-6)


@pytest.mark.parametrize(("name", "low"), [("recall_addition", -1.0), ("recall_multiplication", 0.0)])
def test_numbers_and_marks_are_spread_evenly(name, low):
    lengths = torch.full((20_000,), 60)
    inputs = LONG_TERM_PROBLEMS[name].batch(lengths, 60, seeded(1)).inputs
    numbers = inputs[..., 0]
    assert numbers.min() >= low
    assert numbers.max() < 1
    assert numbers.mean().item() == pytest.approx((low + 1) / 2, abs=0.01)
    marked = (inputs[..., 1] == 1).double().mean(0)  # how often each step has a mark
    assert marked[0] == marked[30:].sum() == 0
    # one mark on steps 1 to 9, the other on any of the 28 other steps of 1 to 29
    assert torch.allclose(marked[1:10], torch.tensor(1 / 9 + 8 / 9 / 28).double(), atol=0.015)
    assert torch.allclose(marked[10:30], torch.tensor(1 / 28).double(), atol=0.015)


def test_one_state_of_the_generator_gives_one_batch():
    generator = seeded(3)
    state = generator.get_state()
    one = LONG_TERM_PROBLEMS["recall_addition"].batch(torch.full((4,), 20), 20, generator)
    other = LONG_TERM_PROBLEMS["recall_addition"].batch(torch.full((4,), 20), 20, generator)
    generator.set_state(state)
    again = LONG_TERM_PROBLEMS["recall_addition"].batch(torch.full((4,), 20), 20, generator)
    assert all(left.equal(right) for left, right in zip(one, again, strict=True))
    assert not one.inputs.equal(other.inputs)


@pytest.mark.parametrize("name", TASKS)
def test_a_batch_is_the_same_while_products_are_in_half_precision(name):
    lengths = torch.full((4,), 5000)
    one = LONG_TERM_PROBLEMS[name].batch(lengths, 5000, seeded())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        other = LONG_TERM_PROBLEMS[name].batch(lengths, 5000, seeded())
    assert all(left.equal(right) for left, right in zip(one, other, strict=True))


def test_where_lengths_vary_each_batch_has_one_of_its_own():
    varied = build_objective(settings(batch_size=4, task={"length": 50, "variable": True}), CPU, Path())
    seen = []

    class Noting(torch.nn.Module):
        """A model that records its inputs and outputs nothing."""

        def forward(self, inputs, lengths):
            seen.append((len(inputs), inputs.shape[1], lengths.tolist()))
            return torch.zeros(len(inputs), 1)

    for _ in range(40):
        varied.begin_batch(1)
        varied.loss(Noting(), 0, 1)
    assert all(lengths == [longest] * 4 for _, longest, lengths in seen)
    drawn = {longest for _, longest, _ in seen}
    assert len(drawn) > 30
    assert 50 <= min(drawn) < 2000
    assert 8000 < max(drawn) <= 10_000
    seen.clear()
    varied.evaluate(Noting(), last=False)
    assert [(rows, longest) for rows, longest, _ in seen[:2]] == [(10, 50), (10, 150)]
    assert (len(seen), seen[-1][1]) == (100, 10_000)


class Knowing(torch.nn.Module):
    """A model that answers from the marks, with a given error on a given number of sequences."""

    def __init__(self, error=0.0, wrong=0):
        super().__init__()
        self.error, self.left = error, wrong

    def forward(self, inputs, lengths):
        answers = 0.5 + (inputs[..., 0] * (inputs[..., 1] == 1)).sum(1, keepdim=True) / 4
        errs = min(self.left, len(inputs))
        self.left -= errs
        answers[:errs] += self.error
        assert len(lengths) == len(inputs)
        return answers


def test_all_is_solved_when_every_test_sequence_is_right_and_not_before():
    task = build_objective(settings(), CPU, Path())
    one_wrong = task.evaluate(Knowing(error=TOLERANCE + 1e-3, wrong=1), last=False)
    assert one_wrong == {"accuracy": 0.999, "best_accuracy": 0.999}
    assert task.evaluate(Knowing(error=1.0, wrong=400), last=False) == {
        "accuracy": 0.6,
        "best_accuracy": 0.999,
    }
    assert not task.solved
    nearly = task.evaluate(Knowing(error=TOLERANCE - 1e-3, wrong=1000), last=False)
    assert nearly == {"accuracy": 1.0, "best_accuracy": 1.0, "solved_epochs": 3.0}
    assert task.solved


def test_zeros_after_a_sequence_are_left_out_or_read():
    told = []

    class Listening(Knowing):
        def forward(self, inputs, lengths):
            told.append(lengths)
            return super().forward(inputs, inputs)

    for padding in ("masked", "read"):
        task = build_objective(settings(task={"padding": padding}), CPU, Path())
        task.begin_batch(1)
        task.loss(Listening(), 0, 1)
        task.evaluate(Listening(), last=False)
    masked, read = told[: len(told) // 2], told[len(told) // 2 :]
    assert all(lengths is not None for lengths in masked)
    assert read == [None] * 11


@pytest.mark.heavy
def test_a_training_ends_when_all_is_right():
    training = Training.begin(settings(epochs=30, steps_per_epoch=300), CPU)
    while not training.finished:
        last = training.advance()
    assert last["accuracy"] == last["best_accuracy"] == 1.0
    assert last["solved_epochs"] == training.epoch < 30


def test_an_interrupted_training_resumes_bit_for_bit():
    whole, broken = (Training.begin(settings(), CPU) for _ in range(2))
    for _ in range(2):
        whole.advance()
        broken.advance()
    state, again = broken.state(), Training.begin(settings(), CPU)
    again.restore(state)
    for _ in range(2):
        left, right = whole.advance(), again.advance()
        assert {**left, "tokens_per_s": 0.0} == {**right, "tokens_per_s": 0.0}


def test_parts_of_a_batch_add_up_to_its_gradient():
    whole, parts = (Training.begin(settings(accumulate=count, steps_per_epoch=3), CPU) for count in (1, 4))
    assert whole.advance()["loss"] == pytest.approx(parts.advance()["loss"], rel=1e-4)


LONGEST = """
import torch

from activemem.engine.trial.outcome import peak_mib
from activemem.engine.trial.training import Training
from activemem.studies.study import load_study

torch.set_num_threads(1)
study = load_study("feedforward-attention", ["train.steps_per_epoch=2", "train.epochs=1"])
trial = next(each for each in study.cells if each.levels["length"] == 10_000 and POOL in each.levels["pool"])
Training.begin(trial.settings, torch.device("cpu")).advance()
print(peak_mib(torch.device("cpu")))
"""


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["attention_pool", "mean_pool"])
def test_a_hundred_sequences_of_ten_thousand_steps_take_less_than_a_gigabyte(pool):
    text = LONGEST.replace("POOL", repr(pool))
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert float(ran.stdout) < 2**10  # the program's own third of a gigabyte among them
