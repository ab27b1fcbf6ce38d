"""Trials in the form for trackers: a name usable for folders, and flat settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..studies.resolve.trial import Trial
from ..studies.schema.factors import level_name
from .contract import Setting, TrackedTrial

_MAX_NAME_LENGTH = 80
_NOT_IN_NAMES = re.compile(r"[^\w.=+-]+", re.ASCII)


def tracked_trial(trial: Trial) -> TrackedTrial:
    """Return a trial with all its settings, as `train.batch_size`, and the levels of its factors."""
    levels = {name: level_name(level) for name, level in trial.levels.items()}
    named = {**levels, "seed": str(trial.settings.seed)}
    words = _NOT_IN_NAMES.sub("_", ",".join(f"{name}={text}" for name, text in named.items()))
    settings = dict(_flat("", trial.settings.model_dump(mode="json")))
    return TrackedTrial(
        id=trial.id,
        study=trial.study,
        name=f"{words[:_MAX_NAME_LENGTH]}-{trial.id}",
        settings={**settings, **trial.levels, "seed": trial.settings.seed},
    )


def _flat(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Setting]]:
    """Yield every non-empty setting by its dotted name; lists as JSON."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{name}.", value)
        elif isinstance(value, list):
            yield prefix + name, json.dumps(value)
        elif value is not None:
            yield prefix + name, value
