"""What must be there before the first trial: texts in tokens, made once for all workers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..studies.settings import Settings, TaskSettings
from .data import DataError, open_corpus, open_pairs, open_treebank

_OPEN = {"language_model": open_corpus, "translation": open_pairs, "parsing": open_treebank}


def prepare(asked: Iterable[Settings], folder: Path) -> None:
    """Open every corpus that trials ask for; DataError, with all of them, for those that are not there."""
    texts = {_key(settings.task): settings.task for settings in asked if settings.task.name in _OPEN}
    faults: dict[str, None] = {}
    for task in texts.values():
        try:
            _OPEN[task.name](task, folder)
        except DataError as error:
            faults.setdefault(str(error))
    if faults:
        raise DataError("\n".join(faults))


def _key(task: TaskSettings) -> tuple[str, str | None, str, int]:
    return task.name, task.corpus, task.tokens, task.pieces
