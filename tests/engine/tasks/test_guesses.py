"""The accuracy that a task states for a guess is that of the best fixed answer to drawn examples."""

import pytest
import torch

from activemem.engine.tasks.algorithmic import get_task
from activemem.engine.tasks.long_term import LONG_TERM_PROBLEMS
from activemem.engine.tasks.memory_degradation import generate_splits
from activemem.studies.catalog.tasks import (
    TASKS,
    TOLERANCE,
    AlgorithmicTask,
    DegradationProblem,
    read_task_settings,
    require_task,
    task_names,
)

PROBLEMS = [name for name in task_names() if isinstance(require_task(name), DegradationProblem)]
KNOWN = [name for name in task_names() if getattr(TASKS[name], "chance", None) is not None]


def seeded():
    return torch.Generator().manual_seed(0)


def best_answer(targets):
    """Return the share of targets that the most frequent target of each position gets right."""
    return sum(column.bincount().max().item() for column in targets.T) / targets.numel()


@pytest.mark.parametrize("name", KNOWN)
def test_the_guess_of_an_algorithmic_task_is_its_most_frequent_symbol(name):
    assert isinstance(TASKS[name], AlgorithmicTask)
    task = read_task_settings({"name": name})
    targets = get_task(name).batch(20_000, 8, seeded(), vocab=task.symbols).targets
    for metric in ("accuracy", "dev_accuracy", "test_accuracy"):
        assert task.guessed_value(metric) == pytest.approx(best_answer(targets), abs=0.01)
    assert (task.guessed_value("max_length"), task.guessed_value("dev_exact")) == (0.0, None)


@pytest.mark.parametrize("name", sorted(LONG_TERM_PROBLEMS))
def test_the_guess_of_a_long_term_problem_is_the_best_number(name):
    lengths = torch.full((20_000,), 12)
    targets = LONG_TERM_PROBLEMS[name].batch(lengths, 12, seeded()).targets
    shares = [((targets - each).abs() < TOLERANCE).double().mean() for each in torch.linspace(0, 1, 101)]
    task = read_task_settings({"name": name})
    for metric in ("accuracy", "best_accuracy"):
        assert task.guessed_value(metric) == pytest.approx(max(shares).item(), abs=0.01)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_guess_of_a_toy_problem_knows_the_ends_of_its_sequences(name):
    problem, target = require_task(name), generate_splits(require_task(name), seed=0).test.target
    ends, symbols = len(target.line_lengths), target.tokens.numel() - len(target.line_lengths)
    expected = (ends + symbols / problem.symbols) / (ends + symbols)
    assert read_task_settings({"name": name}).guessed_value("test_accuracy") == pytest.approx(
        expected, abs=0.01
    )


@pytest.mark.parametrize(
    ("task", "metric", "guess"),
    [
        ({"name": "sort"}, "dev_accuracy", None),
        ({"name": "addition"}, "max_length", 0.0),
        ({"name": "parity"}, "dev_accuracy", 0.5),
        ({"name": "parity"}, "dev_scaled_accuracy", 0.0),
        ({"name": "parity"}, "dev_loss", None),
        ({"name": "parity", "test_lengths": [50]}, "test_accuracy", 0.5),
        ({"name": "parity"}, "test_accuracy", None),  # without a test set
        ({"name": "language_model", "corpus": "text8"}, "dev_loss", 2.854),
        ({"name": "language_model", "corpus": "text8"}, "test_bpc", 4.117),
        ({"name": "language_model", "corpus": "text8", "tokens": "bpe"}, "test_bits_per_byte", None),
        ({"name": "translation", "corpus": "multi30k-en-fr", "tokens": "words"}, "bleu", None),
    ],
)
def test_a_guess_is_known_of_alphabets_and_letters_or_else_nothing_is_said(task, metric, guess):
    found = read_task_settings(task).guessed_value(metric)
    assert found == (guess if guess is None else pytest.approx(guess, abs=1e-3))
