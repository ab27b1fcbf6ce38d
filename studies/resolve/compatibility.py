"""Conflicts between valid tables of a study file, among them models beyond the study's limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from math import isinf
from typing import TYPE_CHECKING

from ...grammar import ModelConfig, configure, render
from ...grammar.nodes import BlockNode, Node, walk
from ...grammar.positions import SizedPosition
from ...grammar.vocabulary.spec import (
    OTHER_LENGTH,
    SEQUENCE,
    VECTOR,
    CostContext,
    Role,
    output_kind,
    pair_position_fault,
    spec_of,
)
from ..catalog.datasets import CorpusError
from ..catalog.metrics import METRICS, MODEL_COSTS
from ..catalog.own_corpora import OwnDocuments, OwnRows, OwnText
from ..catalog.tasks import (
    AlgorithmicTask,
    GeneratedTask,
    LabelledSequenceSettings,
    LabelledSettings,
    LanguageModelSettings,
    LongTermSettings,
    SentencePairSettings,
    TaskError,
    TaskKind,
    TaskSettings,
    check_statements,
)
from ..schema.factors import SEED, level_text
from ..schema.limits import Limit
from ..schema.reported_metrics import epoch_metrics
from ..schema.settings import D_MODEL_PATH, RECIPE_PATH, TrialSettings, read_recipe
from ..text.strict_model import ValidationProblem
from ..text.toml_positions import KeyPath
from ..text.units import plural
from .costs import model_cost, most_tokens

if TYPE_CHECKING:
    from .trial import Trial

_NEEDS = {TaskKind.REGRESSION: VECTOR, TaskKind.CLASSIFICATION: VECTOR, TaskKind.TRANSDUCTION: OTHER_LENGTH}
_REMEDIES = {
    SEQUENCE: "use its parts, for example 4 * (sa >> ff(512))",
    VECTOR: "end the recipe with a pool, for example sa >> mean_pool",
    OTHER_LENGTH: "use a transducer, for example seq2seq(lstm, lstm)",
}


Faults = Iterator[tuple[KeyPath, str]]
"""Faults of settings, each with the path of its key."""

Unknown = Callable[[KeyPath], bool]
"""A test whether the value of a key is unknown because the file has a fault there."""


def incompatibilities(
    settings: TrialSettings, is_unknown: Unknown | None = None, *, of_recipe: bool = False
) -> Iterator[ValidationProblem]:
    """Yield faults of settings that are valid one by one but not together, such as a key without effect.

    `is_unknown` says for which keys the file has no valid value, so that `settings` has an example value.
    Rules about these keys are skipped. With `of_recipe`, so are the rules that do not read the recipe: the
    settings differ from others without faults only in the recipe.
    """
    for reads, rule in _RECIPE_RULES if of_recipe else _RULES:
        if is_unknown is None or not any(map(is_unknown, (_TASK_NAME, *reads))):
            yield from (ValidationProblem(path, message) for path, message in rule(settings))


def _output(settings: TrialSettings) -> Faults:
    task, root = settings.task.spec, read_recipe(settings.model.recipe).root
    gives, needs = output_kind(root), _NEEDS.get(task.kind, SEQUENCE)
    if gives != needs:
        remedy = "remove the pool" if gives == VECTOR and needs == SEQUENCE else _REMEDIES[needs]
        yield RECIPE_PATH, f"{render(root)} gives {gives}, but {task.name} needs {task.kind}: {remedy}"


def _coverage(settings: TrialSettings) -> Faults:
    task, root = settings.task, read_recipe(settings.model.recipe).root
    if not isinstance(task, SentencePairSettings) or not task.coverage_penalty:
        return
    if output_kind(root) == _NEEDS.get(task.spec.kind, SEQUENCE) and covers_nothing(root):
        why = f"{render(root)} has no attention weights to penalise"
        remedy = "remove coverage_penalty, or give the decoder an attention"
        yield ("task", "coverage_penalty"), f"{why}: {remedy}"


def _sizes(settings: TrialSettings) -> Faults:
    task, root = settings.task, read_recipe(settings.model.recipe).root
    if not isinstance(task, SentencePairSettings) or task.sizes == "all" or not isinstance(root, BlockNode):
        return
    spec = spec_of(root.name)
    if spec.role is Role.TRANSDUCER and not spec.depends_on_target_length:
        why = f"{render(root)} does not use the output length, so sizes has no effect"
        yield ("task", "sizes"), f"{why}: remove sizes"


def _causality(settings: TrialSettings) -> Faults:
    task, root = settings.task, read_recipe(settings.model.recipe).root
    if not task.spec.kind.causal or output_kind(root) != SEQUENCE:
        return
    verb = "predicts" if isinstance(task, LanguageModelSettings) else "hides"
    config = configure(d_model=settings.model.d_model, causal=True, dropout=0.0)
    surroundings = CostContext(config=config, length=1)
    for block in dict.fromkeys(node for node in walk(root) if isinstance(node, BlockNode)):
        spec = spec_of(block.name)
        values = spec.settings(block)
        reach = spec.reach(values, surroundings)
        if reach.right:
            why = f"{render(block)} sees later tokens, but {task.name} {verb} them"
            yield RECIPE_PATH, f"{why}: use a causal block"
        elif _streams(task) and isinf(reach.left) and spec.generation_state(values, surroundings)[0]:
            span = "set a span, " if any(each.name == "span" for each in spec.parameters) else ""
            remedy = f'{span}read pieces (batching = "packed"), or read lines (batching = "lines")'
            unbounded = f'{render(block)} sees the whole past, but batching = "stream" has no beginning'
            yield RECIPE_PATH, f"{unbounded}: {remedy}"


def _streams(task: TaskSettings) -> bool:
    return isinstance(task, LanguageModelSettings) and task.batching == "stream"


def covers_nothing(root: Node) -> bool:
    """Return whether this is a `seq2seq` without attention, on which a coverage penalty has no effect."""
    return isinstance(root, BlockNode) and root.name == "seq2seq" and "attention" not in dict(root.arguments)


def _data(settings: TrialSettings) -> Faults:
    task = settings.task
    try:
        _ = task.interface
        if isinstance(task, GeneratedTask):
            check_statements(task)
    except CorpusError as error:
        yield ("task", "corpus"), str(error)
    except TaskError as error:
        yield ("task",), str(error)
    if isinstance(task, LanguageModelSettings) and task.separate_documents:
        if not isinstance(task.corpus, OwnDocuments) or task.batching != "packed":
            needed = 'corpus = { documents = … } and batching = "packed"'
            yield ("task", "separate_documents"), f"separate_documents needs {needed}"
    elif isinstance(task, LabelledSequenceSettings) and task.corpus.lists and task.tokens != "symbols":
        yield ("task", "tokens"), f'expected "symbols" for lists of tokens, got "{task.tokens}"'


def _enough_data(settings: TrialSettings) -> Faults:
    """Yield a fault if the data have too little for one batch, even with a token for each byte."""
    task, rows = settings.task, settings.train.batch_size
    corpus = getattr(task, "corpus", None)
    if isinstance(corpus, OwnRows):
        found, expected, unit, lower, more = corpus.rows.train, rows, "rows", "batch_size", "rows"
    elif isinstance(task, LanguageModelSettings) and isinstance(corpus, OwnText | OwnDocuments):
        if isinstance(corpus, OwnText):
            size, lines = corpus.train.stop - corpus.train.start, corpus.train.lines
        else:  # the size of its smallest source
            size = min(each.bytes + each.documents for each in corpus.sources)
            lines = corpus.rows.train
        at_once = 1 if task.batching == "packed" else rows
        found, expected = (lines, rows) if task.by_line else (size, at_once * task.context)
        unit, lower = ("lines", "batch_size") if task.by_line else ("bytes", "context or batch_size")
        more = "text"
    else:
        return
    if found < expected:
        message = f"expected at least {expected:,} {unit} for a batch in the train split, got {found:,}"
        yield ("task", "corpus"), f"{message}: lower {lower}, or add {more}"


def _frame(settings: TrialSettings) -> Faults:
    try:
        config = settings.config
    except (CorpusError, TaskError):  # `_data` reports these errors
        return
    yield from ((("model",), fault) for fault in config.faults())
    if (fault := _position_fault(settings, config)) is not None:
        yield ("model", "position"), fault


def _pair_positions(settings: TrialSettings) -> Faults:
    position = settings.model.position
    if (fault := pair_position_fault(read_recipe(settings.model.recipe).root, position)) is not None:
        yield ("model", "position"), fault


def _position_fault(settings: TrialSettings, config: ModelConfig) -> str | None:
    """Return an error message if the task cannot use the model's positions, else None."""
    task, name, kind = settings.task, config.settings.position, config.settings.position_kind
    longest = kind.longest
    if kind.by_length and task.spec.kind in (TaskKind.LANGUAGE, TaskKind.TRANSDUCTION):
        unknown = f"{name} positions need the length of the whole sequence, which {task.name} does not know"
        return f'{unknown}: use other positions, such as position = "timing"'
    if longest is not None and _streams(task):
        endless = f"{name} has {plural(longest, 'position')}, but a stream has no end"
        return f'{endless}: use other positions, or read lines (batching = "lines")'
    if longest is not None and (tokens := most_tokens(settings)) is not None and tokens > longest:
        too_few = f"{name} has {plural(longest, 'position')}, but a sequence has {tokens:,}"
        return f"{too_few}: set max_positions = {tokens}" if isinstance(kind, SizedPosition) else too_few
    return None


