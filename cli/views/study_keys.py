"""Keys of study files: what each means, its type and its default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Literal, NamedTuple, get_args

from pydantic.fields import FieldInfo

from ...studies.catalog.tasks import require_task, task_names
from ...studies.claims.comparisons import ClaimSpec
from ...studies.expansions.gate import GateSettings
from ...studies.expansions.ladder import LadderSettings
from ...studies.presentation.kinds import kinds_of
from ...studies.resolve.training_budget import BudgetSettings
from ...studies.schema import search_settings, settings
from ...studies.text.strict_model import StrictModel, default_words, key_descriptions, type_words
from ...studies.text.units import WIDTH

_TABLES: Mapping[str, tuple[type[StrictModel], ...]] = {
    "study": (settings.StudySettings,),
    "model": (settings.ModelSettings,),
    "train": (settings.TrainSettings, BudgetSettings),
    "search": (search_settings.SearchSettings,),
    "decode": (settings.DecodeSettings,),
    "ladder": (LadderSettings,),
    "claim": (ClaimSpec,),
    "gate": (GateSettings,),
}
_LISTS = ("claim", "gate", "table", "curve")
_MOST_OWNERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEntry:
    """A key of study files.

    `of` names the tasks or the kinds of tables that have this key; it is empty if all have it.
    """

    table: str
    key: str
    type: str
    default: str
    description: str
    of: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysPage:
    """All keys of study files with one name, such as `width` in `[model]` and in `[[table]]`."""

    kind: Literal["keys"] = "keys"
    keys: Sequence[KeyEntry]


class KeyFact(NamedTuple):
    """A key of study files. Its name leaves out the table, and has dots between the keys of inline tables."""

    name: str
    field: FieldInfo
    description: str


def iter_keys(model: type[StrictModel], prefix: str = "") -> Iterator[KeyFact]:
    """Yield the keys of a table of study files.

    `model` is the Pydantic class of this table.

    A key that takes inline tables is followed by the keys of these tables.
    """
    described = key_descriptions(model)
    for key, field in model.model_fields.items():
        name = f"{prefix}{key}"
        yield KeyFact(name, field, " ".join(described.get(key, "").split()))
        for kind in tables_in(field.annotation):
            yield from iter_keys(kind, f"{name}.")


def tables_in(kind: Any) -> list[type[StrictModel]]:  # noqa: ANN401 -- a type of any form
    """Return the Pydantic models that occur in a type, for example in `list[Model] | None`."""
    own = [kind] if isinstance(kind, type) and issubclass(kind, StrictModel) else []
    return [*own, *(table for inner in get_args(kind) for table in tables_in(inner))]


def find_keys(name: str) -> list[KeyEntry]:
    """Return the study-file keys with this name, such as `grow_at` or `train.keep`.

    `[train] keep` is another spelling of `train.keep`.
    """
    wanted = ".".join(name.replace("[", " ").replace("]", " ").split())
    owners: dict[tuple[str, ...], list[str]] = {}
    for table, owner, model in _iter_tables():
        heading = f"[[{table}]]" if table in _LISTS else f"[{table}]"
        for fact in iter_keys(model):
            if f".{table}.{fact.name}".endswith(f".{wanted}"):
                texts = (heading, fact.name, type_words(fact.field), default_words(fact.field))
                owners.setdefault((*texts, fact.description), []).append(owner)
    return [
        KeyEntry(
            table=table, key=key, type=kind, default=default, description=text, of=list(filter(None, of))
        )
        for (table, key, kind, default, text), of in owners.items()
    ]


def key_names() -> set[str]:
    """Return the names of all study-file keys, without their tables."""
    return {fact.name.rpartition(".")[2] for _, _, model in _iter_tables() for fact in iter_keys(model)}


def _iter_tables() -> Iterator[tuple[str, str, type[StrictModel]]]:
    """Yield the name and the Pydantic model of each table of study files.

    The value between them is the task or the kind for which the table has these keys, or "" if it always has
    them.
    """
    yield from ((name, "", model) for name, models in _TABLES.items() for model in models)
    yield from (("task", name, require_task(name).settings) for name in task_names())
    for table in ("table", "curve"):
        yield from ((table, name, model) for name, model in kinds_of(table).items())


def format_key(entry: KeyEntry) -> str:
    """Return the lines about a study-file key: its table, type, default and meaning."""
    default = entry.default if entry.default == "required" else f"default {entry.default}"
    head = f"{entry.table} {entry.key} ({entry.type}; {default})"
    if of := entry.of:
        more = f" and {len(of) - _MOST_OWNERS} more" if len(of) > _MOST_OWNERS else ""
        head += f" of {', '.join(of[:_MOST_OWNERS])}{more}"
    return "\n".join(
        wrap(head, WIDTH, subsequent_indent="    ")
        + wrap(entry.description, WIDTH, initial_indent="  ", subsequent_indent="  ")
    )
