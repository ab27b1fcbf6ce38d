"""Problems between the tables of a study file, each valid by itself."""

from __future__ import annotations

from collections.abc import Iterator
from math import isinf

from ...grammar import ModelConfig, render
from ...grammar.nodes import BlockNode, Node, SeriesNode, walk
from ...grammar.vocabulary.output_kinds import OTHER_LENGTH, SEQUENCE, VECTOR, output_kind
from ...grammar.vocabulary.registry import lookup
from ...grammar.vocabulary.spec import CostContext
from ..catalog.datasets import CorpusError
from ..catalog.tasks import (
    AlgorithmicTask,
    LanguageModelSettings,
    SentencePairSettings,
    TaskError,
    TaskKind,
)
from ..schema.settings import TrialSettings, read_recipe
from ..text.pydantic_messages import ValidationProblem
from .costs import model_config
from .template import RECIPE_PATH

_NEEDS = {TaskKind.REGRESSION: VECTOR, TaskKind.TRANSDUCTION: OTHER_LENGTH}
_REMEDIES = {
    SEQUENCE: "take its parts, as in 4 * (sa >> ff(512))",
    VECTOR: "end it in a pool, as in sa >> mean_pool",
    OTHER_LENGTH: "take a whole model, as in seq2seq(lstm, lstm)",
}


def incompatibilities(settings: TrialSettings) -> Iterator[ValidationProblem]:
    """What the task cannot use or lacks, and keys that would have no effect."""
    task, root = settings.task.spec, read_recipe(settings.model.recipe).root
    gives, needs = output_kind(root), _NEEDS.get(task.kind, SEQUENCE)
    if gives != needs:
        remedy = "leave the pool out" if gives == VECTOR and needs == SEQUENCE else _REMEDIES[needs]
        yield ValidationProblem(
            RECIPE_PATH,
            f"{_offending_part(root, gives)} gives {gives}, but {task.name} needs {task.kind}: {remedy}",
        )
    elif isinstance(settings.task, LanguageModelSettings):
        yield from _causality_problems(settings.task, settings.model.d_model, root)
    elif (
        isinstance(settings.task, SentencePairSettings)
        and settings.task.coverage_penalty
        and covers_nothing(root)
    ):
        no_effect = f"it has no effect, since {render(root)} has no attention weights"
        yield ValidationProblem(
            ("task", "coverage_penalty"), f"{no_effect}: leave it out, or give the decoder an attention"
        )
    yield from _lengths(settings)
    yield from _unused(settings)


def _causality_problems(task: LanguageModelSettings, d_model: int, root: Node) -> Iterator[ValidationProblem]:
    """Blocks that a causal task cannot use: they see the future, or more past than a stream can keep."""
    surroundings = CostContext(config=ModelConfig(d_model=d_model, causal=True, dropout=0.0), length=1)
    for name, block in {render(node): node for node in walk(root) if isinstance(node, BlockNode)}.items():
        spec = lookup(block.name)
        assert spec is not None, f"{block.name} has left the vocabulary"
        values = spec.settings(block)
        reach = spec.reach(values, surroundings)
        if reach.right:
            yield ValidationProblem(RECIPE_PATH, f"{name} sees later tokens, which {task.name} predicts")
        elif task.batching == "stream" and isinf(reach.left) and spec.cost(values, surroundings).state:
            unbounded = f"{name} sees all of the past, and a stream has no beginning"
            yield ValidationProblem(
                RECIPE_PATH, f'{unbounded}: give it a span, or read lines (batching = "lines")'
            )


def covers_nothing(root: Node) -> bool:
    """Whether the model is an encoder and a decoder without attention weights."""
    return isinstance(root, BlockNode) and root.name == "seq2seq" and "attention" not in dict(root.arguments)


def _lengths(settings: TrialSettings) -> Iterator[ValidationProblem]:
    """A curriculum that is missing or not allowed, and lengths that do not fit the data."""
    task, curriculum = settings.task.spec, settings.train.curriculum
    place = ("train", "curriculum")
    try:
        config = model_config(settings.model, settings.task.interface)
        yield from (ValidationProblem(("model",), fault) for fault in config.faults())
    except CorpusError as error:
        yield ValidationProblem(("task", "corpus"), str(error))
    if not isinstance(task, AlgorithmicTask):
        if curriculum is not None:
            yield ValidationProblem(place, f"{task.name} has no lengths that grow: leave it out")
    elif curriculum is None:
        yield ValidationProblem(place, f"{task.name} needs a length to begin with, as in {{ start = 5 }}")
    else:
        try:
            task.check_length(curriculum.start)
        except TaskError as error:
            yield ValidationProblem((*place, "start"), str(error))


def _unused(settings: TrialSettings) -> Iterator[ValidationProblem]:
    """Keys that would change the trial's id and nothing else."""
    task, train = settings.task.spec, settings.train
    for_pairs = {"sampling": train.sampling, "label_smoothing": train.label_smoothing}
    if task.kind is not TaskKind.TRANSDUCTION:
        for key in (key for key, value in for_pairs.items() if value):
            yield ValidationProblem(
                ("train", key), f"{task.name} has one sequence, and this is for two: leave it out"
            )
    elif settings.model.cutoffs or settings.model.tied:
        key = "cutoffs" if settings.model.cutoffs else "tied"
        yield ValidationProblem(
            ("model", key), f"{task.name} has two vocabularies, and this is for one: leave it out"
        )
    if train.schedule.name == "plateau" and task.kind in (TaskKind.TAGGING, TaskKind.REGRESSION):
        yield ValidationProblem(
            ("train", "schedule", "name"), f"plateau needs the loss on a dev split, and {task.name} has none"
        )


def _offending_part(root: Node, gives: str | None) -> str:
    """The part of a recipe that decides the kind of its output: the one that pools, or the first block."""
    parts = root.parts if isinstance(root, SeriesNode) else (root,)
    if gives == VECTOR:
        return render(next(part for part in parts if output_kind(part) == gives))
    blocks = (part for part in walk(root) if isinstance(part, BlockNode) and output_kind(part) == gives)
    return render(next(blocks, parts[-1]))
