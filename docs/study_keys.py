"""What the documents take from the code of studies: the keys of each table of a study file."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, get_args

from pydantic.fields import FieldInfo

from activemem.studies.catalog.optimisers import OwnOptimizerSettings
from activemem.studies.catalog.schedules import OwnScheduleSettings
from activemem.studies.catalog.tasks import require_task, task_names
from activemem.studies.claims.spec import ClaimSpec
from activemem.studies.ladder import LadderSettings
from activemem.studies.presentation.curve import CurveSpec
from activemem.studies.presentation.effect_figures import EffectsCurveSpec, InteractionSpec
from activemem.studies.presentation.effects import EffectsSpec
from activemem.studies.presentation.scaling import ScalingSpec, ScalingTableSpec
from activemem.studies.presentation.scores import AggregateSpec, ProfileSpec
from activemem.studies.presentation.search import FrontSpec, IncumbentSpec, PointsSpec
from activemem.studies.presentation.table import TableSpec
from activemem.studies.schema import search_settings, settings, training
from activemem.studies.text.key_words import default_words, type_words
from activemem.studies.text.strict_model import StrictModel

TABLES: Mapping[str, type[StrictModel]] = {
    "study": settings.StudySettings,
    "model": settings.ModelSettings,
    "train": training.TrainSettings,
    "optimizer": OwnOptimizerSettings,
    "schedule": OwnScheduleSettings,
    "ladder": LadderSettings,
    "search": search_settings.SearchSettings,
    "decode": settings.DecodeSettings,
    "table": TableSpec,
    "table_effects": EffectsSpec,
    "table_aggregate": AggregateSpec,
    "table_scaling": ScalingTableSpec,
    "table_points": PointsSpec,
    "curve": CurveSpec,
    "curve_effects": EffectsCurveSpec,
    "curve_interaction": InteractionSpec,
    "curve_profile": ProfileSpec,
    "curve_scaling": ScalingSpec,
    "curve_incumbent": IncumbentSpec,
    "curve_front": FrontSpec,
    "claim": ClaimSpec,
}
"""Each table of a study file whose keys are known, with its model."""


def keys(table: str) -> str:
    """A Markdown table of a table's keys, those of inline tables by their dotted names.

    Keys without descriptions are followed by what their models' docstrings say of them.
    """
    rows, texts = _rows(TABLES[table], ""), [] if _is_described(TABLES[table]) else _docstrings(TABLES[table])
    return "\n".join([_markdown_table(rows), *texts])


def task_keys() -> str:
    """A Markdown table for each set of keys that tasks take beside their names."""
    takers: dict[str, list[str]] = {}
    for name in task_names():
        rows = _rows(require_task(name).settings, "")[1:]
        takers.setdefault(_markdown_table(rows) if rows else "", []).append(f"`{name}`")
    plain = ", ".join(takers.pop(""))
    found = [f"Of {' and '.join(names)}:\n\n{table}" for table, names in takers.items()]
    return "\n\n".join([*found, f"No other keys: {plain}."])


def _markdown_table(rows: list[list[str]]) -> str:
    """Rows under their heads."""
    heads = ["key", "type", "default", "meaning"][: len(rows[0])]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, [":--"] * len(heads), *rows])


def _rows(model: type[StrictModel], prefix: str) -> list[list[str]]:
    """A line for every key of a model, each inline table followed by its own keys."""
    rows: list[list[str]] = []
    for key, field in model.model_fields.items():
        name = f"{prefix}{key}"
        meaning = [" ".join(field.description.split())] if field.description else []
        rows.append([f"`{name}`", _type(field), _default(field), *meaning])
        for kind in _tables_in(field.annotation):
            rows += _rows(kind, f"{name}.")
    return rows


def _tables_in(kind: Any) -> list[type[StrictModel]]:  # noqa: ANN401 -- a type of any form
    """The tables in a type: of a list of tables theirs."""
    own = [kind] if isinstance(kind, type) and issubclass(kind, StrictModel) else []
    return [*own, *(table for inner in get_args(kind) for table in _tables_in(inner))]


def _is_described(model: type[StrictModel]) -> bool:
    return all(field.description for field in model.model_fields.values())


def _docstrings(model: type[StrictModel]) -> list[str]:
    """The docstrings of a model and of the inline tables in it, a paragraph each, below an empty line."""
    inner = [field.annotation for field in model.model_fields.values()]
    models = [model, *(one for one in inner if isinstance(one, type) and issubclass(one, StrictModel))]
    return [text for one in models for text in ("", " ".join((inspect.getdoc(one) or "").split()))]


def _type(field: FieldInfo) -> str:
    """Return what a key takes, its words as code."""
    return re.sub(r'("[^"]*")', r"`\1`", type_words(field))


def _default(field: FieldInfo) -> str:
    """Return the value of a key that is left out, as code if it is a value."""
    words = default_words(field)
    return words if words in ("required", "none", "empty", "its keys'") else f"`{words}`"


KEYS = {f"keys_{table}": partial(keys, table) for table in TABLES} | {"keys_task": task_keys}
"""What can stand between the marks of a document, by name."""
