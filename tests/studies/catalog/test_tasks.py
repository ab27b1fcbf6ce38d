"""The tasks in studies: sizes, lengths, and limits by required reach."""

import math

import pytest

from activemem import Reach
from activemem.studies.catalog.tasks import (
    TASKS,
    AlgorithmicTask,
    TaskError,
    read_task_settings,
    require_task,
    task_names,
)
from activemem.studies.text.strict_model import InvalidTableError

FOUR_CONVOLUTIONS = Reach(left=36, right=40)  # 4 * (conv(k=20) >> ff(512)), bidirectional
ALGORITHMIC = [name for name in task_names() if isinstance(TASKS.get(name), AlgorithmicTask)]


def test_the_tasks_are_those_of_the_paper_and_of_its_program():
    assert task_names() == (
        "addition",
        "and",
        "chomsky_hierarchy",
        "copy",
        "duplicate",
        "filter",
        "induction_heads",
        "language_model",
        "listops",
        "mad",
        "modular_arithmetic",
        "mqar",
        "multiply",
        "nand",
        "needle",
        "nor",
        "not",
        "or",
        "parity",
        "parsing",
        "recall_addition",
        "recall_multiplication",
        "remember",
        "reverse",
        "reverse_copy",
        "reverse_copy_bigrams",
        "reverse_copy_frequent_bigrams",
        "reverse_copy_repeats",
        "sequence_classification",
        "sequence_regression",
        "sort",
        "token_classification",
        "translation",
        "word_problem",
        "xnor",
        "xor",
    )


@pytest.mark.parametrize(
    ("name", "vocab", "step"),
    [
        ("reverse", 100, 1),
        ("sort", 20, 1),
        ("not", 3, 1),
        ("remember", 20, 1),
        ("addition", 3, 2),
        ("multiply", 3, 2),
    ],
)
def test_vocabulary_and_growth_are_the_papers(name, vocab, step):
    spec = require_task(name)
    assert (spec.vocab, spec.start, spec.length_step) == (vocab, 5, step)


def test_every_length_of_a_curriculum_is_one_that_the_task_can_have():
    for name in ALGORITHMIC:
        spec = require_task(name)
        for length in range(spec.start, spec.start + 100 * spec.length_step, spec.length_step):
            spec.check_length(length)


@pytest.mark.parametrize("name", ALGORITHMIC)
def test_only_remember_and_duplicate_have_sequences_of_twice_the_length(name):
    assert require_task(name).sequence_length(7) == (14 if name in {"remember", "duplicate"} else 7)


def test_an_unknown_task_is_an_error_that_names_the_nearest():
    assert TASKS.get("revers") is None
    with pytest.raises(TaskError) as caught:
        require_task("revers")
    assert str(caught.value) == "unknown task 'revers'; nearest: reverse"


def test_an_unknown_task_that_is_like_none_is_an_error_that_names_all():
    with pytest.raises(TaskError) as caught:
        require_task("xyz")
    assert str(caught.value) == f"unknown task 'xyz'; known: {', '.join(sorted(TASKS))}"


@pytest.mark.parametrize(
    ("name", "length"),
    [
        ("addition", 6),
        ("multiply", 3),
        ("reverse", 0),
    ],
)
def test_a_length_that_a_task_cannot_have_is_refused(name, length, golden):
    with golden.raises(TaskError):
        require_task(name).check_length(length)


def test_a_name_is_given_once(golden):
    with golden.raises(ValueError):
        TASKS.register("sort", require_task("sort"))


@pytest.mark.parametrize(
    ("name", "ceiling"),
    [
        ("remember", 36),  # where the paper's convolutions stop
        ("duplicate", 36),
        ("reverse", 37),
        ("sort", 49),
        ("addition", 71),
        ("multiply", 71),
        ("not", None),
        ("copy", None),
        ("xor", None),
    ],
)
def test_ceilings_of_the_papers_convolutions(name, ceiling):
    assert require_task(name).max_learnable_length(FOUR_CONVOLUTIONS) == ceiling


@pytest.mark.parametrize("name", ALGORITHMIC)
def test_a_model_that_sees_everything_has_no_ceiling(name):
    assert require_task(name).max_learnable_length(Reach(left=math.inf, right=math.inf)) is None


def test_a_model_that_hides_the_future_cannot_reverse_and_can_still_remember():
    hidden = Reach(left=math.inf, right=0)
    assert require_task("reverse").max_learnable_length(hidden) == 1
    assert require_task("addition").max_learnable_length(hidden) == 0
    assert require_task("remember").max_learnable_length(hidden) is None


@pytest.mark.parametrize("name", ALGORITHMIC)
def test_the_unguessable_reach_grows_with_the_length(name):
    spec = require_task(name)
    lengths = range(spec.min_length, 300, 2 if spec.odd_lengths_only else 1)
    certain = [spec.unguessable_reach(length) for length in lengths]
    assert [part.left for part in certain] == sorted(part.left for part in certain)
    assert [part.right for part in certain] == sorted(part.right for part in certain)


def test_a_task_has_the_requested_number_of_symbols_and_the_papers_number_is_the_default():
    for vocab, count, kept in ((None, 20, None), (20, 20, None), (50, 50, 50)):
        settings = read_task_settings({"name": "sort", "vocab": vocab})
        assert (settings.interface.model.vocab, settings.vocab) == (count, kept)
    with pytest.raises(InvalidTableError, match="vocab"):
        read_task_settings({"name": "addition", "vocab": 20})


@pytest.mark.parametrize(
    "task",
    [
        {"test_examples": 7},
        {"test_lengths": [50, 50]},
        {"test_lengths": [0]},
        {"test_lengths": 50},
        {"test_lengths": {"first": 9, "last": 5}},
        {"test_lengths": {"first": 1, "last": 1 << 20}},
        {"name": "addition", "test_lengths": {"first": 41, "last": 50, "step": 3}},
    ],
    ids=str,
)
def test_lengths_that_cannot_be_tested_are_reported(task, golden):
    with pytest.raises(InvalidTableError) as caught:
        read_task_settings({"name": "sort", **task})
    golden(str(caught.value).removeprefix(": "))


def test_lengths_of_a_range_and_a_list_of_them_are_the_same():
    asked = ({"first": 41, "last": 101, "step": 30}, [41, 71, 101])
    first, second = (read_task_settings({"name": "addition", "test_lengths": each}) for each in asked)
    assert first == second
