"""Conformance checks of tasks that draw their examples, both built-in and plug-in tasks.

    load_plugin("mqar.py")

    @pytest.mark.parametrize("check", CHECKS)
    def test_my_task_conforms(check):
        check(subject("mqar", vocab=32, length=16))

A check raises AssertionError if the drawn examples contradict the task's stated properties. Choose small
settings, with a few tokens and a few symbols, so that every case is drawn.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ...grammar import Reach
from ...plugins import loaded_files
from ...studies.catalog.tasks import (
    IGNORED,
    Examples,
    GeneratedTask,
    TaskError,
    TaskKind,
    TaskSizes,
    require_task,
)
from .generated import draw_examples, draw_test_set, example_faults, own_losses, random_outputs

EXAMPLES = 256
"""The number of examples to check."""

SHAPES_DRAWN = 5
"""The number of batches to check if the task states one shape for all batches."""

_SEEN_OFTEN = 20
"""The minimum number of occurrences before a symbol can count as determining targets."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A task to check: its settings, its draw function, and the properties that it states."""

    name: str
    settings: Mapping[str, Any]
    kind: TaskKind
    sizes: TaskSizes
    draw: Callable[[int], Examples]
    test_sets: Callable[[], Mapping[str, Examples]] = field(default=dict)
    solve: Callable[[Tensor], Tensor | None] = lambda _inputs: None
    reach: Reach | None = None
    losses: Callable[[Tensor, Tensor], Tensor | None] = lambda _outputs, _targets: None
    has_one_shape: bool = False


def subject(name: str, **settings: object) -> Subject:
    """Prepare a task for the checks.

    The settings are keys of a study's [task] table. Raise TaskError if the task does not draw its examples.
    """
    spec = require_task(name)
    task = spec.settings.model_validate({"name": name, **settings})
    if not isinstance(task, GeneratedTask):
        raise TaskError(f"{name}: expected a task that draws its examples")
    _ = task.interface
    return Subject(
        name=name,
        settings=settings,
        kind=spec.kind,
        sizes=task.sizes,
        draw=lambda seed: draw_examples(task, EXAMPLES, torch.Generator().manual_seed(seed)),
        test_sets=lambda: {each: draw_test_set(task, each) for each in task.test_sets()},
        solve=task.solve,
        reach=task.required_reach,
        losses=partial(own_losses, task),
        has_one_shape=task.has_one_shape,
    )


def seed_decides(task: Subject) -> None:
    """Check that the examples depend on the seed, and not on the global generator."""
    first = task.draw(1)
    # the check itself must not change torch's own generator
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        before = torch.get_rng_state()
        again, other = task.draw(1), task.draw(2)
        assert torch.get_rng_state().equal(before), "examples are drawn from torch's own generator"
    assert _digest(first) == _digest(again), "the same seed draws different examples"
    assert _digest(first) != _digest(other), "another seed draws the same examples"


