"""The settings of one size of a ladder: as many steps as its tokens fill, and its learning rate."""

from __future__ import annotations

from collections.abc import Mapping

from ..schema.settings import Level, TrialSettings
from .ladder import Ladder


def step_tokens(settings: TrialSettings, sequence_tokens: int) -> int:
    """Return the tokens of a training step with sequences of this length."""
    return settings.train.batch_size * sequence_tokens


def on_rung(
    ladder: Ladder,
    settings: TrialSettings,
    levels: Mapping[str, Level],
    *,
    parameters: int,
    sequence_tokens: int,
) -> TrialSettings:
    """Return a cell's settings with the steps nearest to its tokens, at least one in each epoch."""
    train = settings.train
    in_epoch = train.epochs * step_tokens(settings, sequence_tokens)
    steps = max(1, round(ladder.tokens_per_parameter * parameters / in_epoch))
    changes: dict[str, object] = {"steps_per_epoch": steps}
    if ladder.lr_exponent and ladder.width is not None:
        sizes = ladder.sizes[ladder.width]
        ratio = sizes[ladder.place(levels)] / sizes[0]
        lr = float(f"{train.optimizer.lr * ratio**ladder.lr_exponent:.6g}")
        changes["optimizer"] = train.optimizer.model_copy(update={"lr": lr})
    return settings.model_copy(update={"train": train.model_copy(update=changes)})
