"""Every generated task conforms, and the suite detects violations."""

from dataclasses import replace
from itertools import count
from typing import ClassVar, get_args

import pytest
import torch

from activemem import IGNORED, Examples, GeneratedTask, Reach, TaskSizes, register_task
from activemem.engine.tasks import conformance
from activemem.engine.tasks.conformance import CHECKS, other_processes_draw_the_same, subject
from activemem.studies.catalog.tasks import (
    TASKS,
    AlgorithmicTask,
    DegradationProblem,
    LongTermSettings,
    SyntheticTask,
    require_task,
    task_names,
)
from activemem.studies.catalog.tasks.synthetic import ChomskySettings, MadSettings

from ...registry_entries import replace_entry
from .own_subjects import own_subject

DRAWN = [
    name
    for name in task_names()
    if isinstance(require_task(name), AlgorithmicTask | DegradationProblem)
    or require_task(name).settings is LongTermSettings
]
SYNTHETIC = {
    "parity": {"lengths": [3, 9], "test_lengths": [12, 15]},
    "modular_arithmetic": {"lengths": [3, 9], "test_lengths": [11, 13]},
    "word_problem": {"lengths": [2, 6], "test_lengths": [7]},
    "chomsky_hierarchy": {"lengths": [1, 6], "test_lengths": [7, 8]},
    "induction_heads": {"lengths": [3, 9], "vocab": 4, "test_lengths": [12]},
    "listops": {"lengths": [4, 12], "test_lengths": [20]},
    "mad": {"length": 16, "train_examples": 300},
    "needle": {"lengths": [20, 30], "test_lengths": [35]},
    "mqar": {"vocab": 32, "length": 16, "pairs": 3, "tests": [[16, 2], [20, 3]]},
}
"""The built-in generated tasks with small settings."""
QUICK = [check for check in CHECKS if check is not other_processes_draw_the_same]


@pytest.mark.parametrize("name", DRAWN)
def test_an_included_task_conforms(name, monkeypatch):
    spec = require_task(name)
    if isinstance(spec, DegradationProblem):
        replace_entry(TASKS, name, replace(spec, sequences=400, test_sequences=40))
    small = {"vocab": 12} if "vocab" in spec.keys and spec.vocab > 3 else {}
    for check in QUICK:
        check(own_subject(name, **small))


def test_each_synthetic_task_is_looked_at():
    assert set(SYNTHETIC) == {
        name for name in task_names() if issubclass(require_task(name).settings, SyntheticTask)
    }


@pytest.mark.parametrize("length", [5, 6, 11])
@pytest.mark.parametrize("name", [name for name, keys in SYNTHETIC.items() if "lengths" in keys])
def test_a_synthetic_task_of_one_length_has_batches_of_one_shape(name, length):
    length += 20 if name == "needle" else 0
    drawn = subject(name, **SYNTHETIC[name] | {"lengths": [length, length], "test_lengths": []})
    assert drawn.has_one_shape
    conformance.shapes_are_one(drawn)


@pytest.mark.parametrize("problem", get_args(MadSettings.model_fields["problem"].annotation))
def test_mad_has_batches_of_one_shape(problem):
    drawn = subject("mad", problem=problem, vocab=24, length=40, train_examples=300)
    assert drawn.has_one_shape
    conformance.shapes_are_one(drawn)


@pytest.mark.parametrize("problem", get_args(ChomskySettings.model_fields["problem"].annotation))
def test_the_chomsky_hierarchy_has_batches_of_one_shape_at_one_length(problem):
    drawn = subject("chomsky_hierarchy", problem=problem, lengths=[6, 6])
    assert drawn.has_one_shape
    conformance.shapes_are_one(drawn)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_synthetic_task_conforms(name):
    for check in QUICK:
        check(subject(name, **SYNTHETIC[name]))


@pytest.mark.parametrize("name", ["parity", pytest.param("mqar", marks=pytest.mark.heavy)])
def test_another_process_draws_the_same(name):
    other_processes_draw_the_same(subject(name, **SYNTHETIC[name]))


class Flawed(GeneratedTask):
    flaw: str = ""
    """the kind of flaw"""
    drawn: ClassVar = count()

    @property
    def sizes(self):
        return TaskSizes(tokens=6, vocab=4)

    @property
    def has_one_shape(self):
        return self.flaw in ("", "shape", "lengths")

    @property
    def required_reach(self):
        return Reach(left=3 if self.flaw == "nearer" else 2, right=0)

    def draw(self, count, generator):
        given = None if self.flaw == "global" else generator
        inputs = torch.randint(4, (count, 6), generator=generator)
        if self.flaw == "global":
            inputs = torch.randint(4, (count, 6), generator=given)
        targets = self.solve(inputs)
        if self.flaw == "target":
            targets[0, 5] = (targets[0, 5] + 1) % 4
        if self.flaw == "constant":
            targets[:] = 1
        if self.flaw == "shape":
            shorter = 5 + int(inputs[0, 0]) % 2
            return Examples(inputs[:, :shorter], targets[:, :shorter])
        if self.flaw == "lengths":
            return Examples(inputs, targets, torch.full((count,), 6))
        if self.flaw == "hash":
            inputs[:, 0] = hash("word") % 4
        return Examples(inputs, targets)

    def test_sets(self):
        if self.flaw == "fixed":
            return {"only": lambda _generator: self.draw(20, torch.Generator().manual_seed(next(self.drawn)))}
        return {"same": lambda _generator: self.draw(20, torch.Generator().manual_seed(4))}

    def solve(self, inputs):
        back = 3 if self.flaw == "reach" else 2
        targets = (inputs.roll(back, 1) + (0 if self.flaw == "nearer" else inputs)) % 4
        targets[:, :back] = IGNORED
        return targets


@pytest.fixture
def flawed():
    """Register a task with a flaw during a test."""
    register_task("flawed", kind="causal_tagging", summary="x", source="here")(Flawed)
    yield
    TASKS.unregister("flawed")


def test_a_task_without_flaws_conforms(flawed):
    for check in QUICK:
        check(subject("flawed"))


@pytest.mark.parametrize(
    ("flaw", "check"),
    [
        ("global", "seed_decides"),
        ("shape", "shapes_are_one"),
        ("lengths", "shapes_are_one"),
        ("target", "targets_are_solutions"),
        ("constant", "targets_vary"),
        ("fixed", "split_is_fixed"),
        ("reach", "reach_is_needed"),
        ("nearer", "reach_is_needed"),
        ("nearer", "no_nearer_token_gives_the_target_away"),
    ],
)
def test_a_flaw_is_found(flawed, flaw, check, golden):
    with golden.raises(AssertionError):
        getattr(conformance, check)(subject("flawed", flaw=flaw))
