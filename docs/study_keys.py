"""Generated parts of the documents: the keys of each table of a study file."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from functools import partial

from pydantic.fields import FieldInfo

from activemem.cli.machine_settings import MachineSettings
from activemem.cli.views.study_keys import iter_keys
from activemem.plugins import load_plugin, plugin_path, unload_plugin
from activemem.reporting.manuscript.paper_file import PaperKeys
from activemem.studies.catalog.optimisers import OwnOptimizerSettings, OwnScheduleSettings
from activemem.studies.catalog.samplers import SAMPLERS
from activemem.studies.catalog.tasks import require_task, task_names
from activemem.studies.presentation.figure_keys import CellFigure
from activemem.studies.presentation.reader import KINDS
from activemem.studies.resolve.training_budget import BudgetSettings
from activemem.studies.schema import search_settings, settings
from activemem.studies.schema.tables import all_tables
from activemem.studies.text.strict_model import StrictModel, default_words, key_descriptions, type_words

_MODELS: Mapping[str, type[StrictModel]] = {
    "train": settings.TrainSettings,
    "budget": BudgetSettings,
    "optimizer": OwnOptimizerSettings,
    "schedule": OwnScheduleSettings,
    "settings": MachineSettings,
    "paper": PaperKeys,
    "table": KINDS["table"]["cells"],
}
for plugin in ("effects", "aggregate"):  # kinds that come with a plug-in
    load_plugin(plugin)
for role in ("table", "curve"):
    _MODELS |= {f"{role}_{name}": kind for name, kind in KINDS[role].items()}
for plugin in ("effects", "aggregate"):
    unload_plugin(str(plugin_path(plugin)))

TABLES = {name: table.models() for name, table in all_tables().items()}
TABLES |= {name: (model,) for name, model in _MODELS.items()}
"""The models of each table of a study file, `activemem.toml` or `paper.toml` with fixed keys."""


def keys(table: str) -> str:
    """Return a Markdown table of a table's keys, those of inline tables by their dotted names.

    Keys without descriptions are followed by their models' docstrings.
    """
    rows = [row for model in TABLES[table] for row in _rows(model, "")]
    texts = (text for model in TABLES[table] if not _is_described(model) for text in _docstrings(model))
    return "\n".join([_markdown_table(rows), *texts])


def cell_figure_keys() -> str:
    """Return a Markdown table of the keys of cell figures, with the kinds that support each."""
    kinds = {name: kind for name, kind in KINDS["curve"].items() if issubclass(kind, CellFigure)}
    rows: dict[str, list[str]] = {}
    takers: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        for row in _rows(kind, ""):
            rows.setdefault(row[0], row)
            takers.setdefault(row[0], []).append(name)
    rows["`kind`"][1] = " or ".join(f'`"{name}"`' for name in kinds)
    for key, row in rows.items():
        if len(takers[key]) < len(kinds):
            row[3] += f" ({', '.join(takers[key])})"
    return _markdown_table(list(rows.values()))


def task_keys() -> str:
    """Return a Markdown table for each set of keys of tasks."""
    takers: dict[str, list[str]] = {}
    for name in task_names():
        rows = _rows(require_task(name).settings, "")[1:]
        takers.setdefault(_markdown_table(rows) if rows else "", []).append(f"`{name}`")
    plain = ", ".join(takers.pop(""))
    found = [f"Of {' and '.join(names)}:\n\n{table}" for table, names in takers.items()]
    return "\n\n".join([*found, f"No other keys: {plain}."])


def _markdown_table(rows: list[list[str]]) -> str:
    """Return rows with a header as a Markdown table."""
    heads = ["key", "type", "default", "meaning"][: len(rows[0])]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, [":--"] * len(heads), *rows])


def _rows(model: type[StrictModel], prefix: str) -> list[list[str]]:
    """Return a row for each key of a model, with the keys of inline tables after each."""
    return [
        [f"`{name}`", _type(field), _default(field), *([description] if description else [])]
        for name, field, description in iter_keys(model, prefix)
    ]


def _is_described(model: type[StrictModel]) -> bool:
    return key_descriptions(model).keys() >= model.model_fields.keys()


def _docstrings(model: type[StrictModel]) -> list[str]:
    """Return the docstrings of a model and of the inline tables in it, separated by empty lines."""
    inner = [field.annotation for field in model.model_fields.values()]
    models = [model, *(one for one in inner if isinstance(one, type) and issubclass(one, StrictModel))]
    return [text for one in models for text in ("", " ".join((inspect.getdoc(one) or "").split()))]


def _type(field: FieldInfo) -> str:
    """Return a description of a key's type, with literal values as code."""
    return re.sub(r'("[^"]*")', r"`\1`", type_words(field))


def _default(field: FieldInfo) -> str:
    """Return the default value of a key, as code if it is a value."""
    words = default_words(field)
    return words if words in ("", "required", "none", "empty") else f"`{words}`"


def search_part_keys() -> str:
    """Return a Markdown table of the keys of samplers and schedulers that have their own."""
    schedulers = [(name, search_settings.scheduler_keys(name)) for name in search_settings.SCHEDULERS]
    samplers = [(name, SAMPLERS[name].settings) for name in SAMPLERS]
    return _part_keys([*samplers, *schedulers])


def design_keys() -> str:
    """Return a Markdown table of the keys of designs that have their own, which come with a plug-in."""
    file = load_plugin("sampled_designs").__file__
    keys = _part_keys([(name, settings.find_design(name).settings_class) for name in settings.DESIGNS])
    unload_plugin(file)
    return keys


def _part_keys(parts: list[tuple[str, type[StrictModel]]]) -> str:
    models: dict[type[StrictModel], list[str]] = {}
    for name, model in parts:
        models.setdefault(model, []).append(f"`{name}`")
    rows = [
        [" and ".join(names), *row]
        for model, names in models.items()
        for row in _rows(model, "")
        if row[0] != "`name`"
    ]
    heads = ["of", "key", "type", "default", "meaning"]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, [":--"] * len(heads), *rows])


KEYS = {f"keys_{table}": partial(keys, table) for table in TABLES} | {
    "keys_task": task_keys,
    "keys_curve": cell_figure_keys,
    "keys_search_parts": search_part_keys,
    "keys_designs": design_keys,
}
"""The generators by the name in a document's mark."""
