"""Checks before a training, for faults that would make trials fail or give false results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from ...blocks.core.block import BuildError
from ...blocks.testing.plugin_checks import check_plugin_block, check_plugin_norm, check_plugin_position
from ...errors import ActivememError
from ...grammar import ModelInterface
from ...grammar.nodes import BlockNode, walk
from ...plugins import OWN, PluginError
from ...studies.catalog.tasks import (
    AlgorithmicSettings,
    GeneratedTask,
    LanguageModelSettings,
    ParsingSettings,
    TaskError,
    TaskKind,
    TranslationSettings,
    require_algorithmic,
)
from ...studies.catalog.tasks.synthetic import LengthTask
from ...studies.plan import model_labeller
from ...studies.resolve.costs import parameter_count
from ...studies.resolve.trial import Trial, first_of_each_kind
from ...studies.schema.reported_metrics import epoch_metrics
from ...studies.schema.settings import TrainSettings, TrialSettings, read_recipe
from ...studies.study import Study
from ...studies.text.units import format_bytes
from ..core.models import build_model, bytes_of_weights, check_precision
from ..core.resources import Machine, memory_here
from ..corpora.files import DataError
from ..data.labelled_sequences import open_labelled
from ..data.sentence_pairs import open_pairs
from ..data.text.corpus import open_corpus
from ..data.treebanks import open_treebank
from ..objectives.base import RegisteredMetrics
from ..tasks.generated import draw_examples, draw_test_set, own_losses, random_outputs
from ..trial.training import Training, factor


def check_memory(study: Study, trials: Iterable[Trial]) -> None:
    """Raise BuildError with all models whose weights this machine cannot hold.

    Call it before a model is built.
    """
    needed = [(bytes_of_weights(trial.settings), trial) for trial in first_of_each_kind(trials)]
    if large := [(held, trial) for held, trial in needed if held > memory_here()]:
        label = model_labeller(study)
        models = dict.fromkeys(f"  {label(trial)}: {format_bytes(held)}" for held, trial in large)
        fewest = min(parameter_count(trial.settings) for _, trial in large)
        others = f', or train only the others: [study] limits = {{ parameters = "< {fewest}" }}'
        lines = (
            f"weights and gradients of these models exceed this machine's {format_bytes(memory_here())}:",
            *models,
            f"choose smaller models{others if large != needed else ''}",
        )
        raise BuildError("\n".join(lines))


def check_plugin_modules(all_settings: Iterable[TrialSettings]) -> None:
    """Raise PluginError with the faults of all blocks, norms and positions of plug-ins that these trials use.

    Sums, sequences and copies of causal blocks are causal, so it is enough to test each block separately.
    Each trial tests its trained model as well.
    """
    every = list(all_settings)
    models = dict.fromkeys(
        (
            each.model.recipe,
            each.task.spec.kind.causal,
            each.model.d_model,
            each.task.longest_row is not None,
        )
        for each in every
    )
    blocks = dict.fromkeys(
        (block, causal, width, has_padding)
        for recipe, causal, width, has_padding in models
        for block in walk(read_recipe(recipe).root)
        if isinstance(block, BlockNode)
    )
    norms = dict.fromkeys((each.model.norm_kind, each.model.d_model) for each in every)
    positions = dict.fromkeys((each.model.position, each.model.d_model) for each in every)
    checks: list[Callable[[], object]] = [
        *(
            partial(check_plugin_block, block, causal=causal, width=width, has_padding=has_padding)
            for block, causal, width, has_padding in blocks
        ),
        *(partial(check_plugin_norm, name, width=width) for name, width in norms),
        *(partial(check_plugin_position, name, width=width) for name, width in positions),
    ]
    faults = list[str]()
    for check in checks:
        try:
            check()
        except PluginError as error:
            faults.append(str(error))
    if faults:
        raise PluginError("\n".join(faults))


def check_test_lengths(all_settings: Iterable[TrialSettings]) -> None:
    """Try each model on its longest test sequence.

    Raise TaskError with all models that cannot process theirs. A plug-in's block may limit the number of
    positions.
    """
    longest: dict[tuple[str, int], TrialSettings] = {}
    for settings in all_settings:
        task = settings.task
        if isinstance(task, AlgorithmicSettings | LengthTask) and task.test_lengths:
            last = task.test_lengths[-1]
            if isinstance(task, LengthTask):
                tokens = task.input_tokens(last)
            else:
                tokens = require_algorithmic(task.name).sequence_length(last)
            longest.setdefault((f"{settings.model!r} {task.interface!r}", tokens), settings)
    faults = [
        f"  {settings.model.recipe} at {tokens:,} tokens of {settings.task.name}: {fault}"
        for (_, tokens), settings in longest.items()
        if (fault := _reading_fault(settings, tokens)) is not None
    ]
    if faults:
        raise TaskError("\n".join(["these models cannot process their test sequences", *faults]))


@torch.no_grad()
def _reading_fault(settings: TrialSettings, tokens: int) -> str | None:
    generator = torch.Generator().manual_seed(0)
    model = build_model(settings, generator).eval()
    try:
        model(torch.zeros(1, tokens, dtype=torch.int64))
    except Exception as error:  # noqa: BLE001 -- any exception of a block is reported with its name
        return f"{type(error).__name__}: {error}"
    return None


def check_device(all_settings: Iterable[TrialSettings], machine: Machine) -> None:
    """Raise PrecisionError if this machine's device cannot train the trials.

    The machines of a cluster are unknown here, so there each trial checks its own device.
    """
    if machine.address is None:
        for settings in all_settings:
            check_precision(settings.train.precision, torch.device(machine.device))


_OPEN = {
    "language_model": open_corpus,
    "translation": open_pairs,
    "parsing": open_treebank,
    "sequence_classification": open_labelled,
    "sequence_regression": open_labelled,
    "token_classification": open_labelled,
}


def prepare_corpora(all_settings: Iterable[TrialSettings], folder: Path) -> None:
    """Open every corpus of the trials. If some are missing, raise one DataError that names them all."""
    faults: dict[str, None] = {}
    for task in {repr(each.task): each.task for each in all_settings if each.task.name in _OPEN}.values():
        try:
            _OPEN[task.name](task, folder)
        except DataError as error:
            faults.setdefault(str(error))
    if faults:
        raise DataError("\n".join(faults))


def check_bits_per_byte(all_settings: Iterable[TrialSettings], goals: Collection[str], folder: Path) -> None:
    """Raise DataError if bits per byte are needed but cannot be computed.

    Training or a search may use the metric. It cannot be computed if the tokens do not determine every byte
    of the text. `goals` are the metrics of a search; the corpora are prepared.
    """
    splits = ("dev", "test")
    faults: dict[str, None] = {}
    for settings in all_settings:
        task, stopping = settings.task, settings.train.early_stopping
        watched = {*goals, settings.train.best_metric, stopping and stopping.metric}
        names = [name for name in splits if f"{name}_bits_per_byte" in watched]
        if not names or not isinstance(task, LanguageModelSettings | TranslationSettings | ParsingSettings):
            continue
        text = _OPEN[task.name](task, folder)
        is_text = isinstance(task, LanguageModelSettings)
        others = '"characters" or "byte_bpe"' if is_text else '"bpe" or "spelled"'
        for name in names:
            split = getattr(text, name)
            if split.line_bytes is None if is_text else not split.lossless:
                faults[
                    f"{name}_bits_per_byte cannot be computed: {task.tokens} lose some text of the {name} "
                    "split, such as unknown words, capitals or spaces; choose another metric, or set "
                    f"[task] tokens = {others}"
                ] = None
    if faults:
        raise DataError("\n".join(faults))


_ROWS, _SYMBOLS = 8, 4  # sizes of the test evaluation of metrics; the number of symbols if a task states none
_SPLITS = ("", "dev", "test")


def rehearse_plugins(all_settings: Iterable[TrialSettings], data: Path) -> None:
    """Run the plug-in code of trials once: metrics, tasks, schedules, loss terms and callbacks.

    Raise a PluginError that lists all exceptions, each with its file and line.
    """
    every = list(all_settings)
    interfaces = {(each.task.spec.kind, each.task.interface.model): None for each in every}
    tasks = {repr(each.task): each.task for each in every if isinstance(each.task, GeneratedTask)}
    parts = {
        (settings.task.name, settings.train.loss_terms, settings.train.callbacks): settings
        for settings in every
        if settings.train.loss_terms or settings.train.callbacks
    }
    faults = dict.fromkeys(
        [
            *(fault for kind, interface in interfaces for fault in _metric_faults(kind, interface)),
            *(fault for task in tasks.values() for fault in _task_faults(task)),
            *(fault for settings in every for fault in _schedule_faults(settings.train)),
        ]
    )
    if not faults:  # otherwise they would be visited again
        faults |= dict.fromkeys(
            fault for settings in parts.values() for fault in _part_faults(settings, data)
        )
    if faults:
        raise PluginError("\n".join(faults))


def _metric_faults(kind: TaskKind, interface: ModelInterface) -> Iterator[str]:
    for split in _SPLITS:
        for outputs, targets in _evaluations(kind, interface):
            try:
                measured = RegisteredMetrics(kind, split)
                measured.update(outputs, targets)
                measured.update(outputs[:1], targets[:1])
                measured.compute()
            except PluginError as error:
                yield f"{error} (compute may return None or NaN for a missing value)"


def _evaluations(kind: TaskKind, interface: ModelInterface) -> Iterator[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    symbols = interface.classes or interface.vocab or _SYMBOLS
    targets = torch.randint(symbols, (_ROWS,), generator=generator)
    match kind:
        case TaskKind.REGRESSION:
            columns = interface.targets or 1
            shape: tuple[int, ...] = (_ROWS, columns) if columns > 1 else (_ROWS,)
            numbers = torch.randn(2, *shape, generator=generator)
            yield numbers[0], numbers[1]
            # equal predictions, for which a correlation, for example, is not defined
            yield torch.zeros(shape), numbers[1]
        case TaskKind.LANGUAGE:
            yield torch.rand(_ROWS, generator=generator), targets
            yield torch.zeros(_ROWS), targets
        case _:
            yield torch.randn(_ROWS, symbols, generator=generator).log_softmax(-1), targets
            # only wrong predictions, for which a share may be 0 / 0
            first = one_hot(torch.zeros(_ROWS, dtype=torch.int64), symbols).float()
            yield first.log_softmax(-1), torch.full((_ROWS,), symbols - 1)


def _task_faults(task: GeneratedTask) -> Iterator[str]:
    # this package's tests check its own tasks
    if type(task).__module__.startswith(f"{OWN}."):
        return
    try:
        examples = draw_examples(task, 2, torch.Generator().manual_seed(0))
        own_losses(task, *random_outputs(task.spec.kind, task.sizes, examples.targets))
        for name in task.test_sets():
            draw_test_set(task, name)
    except ActivememError as error:
        yield str(error)


def _schedule_faults(train: TrainSettings) -> Iterator[str]:
    if train.seconds is not None:  # then the number of steps is unknown
        return
    steps = train.epochs * train.steps_per_epoch
    try:
        for step in (1, steps):
            factor(train.schedule, step, steps)
    except PluginError as error:
        yield str(error)


def _part_faults(settings: TrialSettings, data: Path) -> Iterator[str]:
    short = settings.with_train(epochs=1, compile=False)
    try:
        with torch.random.fork_rng(devices=[]):
            training = Training.begin(short, torch.device("cpu"), data)
            training.take_steps()
            if training.callbacks:
                metrics = dict.fromkeys(("loss", *epoch_metrics(settings)), 0.5)
                training.callbacks.start(training.model)
                training.callbacks.after_epoch(training.model, 1, training.step, metrics, last=True)
            training.state()  # a checkpoint must be able to hold the states of the parts
    except ActivememError as error:
        yield str(error)
    except Exception:  # noqa: BLE001 -- such as a lack of memory: the trial itself reports it
        return
