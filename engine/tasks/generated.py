"""Drawing of examples for built-in and plug-in tasks, each checked before a model sees it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Generator, Tensor

from ...errors import argument_fault, check_arguments
from ...plugins import plugin_errors
from ...studies.catalog.tasks import (
    IGNORED,
    Draw,
    Examples,
    GeneratedTask,
    TaskError,
    TaskKind,
    TaskSizes,
)
from ..core.process import derive_seed

_TEST_SEED = 0
"""The seed of test splits, which are the same for every trial."""

_SHOWN, _SHOWN_LAST = 64, 16
"""The maximum number of values to show of an example, and how many of these are the last ones."""


def draw_examples(task: GeneratedTask, count: int, generator: Generator) -> Examples:
    """Draw training examples of a task. Raise TaskError if they do not fit the task's kind and sizes."""
    return _checked(task, partial(task.draw, count), generator, count)


def draw_dev(task: GeneratedTask, generator: Generator) -> Examples:
    """Draw the dev examples of a task."""
    count = task.dev_examples
    return _checked(task, partial(task.draw_dev, count), generator, count)


def draw_test_set(task: GeneratedTask, name: str) -> Examples:
    """Draw the test set of this name. It is the same at each call."""
    generator = torch.Generator().manual_seed(derive_seed(_TEST_SEED, f"test set {name} of {task.name}"))
    return _checked(task, task.test_sets()[name], generator, None)


def random_outputs(kind: TaskKind, sizes: TaskSizes, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return random outputs and the scored ones of these targets, in the shapes that a loss gets."""
    if kind is TaskKind.REGRESSION:
        targets = targets.squeeze(-1)
        shape = tuple(targets.shape)
    else:
        assert sizes.vocab is not None, "a tagging task has a vocabulary"
        targets = targets[targets != IGNORED]
        shape = (len(targets), sizes.vocab)
    return torch.randn(shape, generator=torch.Generator().manual_seed(2)).requires_grad_(), targets


def own_losses(task: GeneratedTask, outputs: Tensor, targets: Tensor) -> Tensor | None:
    """Return the loss of each target if the task defines `losses`, or else None.

    Raise PluginError if its `losses` raises an exception or returns no tensor.
    """
    if type(task).losses is GeneratedTask.losses:
        return None
    with plugin_errors("task", task.name, type(task)):
        losses: object = task.losses(outputs, targets)
        if not isinstance(losses, Tensor):
            raise TypeError(
                f"losses: expected a tensor, got {type(losses).__name__}; a task has the default loss of its "
                "kind if it does not define losses"
            )
        return losses


def show_example(task: GeneratedTask) -> tuple[list[str], list[str]]:
    """Return the tokens of an input and of its target as texts.

    A · marks a target that is not scored. Of a long row, only the beginning and the end are returned, with …
    between.
    """
    check_arguments(argument_fault("task", task, GeneratedTask), error=TaskError)
    try:
        inputs, targets, _ = draw_examples(task, 1, torch.Generator().manual_seed(_TEST_SEED))
    except TaskError:
        raise
    except Exception as error:  # whatever a plug-in raises is reported as its fault
        raise TaskError(f"{task.name}: draw: {type(error).__name__}: {error}") from error
    return _words(inputs[0]), _words(targets[0])


def _words(row: Tensor) -> list[str]:
    words = ["·" if word == IGNORED else f"{word:g}" for word in row.flatten().tolist()]
    return words if len(words) <= _SHOWN else [*words[: _SHOWN - _SHOWN_LAST], "…", *words[-_SHOWN_LAST:]]


def _checked(task: GeneratedTask, draw: Draw, generator: Generator, count: int | None) -> Examples:
    with plugin_errors("task", task.name, type(task)):
        examples = Examples(*draw(generator))
    found = example_faults(task.spec.kind, task.sizes, examples, count)
    if faults := [f"  {fault}" for fault in found]:
        raise TaskError("\n".join([f"{task.name} has drawn invalid examples", *faults]))
    return examples


def example_faults(kind: TaskKind, sizes: TaskSizes, examples: Examples, count: int | None) -> Iterator[str]:
    """Yield error messages for examples that do not fit the kind or the sizes of a task.

    `count` is the expected number of examples; None means any number.
    """
    inputs, targets, lengths = examples
    rows = len(inputs)
    if count is not None and rows != count:
        yield f"expected {count} examples, got {rows}"
    if sizes.columns is None:
        yield from _symbol_faults("inputs", inputs, (rows, None), sizes.vocab)
    else:
        yield from _number_faults("inputs", inputs, (rows, None, sizes.columns))
    if kind is TaskKind.REGRESSION:
        yield from _number_faults("targets", targets, (rows, sizes.targets))
    else:
        asked = targets[targets != IGNORED] if targets.shape == inputs.shape else targets
        yield from _symbol_faults("targets", targets, tuple(inputs.shape), None)
        yield from _symbol_faults("targets", asked, (None,) * asked.dim(), sizes.vocab)
        if not asked.numel():
            yield "expected scored targets, got none"
    if lengths is not None:
        yield from _length_faults(examples, padded_targets=kind is not TaskKind.REGRESSION)


def _symbol_faults(
    what: str, found: Tensor, shape: tuple[int | None, ...], vocab: int | None
) -> Iterator[str]:
    if fault := _form_fault(what, found, shape, torch.int64):
        yield fault
    elif vocab is not None and found.numel():
        low, high = int(found.min()), int(found.max())
        if low < 0 or high >= vocab:
            yield f"expected {what} of 0 to {vocab - 1}, got {low} to {high}"


def _number_faults(what: str, found: Tensor, shape: tuple[int | None, ...]) -> Iterator[str]:
    if fault := _form_fault(what, found, shape, torch.float32):
        yield fault
    elif not found.isfinite().all():
        yield f"expected {what} that are finite numbers"


def _form_fault(what: str, found: Tensor, shape: tuple[int | None, ...], kind: torch.dtype) -> str | None:
    fits = found.dim() == len(shape) and all(
        size in (None, got) for size, got in zip(shape, found.shape, strict=True)
    )
    if fits and found.dtype is kind and found.device.type == "cpu":
        return None
    sizes = ", ".join("…" if size is None else str(size) for size in shape)
    got = ", ".join(map(str, found.shape))
    return (
        f"expected {what} ({sizes}) of {_name(kind)} on the CPU, "
        f"got ({got}) of {_name(found.dtype)} on {found.device}"
    )


def _length_faults(examples: Examples, *, padded_targets: bool) -> Iterator[str]:
    inputs, targets, lengths = examples
    assert lengths is not None
    if fault := _form_fault("lengths", lengths, (len(inputs),), torch.int64):
        yield fault
        return
    if not ((lengths >= 1) & (lengths <= inputs.shape[1])).all():
        yield f"expected lengths of 1 to {inputs.shape[1]}, got {int(lengths.min())} to {int(lengths.max())}"
    padding = torch.arange(inputs.shape[1]) >= lengths[:, None]
    if padded_targets and targets.shape == padding.shape and (targets[padding] != IGNORED).any():
        yield f"expected targets of {IGNORED} at padding, got others"


def _name(kind: torch.dtype) -> str:
    return str(kind).removeprefix("torch.")
