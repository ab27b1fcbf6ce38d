"""Code changes that moved the numbers of a few kinds of trials, while `RESULTS_VERSION` stayed the same.

A trial gets a new id from each change that concerns it. So no mean mixes numbers from before and after, and
no training that began before is continued. The list is emptied when `RESULTS_VERSION` is raised.
"""

from __future__ import annotations

from collections.abc import Callable

from ...grammar.nodes import BlockNode, walk
from ..catalog.tasks.synthetic.recall import MqarSettings
from ..schema.settings import TrialSettings, read_recipe


def _guesses_by_pairs(settings: TrialSettings) -> bool:
    """Scaled accuracies of mqar use the guess of the pairs of their own test set, not of the most pairs."""
    task = settings.task
    if not isinstance(task, MqarSettings):
        return False
    return len({pairs for _, pairs, _ in task.shapes} | {pairs for _, pairs in task.tests}) > 1


def _picks_on_fresh_examples(settings: TrialSettings) -> bool:
    """Dev examples of mad are fresh ones, not of the training pool: another epoch may be the best one."""
    train = settings.train
    picks = train.keep == "best" or train.early_stopping is not None or train.schedule.name == "plateau"
    return settings.task.name == "mad" and picks


def _sums_in_float32(settings: TrialSettings) -> bool:
    """States and gates of these blocks are summed in float32 also where products are in bf16."""
    if settings.train.precision != "bf16":
        return False
    nodes = walk(read_recipe(settings.model.recipe).root)
    names = {node.name for node in nodes if isinstance(node, BlockNode)}
    return not names.isdisjoint({"linear_attn", "retention", "fox"})


def _averages_only_trained_weights(settings: TrialSettings) -> bool:
    """Averages of weights have no share of the initial weights, as the bias of their start is corrected."""
    return settings.train.average is not None


CHANGES: tuple[Callable[[TrialSettings], bool], ...] = (
    _guesses_by_pairs,
    _picks_on_fresh_examples,
    _sums_in_float32,
    _averages_only_trained_weights,
)


def changes_of(settings: TrialSettings) -> int:
    """Return how many of the changes concern the trials with these settings."""
    return sum(changed(settings) for changed in CHANGES)
