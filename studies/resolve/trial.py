"""One trial: its settings, and the id that is the hash of everything that determines its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...storage import StoreError
from ..catalog.tasks import TaskSettings, require_task
from ..schema.level_names import level_name
from ..schema.settings import Level, ModelSettings, TrialSettings, read_recipe
from .plugin_code import digest

RESULTS_VERSION = 1
"""Increased whenever a change of the code changes results, so that older ones are not reused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One cell of a study with one seed: the unit that is trained, stored and counted.

    `levels` names the factors' levels, or a search point's values, as the study file has them.
    """

    study: str
    levels: Mapping[str, Level]
    settings: TrialSettings
    id: str = field(init=False)  # 16 hex digits

    def __post_init__(self) -> None:
        """Compute the id."""
        object.__setattr__(self, "id", trial_id(self.settings))

    def __repr__(self) -> str:
        levels = ", ".join(f"{name}={level_name(level)}" for name, level in self.levels.items())
        return f"<Trial {self.id} of {self.study}: {levels}>"

    def to_json(self) -> str:
        """Return the trial as text that `from_json` reads."""
        record = {"study": self.study, "levels": dict(self.levels)}
        return json.dumps({**record, "settings": settings_to_json(self.settings)})

    @classmethod
    def from_json(cls, text: str) -> Trial:
        """Return the trial that `to_json` wrote; its id is computed anew."""
        record = json.loads(text)
        settings = settings_from_json(record["settings"])
        return cls(study=record["study"], levels=record["levels"], settings=settings)


def settings_to_json(settings: TrialSettings) -> str:
    """Return the settings as rows and checkpoints keep them, each under its name in ids."""
    return settings.model_dump_json(by_alias=True)


def settings_from_json(text: str) -> TrialSettings:
    """Return the settings that `settings_to_json` wrote; raises `StoreError` for any other text.

    Keys that the task does not have are dropped: rows of earlier versions have the keys of all tasks.
    """
    try:
        record = json.loads(text)
        return TrialSettings.model_validate_json(json.dumps({**record, "task": _known_keys(record["task"])}))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(f"expected the settings of a trial ({' '.join(str(error).split())})") from error


def task_from_json(text: str) -> TaskSettings:
    """Return the task of settings that `settings_to_json` wrote, given its part of them; raises as that."""
    try:
        stored = json.loads(text)
        return require_task(stored["name"]).settings.model_validate(_known_keys(stored))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(f"expected the task of a trial ({' '.join(str(error).split())})") from error


def model_from_json(text: str) -> ModelSettings:
    """Return the model of the settings that `settings_to_json` wrote; raises `StoreError` for any other text.

    It can be read without the plug-in that the trial's task comes from.
    """
    try:
        return ModelSettings.model_validate_json(json.dumps(json.loads(text)["model"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"expected the model of a trial ({' '.join(str(error).split())})") from error


def _known_keys(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a row's task that the task still has, by their names."""
    fields = require_task(task["name"]).settings.model_fields
    stored = {name: task.get(field.serialization_alias or name) for name, field in fields.items()}
    return {name: value for name, value in stored.items() if value is not None}


def trial_id(settings: TrialSettings) -> str:
    """Return the id of the trial with these settings: the first 16 hex digits of a SHA-256.

    The hash covers the settings as canonical JSON without values that equal their defaults, with the
    recipe's identity text, the digests of the plug-ins' source, and RESULTS_VERSION. So a key added later
    with a default does not change older ids; a renamed key keeps its old name here, as its serialization
    alias.
    """
    record = settings.model_dump(mode="json", exclude_defaults=True, by_alias=True)
    record["model"]["recipe"] = read_recipe(settings.model.recipe).identity
    if settings.code:
        record["code"] = {what: digest(code) for what, code in settings.code.items()}
    record["edition"] = RESULTS_VERSION
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