def other_processes_draw_the_same(task: Subject) -> None:
    """Check that another process, with other string hashes and threads, draws the same examples.

    Both processes use the same seed.
    """
    files = [str(file.path) for file in loaded_files()]
    given = json.dumps([files, task.name, dict(task.settings)])
    done = subprocess.run(
        [sys.executable, "-c", _OTHER_PROCESS, given],
        env=os.environ | {"PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == digest_all(task), "another process draws different examples"


def examples_fit(task: Subject) -> None:
    """Check that examples fit the kind and the sizes of the task: types, shapes, symbols and padding."""
    for what, examples in {"the training": task.draw(1), **task.test_sets()}.items():
        # transduction uses the format of tagging
        kind = TaskKind.TAGGING if task.kind is TaskKind.TRANSDUCTION else task.kind
        faults = list(example_faults(kind, task.sizes, examples, None))
        assert not faults, f"{what}: {'; '.join(faults)}"
        assert len(examples.inputs), f"{what}: expected examples, got none"


def shapes_are_one(task: Subject) -> None:
    """Check that all inputs have the same length, without padding, if a task promises it."""
    if not task.has_one_shape:
        return
    drawn = [task.draw(seed) for seed in range(SHAPES_DRAWN)]
    assert all(examples.lengths is None for examples in drawn), "expected no lengths, got some"
    shapes = {tuple(examples.inputs.shape) for examples in drawn}
    listed = "; ".join(map(str, sorted(shapes)))
    assert len(shapes) == 1, f"expected batches of one shape, got {listed}"


def targets_vary(task: Subject) -> None:
    """Check that not all targets are the same."""
    targets = task.draw(1).targets
    assert len(targets[targets != IGNORED].unique()) > 1, "all targets are the same"


def split_is_fixed(task: Subject) -> None:
    """Check that a test set is the same each time it is drawn, and that no two test sets are equal."""
    first, again = task.test_sets(), task.test_sets()
    digests = {name: _digest(examples) for name, examples in first.items()}
    assert digests == {name: _digest(examples) for name, examples in again.items()}, "a test set has changed"
    assert len(set(digests.values())) == len(digests), "two test sets are the same"


def targets_are_solutions(task: Subject) -> None:
    """Check that a task's `solve` computes the scored targets from the inputs, whatever their padding."""
    inputs, targets, lengths = task.draw(1)
    solved, scored = task.solve(inputs), targets != IGNORED
    if solved is None:
        return
    assert solved[scored].equal(targets[scored]), "a target differs from the result of solve"
    if lengths is not None:
        # other symbols at the padding must not change a target
        padding = torch.arange(inputs.shape[1]) >= lengths[:, None]
        again = task.solve(torch.where(padding, inputs.roll(1, 0), inputs))
        assert again is not None
        assert again[scored].equal(targets[scored]), "padding affects a target"


def reach_is_needed(task: Subject) -> None:
    """Check that targets depend on inputs up to the stated reach, and no farther.

    The reach says how far to the left and to the right of a target the inputs affect it. Inputs beyond the
    reach must change no target, and inputs at the reach must change one. One input at a time is replaced by
    the input of another example at the same position.
    """
    inputs, targets, _ = task.draw(1)
    if task.reach is None or task.solve(inputs) is None:
        return
    left = right = 0
    for place in range(inputs.shape[1]):
        changed = inputs.clone()
        # inputs of other examples are sure to be valid at this position
        changed[:, place] = inputs[:, place].roll(1, 0)
        solved = task.solve(changed)
        assert solved is not None
        moved = ((solved != targets) & (targets != IGNORED)).any(0).nonzero().flatten().tolist()
        left = max([left, *(output - place for output in moved)])
        right = max([right, *(place - output for output in moved)])
    assert (left, right) == (task.reach.left, task.reach.right), (
        f"expected targets that depend on {task.reach.left:g} tokens to the left and {task.reach.right:g} "
        f"to the right as stated, got {left} and {right}"
    )


def no_nearer_token_gives_the_target_away(task: Subject) -> None:
    """Check that no single token nearer than the task's reach determines every target.

    Otherwise a model could solve the task with a shorter reach.
    """
    inputs, targets, _ = task.draw(1)
    if task.reach is None or task.sizes.columns is not None or targets.shape != inputs.shape:
        return
    length = inputs.shape[1]
    nearest, furthest = -min(task.reach.left, length), min(task.reach.right, length)
    for distance in range(int(nearest) + 1, int(furthest)):
        places = torch.arange(max(0, -distance), min(length, length - distance))
        asked = targets[:, places] != IGNORED
        side = "left" if distance < 0 else "right"
        seen, answers = inputs[:, places + distance][asked], targets[:, places][asked]
        assert not _decides(seen, answers), (
            f"the token {abs(distance)} to the {side} determines every target, "
            f"but is nearer than the stated reach of {task.reach.left:g} and {task.reach.right:g}"
        )


def losses_are_of_each_target(task: Subject) -> None:
    """Check that each target has a finite loss, which depends only on the output at this target."""
    outputs, targets = random_outputs(task.kind, task.sizes, task.draw(1).targets)
    losses = task.losses(outputs, targets)
    if losses is None:
        return
    assert losses.shape == targets.shape, f"expected losses {tuple(targets.shape)}, got {tuple(losses.shape)}"
    assert losses.isfinite().all(), "a loss is not a number"
    # the gradient shows on which outputs the first loss depends
    (moved,) = torch.autograd.grad(losses[0].sum(), outputs)
    assert moved[0].any(), "a token's output does not affect the loss of its target"
    assert not moved[1:].any(), "another token's output affects the loss of a target"


CHECKS = (
    seed_decides,
    other_processes_draw_the_same,
    examples_fit,
    shapes_are_one,
    targets_vary,
    split_is_fixed,
    targets_are_solutions,
    reach_is_needed,
    no_nearer_token_gives_the_target_away,
    losses_are_of_each_target,
)
"""All checks, in any order."""


def digest_all(task: Subject) -> str:
    """Return a digest of a task's training and test examples, to compare two processes."""
    return " ".join(map(_digest, (task.draw(1), *task.test_sets().values())))


_OTHER_PROCESS = """
import json, sys, torch
torch.set_num_threads(2)
from activemem.engine.tasks.conformance import digest_all, subject
from activemem.plugins import load_plugin
files, name, settings = json.loads(sys.argv[1])
for file in files:
    load_plugin(file)
print(digest_all(subject(name, **settings)))
"""


def _digest(examples: Examples) -> str:
    parts = [repr(part.tolist()) if part is not None else "-" for part in examples]
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def _decides(seen: Tensor, answers: Tensor) -> bool:
    if len(answers.unique()) < 2:
        return False
    often = [symbol for symbol in seen.unique().tolist() if int((seen == symbol).sum()) >= _SEEN_OFTEN]
    return bool(often) and all(len(answers[seen == symbol].unique()) == 1 for symbol in often)