def _lengths(settings: TrialSettings) -> Faults:
    task, curriculum, lengths = settings.task.spec, settings.train.curriculum, settings.train.lengths
    if not isinstance(task, AlgorithmicTask):
        for path in [_CURRICULUM] * (curriculum is not None) + [_LENGTHS] * (lengths is not None):
            yield path, f"{task.name} does not train on growing lengths: remove {path[-1]}"
    elif curriculum is not None and lengths is not None:
        yield _LENGTHS, "a curriculum sets the lengths itself: remove lengths or curriculum"
    else:
        given = {} if curriculum is None else {(*_CURRICULUM, "start"): curriculum.start}
        given |= {(*_LENGTHS, place): length for place, length in enumerate(lengths or ())}
        for path, length in given.items():
            try:
                task.check_length(length)
            except TaskError as error:
                yield path, str(error)


def _for_pairs(settings: TrialSettings, key: str) -> Faults:
    task = settings.task.spec
    if task.kind is not TaskKind.TRANSDUCTION and getattr(settings.train, key):
        expected = "expected a task with source and target sequences"
        yield ("train", key), f"{expected}, got {task.name}: remove {key}"


def _one_vocabulary(settings: TrialSettings) -> Faults:
    task, model = settings.task.spec, settings.model
    if task.kind is TaskKind.TRANSDUCTION and (model.cutoffs or model.tied):
        key = "cutoffs" if model.cutoffs else "tied"
        yield ("model", key), f"{key} needs a single vocabulary, but {task.name} has two: remove {key}"


