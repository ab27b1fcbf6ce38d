"""Required properties of plug-in tasks, and errors for invalid ones."""

import pytest
from pydantic import Field

from activemem import GeneratedTask, TaskSizes, register_task
from activemem.studies.catalog.tasks import TASKS, TaskError, TaskKind, check_statements, read_task_settings
from activemem.studies.text import InvalidTableError

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


def test_its_settings_are_those_of_its_class(small):
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
    assert sorted(problem.message for problem in caught.value.problems) == [
        "expected at least 1, got 0",
        "unknown key 'sise' of small; nearest: size",
    ]


def test_sizes_that_do_not_fit_its_kind_are_reported(small):
    with pytest.raises(TaskError) as caught:
        _ = Small(name="small", columns=2).interface
    assert str(caught.value) == (
        "small: expected only vocab, because this task has symbols only, got vocab, columns"
    )


def test_a_test_set_has_a_name_that_a_metric_can_have_as_its_index(small):
    check_statements(Small(name="small", sets=("8", "10-20", "long_ones")))
    with pytest.raises(TaskError, match=r"expected letters, .* in the name of a test set, got 'a b'"):
        check_statements(Small(name="small", sets=("a b",)))


class Bare(GeneratedTask):
    size: int
    """the vocabulary size"""
    other: int = 3


def test_everything_that_a_class_lacks_is_reported_together():
    with pytest.raises(ValueError) as caught:
        register_task("bare", kind="tagging", **ABOUT)(Bare)
    assert str(caught.value) == (
        "Bare: expected a definition of draw; Bare: expected a definition of sizes; "
        "other: expected a docstring below it; size: expected a default"
    )
    with pytest.raises(
        ValueError, match="expected a kind of task among tagging, causal_tagging, regression, got"
    ):
        register_task("bare", kind="vision", **ABOUT)
    with pytest.raises(ValueError, match="expected a class derived from GeneratedTask, got <class 'int'>"):
        register_task("bare", kind="tagging", **ABOUT)(int)
