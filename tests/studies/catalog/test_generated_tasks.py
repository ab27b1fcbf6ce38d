"""Required properties of plug-in tasks, and errors for invalid ones."""

import pytest
from pydantic import Field

from activemem import GeneratedTask, TaskSizes, register_task
from activemem.studies.catalog.tasks import TASKS, TaskError, TaskKind, check_statements, read_task_settings
from activemem.studies.text.strict_model import InvalidTableError

ABOUT = {"summary": "x to y", "source": "here"}


class Small(GeneratedTask):
    size: int = Field(default=3, ge=1)
    """the vocabulary size"""
    columns: int | None = None
    """the number of input numbers per token"""
    sets: tuple[str, ...] = Field(default=(), strict=False)
    """the test sets"""

    @property
    def sizes(self):
        return TaskSizes(tokens=4, vocab=self.size, columns=self.columns)

    def draw(self, count, generator):
        raise NotImplementedError

    def test_sets(self):
        return dict.fromkeys(self.sets, self.draw)


@pytest.fixture
def small():
    """Register a task during a test."""
    register_task("small", kind="causal_tagging", **ABOUT)(Small)
    yield
    TASKS.unregister("small")


def test_its_settings_are_those_of_its_class(small, golden):
    settings = read_task_settings({"name": "small", "size": 5})
    assert isinstance(settings, Small)
    assert (settings.spec.kind, settings.interface.model.vocab) == (TaskKind.CAUSAL_TAGGING, 5)
    assert settings.interface.model.causal
    assert settings.spec.keys == {
        "dev_examples": "the number of examples that are scored after each epoch, drawn like the "
        "training examples",
        "size": "the vocabulary size",
        "columns": "the number of input numbers per token",
        "sets": "the test sets",
    }
    with pytest.raises(InvalidTableError) as caught:
        read_task_settings({"name": "small", "size": 0, "sise": 2})
    golden(sorted(problem.message for problem in caught.value.problems))


@pytest.mark.parametrize("name", ["parity", "chomsky_hierarchy", "listops", "induction_heads", "needle"])
def test_lengths_have_a_maximum_whatever_their_default(name):
    with pytest.raises(InvalidTableError, match=r"^lengths\.1: expected at most 1048576, got 1048577$"):
        read_task_settings({"name": name, "lengths": [40, (1 << 20) + 1]})


def test_sizes_that_do_not_fit_its_kind_are_reported(small, golden):
    with golden.raises(TaskError):
        _ = Small(name="small", columns=2).interface


def test_a_test_set_has_a_name_that_a_metric_can_have_as_its_index(small, golden):
    check_statements(Small(name="small", sets=("8", "10-20", "long_ones")))
    with golden.raises(TaskError):
        check_statements(Small(name="small", sets=("a b",)))


class Guessed(Small):
    guess: float = 0.5
    """the share of targets that a guess gets right"""

    tested: float = 0.5
    """that in the test sets"""

    @property
    def chance(self):
        return self.guess

    def chance_in_test(self, name=""):
        return self.tested


def test_a_chance_is_a_share_below_1():
    register_task("guessed", kind="tagging", **ABOUT)(Guessed)
    try:
        check_statements(Guessed(name="guessed", guess=0.0))
        expected = r"^guessed: expected a chance of at least 0 and below 1, got 1\.0$"
        for key in ("guess", "tested"):
            with pytest.raises(TaskError, match=expected):
                check_statements(Guessed(name="guessed", **{key: 1.0}))
    finally:
        TASKS.unregister("guessed")


class Bare(GeneratedTask):
    size: int
    """the vocabulary size"""
    other: int = 3


def test_everything_that_a_class_lacks_is_reported_together(golden):
    with golden.raises(ValueError):
        register_task("bare", kind="tagging", **ABOUT)(Bare)
    with golden.raises(ValueError):
        register_task("bare", kind="vision", **ABOUT)
    with golden.raises(ValueError):
        register_task("bare", kind="tagging", **ABOUT)(int)