def _plateau(settings: TrialSettings) -> Faults:
    task, train = settings.task, settings.train
    has_dev_loss = (
        train.lengths is not None
        or isinstance(task, GeneratedTask | LabelledSettings)
        or task.spec.kind in (TaskKind.LANGUAGE, TaskKind.TRANSDUCTION)
    )
    if train.schedule.name == "plateau" and not has_dev_loss:
        path = ("train", "schedule", "name")
        yield path, f"plateau needs the loss on a dev split, but {task.name} has none"


def _early_stopping(settings: TrialSettings) -> Faults:
    asked = settings.train.early_stopping
    fitting = _directed_metrics(settings) if asked else []
    rule = f"expected a metric that {settings.task.name} has after each epoch"
    if isinstance(settings.task, LongTermSettings):
        fitting = [name for name in fitting if name == "loss"]
        rule += ", not measured on its test sequences"
    if asked and asked.metric not in fitting:
        better = f"for which higher or lower is better ({', '.join(fitting)})"
        path = ("train", "early_stopping", "metric")
        yield path, f"{rule}, and {better}, got '{asked.metric}'"


def _kept_epoch(settings: TrialSettings) -> Faults:
    metric = settings.train.best_metric
    scored = [name for name in _directed_metrics(settings) if name.startswith("dev_")] if metric else []
    if metric and metric not in scored:
        rule = f'keep = "best" compares epochs by {metric}, and needs a metric on the dev split'
        have = f"has {', '.join(scored)}; name one as early_stopping's metric"
        none = 'has none; remove keep, or set it to "last"'
        yield ("train", "keep"), f"{rule}; {settings.task.name} {have if scored else none}"


