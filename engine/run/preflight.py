"""Checks before anything is trained, for what would make trials fail or mislead: leaks, lengths, corpora."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch

from ...blocks.reach_check import check_reach, moved_outputs
from ...blocks.testing.fixtures import make_block
from ...grammar import parse, render
from ...grammar.nodes import BlockNode, walk
from ...plugins import PluginError
from ...studies.catalog.tasks import (
    AlgorithmicSettings,
    LabelledSettings,
    LanguageModelSettings,
    ParsingSettings,
    TaskError,
    TranslationSettings,
    require_algorithmic,
)
from ...studies.catalog.tasks.synthetic import LengthTask
from ...studies.schema.settings import TrialSettings
from ..core.models import AnyModel, build_model
from ..core.resources import Machine
from ..data import DataError, open_corpus, open_labelled, open_pairs, open_treebank
from ..optimisers.compiled_body import check_compile
from ..trial.leaks import LeakError
from ..trial.precision import check_precision


def check_leaks(all_settings: Iterable[TrialSettings]) -> None:
    """Raise LeakError if any of the causal trials has a block whose outputs move with later inputs.

    Sums and series of causal blocks are causal, and so are their copies; so each block is tried by itself.
    """
    recipes = dict.fromkeys(
        settings.model.recipe for settings in all_settings if settings.task.spec.kind.causal
    )
    blocks = dict.fromkeys(
        block for recipe in recipes for block in walk(parse(recipe).root) if isinstance(block, BlockNode)
    )
    if faults := [f"  {render(block)} sees later tokens" for block in blocks if sees_future(block)]:
        raise LeakError("\n".join(["a causal task cannot have these blocks, whatever they state", *faults]))


def sees_future(block: BlockNode) -> bool:
    """Return whether a later input moves an earlier output of the block in double precision."""
    return bool(moved_outputs(make_block(block, causal=True)).tril(-1).any())


def check_reaches(all_settings: Iterable[TrialSettings]) -> None:
    """Raise PluginError, with all of them, for blocks of plug-ins that see further than they state."""
    models = dict.fromkeys(
        (each.model.recipe, each.task.spec.kind.causal, each.model.d_model) for each in all_settings
    )
    blocks = {
        (block, causal, width): None
        for recipe, causal, width in models
        for block in walk(parse(recipe).root)
        if isinstance(block, BlockNode)
    }
    faults = list[str]()
    for block, causal, width in blocks:
        try:
            check_reach(block, causal=causal, width=width)
        except PluginError as error:
            faults.append(str(error))
    if faults:
        raise PluginError("\n".join(faults))


def check_test_lengths(all_settings: Iterable[TrialSettings]) -> None:
    """Raise TaskError, with all of them, for models that cannot read what they are to be tested on.

    A block of a plug-in may have no more than so many positions. Each is tried with one sequence.
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
        raise TaskError("\n".join(["these models cannot read what they are to be tested on", *faults]))


@torch.no_grad()
def _reading_fault(settings: TrialSettings, tokens: int) -> str | None:
    """Return why a trial's model cannot read this many tokens; None if it can."""
    model = _try_model(settings)
    try:
        model(torch.zeros(1, tokens, dtype=torch.int64))
    except Exception as error:  # noqa: BLE001 -- whatever a block raises is told of it
        return f"{type(error).__name__}: {error}"
    return None


def _try_model(settings: TrialSettings) -> AnyModel:
    """Build the model of a trial with random weights."""
    return build_model(settings.model, settings.task.interface, torch.Generator().manual_seed(0)).eval()


def check_device(all_settings: Iterable[TrialSettings], machine: Machine) -> None:
    """Raise PrecisionError or CompileModeError if this machine lacks what trials ask of their device.

    The machines of a cluster are unknown here: there each trial finds out by itself.
    """
    if machine.address is None:
        for settings in all_settings:
            check_precision(settings.train.precision, torch.device(machine.device))
            check_compile(settings.train.compile, torch.device(machine.device))


_OPEN = {
    "language_model": open_corpus,
    "translation": open_pairs,
    "parsing": open_treebank,
    "sequence_classification": open_labelled,
    "sequence_regression": open_labelled,
    "token_classification": open_labelled,
}


def prepare_corpora(all_settings: Iterable[TrialSettings], folder: Path) -> None:
    """Open every corpus that trials ask for; DataError, with all of them, for those that are not there."""
    tasks = [settings.task for settings in all_settings]
    texts = {
        (task.name, task.corpus, task.tokens, task.pieces): task
        for task in tasks
        if isinstance(task, LanguageModelSettings | TranslationSettings | ParsingSettings)
    }
    labelled = {
        (task.name, task.corpus, task.vocabulary): task
        for task in tasks
        if isinstance(task, LabelledSettings)
    }
    faults: dict[str, None] = {}
    for task in (*texts.values(), *labelled.values()):
        try:
            _OPEN[task.name](task, folder)
        except DataError as error:
            faults.setdefault(str(error))
    if faults:
        raise DataError("\n".join(faults))
