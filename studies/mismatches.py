"""What fits each table of a study file but not all of them together."""

from __future__ import annotations

from collections.abc import Iterator
from math import isinf

from ..grammar import render
from ..grammar.nodes import Block, Node, Series, walk
from ..grammar.roles import OTHER_LENGTH, SEQUENCE, VECTOR, output
from ..grammar.vocabulary import Context, lookup
from .corpora import CorpusError
from .costs import frame
from .demands import demand
from .settings import Settings, read_recipe
from .tasks import AlgorithmicTask, Kind, TaskError, require_task
from .template import RECIPE
from .wording import Problem

_NEEDS = {Kind.REGRESSION: VECTOR, Kind.TRANSDUCTION: OTHER_LENGTH}
_CURES = {
    SEQUENCE: "take its parts, as in 4 * (sa >> ff(512))",
    VECTOR: "end it in a pool, as in sa >> mean_pool",
    OTHER_LENGTH: "take a whole model, as in seq2seq(lstm, lstm)",
}


def mismatches(settings: Settings) -> Iterator[Problem]:
    """What the task cannot take or does not find, and what would be asked for without any effect."""
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
    yield from _unused(settings)


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
    """A curriculum that the task needs and has not, or cannot have; what its data do not fit."""
    task, curriculum = require_task(settings.task.name), settings.train.curriculum
    place = ("train", "curriculum")
    try:
        around = frame(settings.model, demand(settings.task))
        yield from (Problem(("model",), fault) for fault in around.faults())
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


def _unused(settings: Settings) -> Iterator[Problem]:
    """Keys that would change the trial's name and nothing else."""
    task, train = require_task(settings.task.name), settings.train
    of_pairs = {"sampling": train.sampling, "label_smoothing": train.label_smoothing}
    if task.kind is not Kind.TRANSDUCTION:
        for key in (key for key, value in of_pairs.items() if value):
            yield Problem(("train", key), f"{task.name} has one sequence, and this is for two: leave it out")
    elif settings.model.cutoffs or settings.model.tied:
        key = "cutoffs" if settings.model.cutoffs else "tied"
        yield Problem(("model", key), f"{task.name} has two vocabularies, and this is for one: leave it out")
    if train.schedule.name == "plateau" and task.kind in (Kind.TAGGING, Kind.REGRESSION):
        yield Problem(("train", "schedule", "name"), f"{task.name} has no dev split whose loss could rest")


def _odd(root: Node, gives: str | None) -> str:
    """The part of a recipe that makes its output what it is: the one that pools, or the first block."""
    parts = root.parts if isinstance(root, Series) else (root,)
    if gives == VECTOR:
        return render(next(part for part in parts if output(part) == gives))
    blocks = (part for part in walk(root) if isinstance(part, Block) and output(part) == gives)
    return render(next(blocks, parts[-1]))