def _directed_metrics(settings: TrialSettings) -> list[str]:
    """Return the metrics after each epoch for which higher or lower is better."""
    return [name for name in epoch_metrics(settings) if METRICS[name].higher_is_better is not None]


def _compiled_terms(settings: TrialSettings) -> Faults:
    watching = [term.name for term in settings.train.loss_terms if term.watches]
    if settings.train.compile and watching:
        why = f"{watching[0]} needs the outputs of single modules, which compile hides"
        yield ("train", "compile"), f"{why}: remove compile"


def _maximal_updates(settings: TrialSettings) -> Faults:
    name = settings.train.optimizer.name
    if settings.model.mup is not None and name not in _BY_SIGN:
        message = f"expected an optimizer among {', '.join(_BY_SIGN)} with mup, got {name}"
        yield ("train", "optimizer"), message


_BY_SIGN = ("adam", "adamw", "lion")
_TASK_NAME: KeyPath = ("task", "name")
_CURRICULUM: KeyPath = ("train", "curriculum")
_LENGTHS: KeyPath = ("train", "lengths")

_RULES: tuple[tuple[tuple[KeyPath, ...], Callable[[TrialSettings], Faults]], ...] = (
    ((RECIPE_PATH,), _output),
    ((RECIPE_PATH, D_MODEL_PATH, ("task", "batching")), _causality),
    ((RECIPE_PATH, ("task", "coverage_penalty")), _coverage),
    ((RECIPE_PATH, ("task", "sizes")), _sizes),
    ((("task",),), _data),
    ((("task",), ("train", "batch_size")), _enough_data),
    ((("model",), ("task",)), _frame),
    ((RECIPE_PATH, ("model", "position")), _pair_positions),
    ((_CURRICULUM, _LENGTHS), _lengths),
    ((("train", "sampling"),), partial(_for_pairs, key="sampling")),
    ((("train", "label_smoothing"),), partial(_for_pairs, key="label_smoothing")),
    ((("model", "cutoffs"), ("model", "tied")), _one_vocabulary),
    ((("train", "schedule"), _LENGTHS), _plateau),
    (
        (("task",), ("train", "early_stopping"), ("train", "measure"), ("train", "loss_terms"), _LENGTHS),
        _early_stopping,
    ),
    ((("task",), ("train", "keep"), ("train", "early_stopping"), _LENGTHS), _kept_epoch),
    ((("train", "loss_terms"), ("train", "compile")), _compiled_terms),
    ((("model", "mup"), ("train", "optimizer")), _maximal_updates),
)
"""Each rule with the keys that it reads besides the task's name."""

_RECIPE_RULES = tuple(each for each in _RULES if RECIPE_PATH in each[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyBudget:
    """The limits of a study on costs of models that are known before training."""

    limits: tuple[Limit, ...] = ()

    def allows(self, settings: TrialSettings) -> bool:
        """Return whether a trial's model is within all limits."""
        return not self.describe_excess(settings)

    def excess(self, settings: TrialSettings) -> float:
        """Return how far the model is beyond a limit, as a share of it. It is 0 without limits."""
        costs = ((each, model_cost(each.name, settings)) for each in self.limits)
        return max((each.excess(cost) / (abs(each.bound) or 1) for each, cost in costs), default=0.0)

    def describe_excess(self, settings: TrialSettings) -> str:
        """Describe how the model exceeds the limits: `parameters 4,488,548, not <= 2,000,000`, or ""."""
        over = list[str]()
        for limit in self.limits:
            if not limit.holds(value := model_cost(limit.name, settings)):
                words = MODEL_COSTS[limit.name].format
                over.append(f"{limit.name} {words(value)}, not {limit.sign} {words(limit.bound)}")
        return " and ".join(over)

    def describe_exclusion(self, what: str, trials: Iterable[Trial]) -> str:
        """Say that the limits exclude all trials, and name the nearest. `what` is a word such as "cell"."""
        nearest = min(trials, key=lambda trial: self.excess(trial.settings))
        levels = [f"{name}={level_text(level)}" for name, level in nearest.levels.items() if name != SEED]
        named = f", {', '.join(levels)}," if levels else ""
        excess = self.describe_excess(nearest.settings)
        return f"every {what} exceeds the limits; the nearest{named} has {excess}"
