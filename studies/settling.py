"""From a template and values to the settings of one trial, or all that is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isinf

from ..grammar import RecipeError, render
from ..grammar.nodes import Block, Node, Series, walk
from ..grammar.roles import OTHER_LENGTH, SEQUENCE, VECTOR, output
from ..grammar.vocabulary import Context, lookup
from .corpora import CorpusError
from .demands import demand
from .factors import SEED
from .settings import Level, Settings, read_recipe
from .tasks import AlgorithmicTask, Kind, TaskError, require_task
from .template import RECIPE, Template
from .wording import Problem, ProblemsError, checked

_NEEDS = {Kind.REGRESSION: VECTOR, Kind.TRANSDUCTION: OTHER_LENGTH}
_CURES = {
    SEQUENCE: "take its parts, as in 4 * (sa >> ff(512))",
    VECTOR: "end it in a pool, as in sa >> mean_pool",
    OTHER_LENGTH: "take a whole model, as in seq2seq(lstm, lstm)",
}
_STAND_IN = "sa"  # for a recipe that is wrong, so that all else is checked too


def settle(template: Template, values: Mapping[str, Level]) -> Settings:
    """The settings of the trial that has these values; ProblemsError with all that is wrong with it.

    `values` has a level for every hole, and for every dimension that is to be settled. A wrong recipe does
    not keep the other tables from being checked.
    """
    tables = template.fill(values)
    problems: list[Problem] = []
    if RECIPE in template.texts:
        try:
            tables["model"]["recipe"] = template.recipe(values)
        except RecipeError as error:
            problems += [Problem(RECIPE, fault.message) for fault in error.faults]
            tables["model"]["recipe"] = _STAND_IN
    try:
        settings = checked(Settings, {**tables, SEED: values.get(SEED, 0)})
    except ProblemsError as error:
        raise ProblemsError((*problems, *error.problems)) from error
    problems += _mismatches(settings)
    if problems:
        raise ProblemsError(tuple(problems))
    return settings


def _mismatches(settings: Settings) -> Iterator[Problem]:
    """What fits each table but not all of them together: what the task cannot take, or does not find."""
    task, root = require_task(settings.task.name), read_recipe(settings.model.recipe).root
    gives, needs = output(root), _NEEDS.get(task.kind, SEQUENCE)
    if gives != needs:
        cure = "leave the pool out" if gives == VECTOR and needs == SEQUENCE else _CURES[needs]
        yield Problem(RECIPE, f"{_odd(root, gives)} gives {gives}, but {task.name} needs {task.kind}: {cure}")
    elif task.kind is Kind.LANGUAGE:
        yield from _leaks(settings, root)
    elif settings.task.coverage_penalty and _covers_nothing(root):
        unseen = f"{render(root)} attends to no source, so that nothing is covered"
        yield Problem(("task", "coverage_penalty"), f"{unseen}: leave it out, or give it an attention")
    yield from _lengths(settings)


def _leaks(settings: Settings, root: Node) -> Iterator[Problem]:
    """Blocks that a causal task cannot take: they see the future, or more past than a stream can hold."""
    surroundings = Context(width=settings.model.d_model, length=1, causal=True)
    for name, block in {render(one): one for one in walk(root) if isinstance(one, Block)}.items():
        spec = lookup(block.name)
        assert spec is not None, f"{block.name} has left the vocabulary"
        values = spec.settings(block)
        reach = spec.reach(values, surroundings)
        if reach.right:
            yield Problem(RECIPE, f"{name} sees later tokens, which {settings.task.name} asks for")
        elif (
            settings.task.batching == "stream" and isinf(reach.left) and spec.cost(values, surroundings).state
        ):
            unbounded = f"{name} sees all of the past, and a stream has no beginning"
            yield Problem(RECIPE, f'{unbounded}: give it a span, or read lines (batching = "lines")')


def _covers_nothing(root: Node) -> bool:
    """Whether a whole model is an encoder and a decoder without attention weights to look at."""
    return isinstance(root, Block) and root.name == "seq2seq" and "attention" not in dict(root.arguments)


def _lengths(settings: Settings) -> Iterator[Problem]:
    """A curriculum that the task needs and has not, or cannot have; a corpus that is missing."""
    task, curriculum = require_task(settings.task.name), settings.train.curriculum
    place = ("train", "curriculum")
    try:
        demand(settings.task)
    except CorpusError as error:
        yield Problem(("task", "corpus"), str(error))
    if not isinstance(task, AlgorithmicTask):
        if curriculum is not None:
            yield Problem(place, f"{task.name} has no lengths that grow: leave it out")
    elif curriculum is None:
        yield Problem(place, f"{task.name} needs the length that it begins with, as in {{ start = 5 }}")
    else:
        try:
            task.check(curriculum.start)
        except TaskError as error:
            yield Problem((*place, "start"), str(error))


def _odd(root: Node, gives: str | None) -> str:
    """The part of a recipe that makes its output what it is: the one that pools, or the first block."""
    parts = root.parts if isinstance(root, Series) else (root,)
    if gives == VECTOR:
        return render(next(part for part in parts if output(part) == gives))
    blocks = (part for part in walk(root) if isinstance(part, Block) and output(part) == gives)
    return render(next(blocks, parts[-1]))
