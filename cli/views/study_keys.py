"""Keys of study files: what each means, its type and its default."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import NamedTuple

from pydantic.fields import FieldInfo

from ...errors import nearest_hint
from ...studies.catalog.tasks import require_task, task_names
from ...studies.own_data.own_corpus import own_data_forms
from ...studies.presentation.kinds import Role
from ...studies.presentation.reader import KINDS
from ...studies.schema.tables import all_tables
from ...studies.text.key_synonyms import ELSEWHERE, SYNONYMS
from ...studies.text.strict_model import (
    PartReader,
    StrictModel,
    default_words,
    key_descriptions,
    readers_in,
    tables_in,
    type_words,
)
from ...studies.text.units import WIDTH

_OTHER_NAMES = {"figure": "curve"}
_MOST_OWNERS = 4
_PAGES = {"claim": "docs/reference/keys-claims.md"}
_EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "claim": (
        "max_length[task=sort, mixer=sa] > max_length[task=sort, mixer=conv(k=20)] + 2",
        "all(dev_loss[mixer=m] < dev_loss[mixer=sa] for m in mixer except [sa])",
        "best(max_length[task=sort]) in [sa, conv(k=20)]",
        "mean(test_accuracy[mixer=sa]) within 0.01 of mean(test_accuracy[mixer=gru])",
        "speedup(sa over conv(k=20), steps_to[dev_loss <= 1.5]) > 1.5",
    )
}


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
class StudyTableEntry:
    """A table of study files, with the keys that it always has.

    `kinds` are the values of its key `kind`, on which its other keys depend. `examples` are values of the key
    `holds` of claims. `page` is a page of the documents, or "".
    """

    table: str
    summary: str
    keys: Sequence[KeyEntry]
    kinds: Sequence[str]
    examples: Sequence[str]
    page: str


class KeyFact(NamedTuple):
    """A key of study files. Its name leaves out the table, and has dots between the keys of inline tables."""

    name: str
    field: FieldInfo
    description: str


def iter_keys(model: type[StrictModel], prefix: str = "") -> Iterator[KeyFact]:
    """Yield the keys of a table of study files, whose Pydantic class is `model`.

    A key that takes inline tables is followed by the keys of these tables.
    """
    described = key_descriptions(model)
    for key, field in model.model_fields.items():
        name = f"{prefix}{key}"
        yield KeyFact(name, field, " ".join(described.get(key, "").split()))
        for kind in tables_in(field.annotation):
            if issubclass(kind, StrictModel):
                yield from iter_keys(kind, f"{name}.")


def find_keys(name: str) -> list[KeyEntry]:
    """Return the study-file keys with this name, such as `grow_at`, `train.keep` or `[train] keep`."""
    wanted = _plain(name)
    return _entries(lambda table, key: f".{table}.{key}".endswith(f".{wanted}"))


def find_table(name: str) -> StudyTableEntry | None:
    """Return the table of study files with this name, such as `claim` or `[[claim]]`, or None."""
    table = _OTHER_NAMES.get(_plain(name), _plain(name))
    if table not in all_tables():
        return None
    return StudyTableEntry(
        table=_heading(table),
        summary=all_tables()[table].summary,
        keys=[each for each in _entries(lambda owner, _: owner == table) if not each.of],
        kinds=list(KINDS[table]) if table in ("table", "curve") else (),
        examples=_EXAMPLES.get(table, ()),
        page=_PAGES.get(table, ""),
    )


def _plain(name: str) -> str:
    return ".".join(name.replace("[", " ").replace("]", " ").split())


def _heading(table: str) -> str:
    return f"[[{table}]]" if all_tables()[table].is_list else f"[{table}]"


def _entries(is_wanted: Callable[[str, str], bool]) -> list[KeyEntry]:
    """Return the keys that `is_wanted` accepts; it gets the table and the dotted key."""
    owners: dict[tuple[str, ...], list[str]] = {}
    for table, owner, fact in _iter_facts():
        if is_wanted(table, fact.name):
            texts = (_heading(table), fact.name, type_words(fact.field), default_words(fact.field))
            owners.setdefault((*texts, fact.description), []).append(owner)
    return [
        KeyEntry(
            table=table,
            key=key,
            type=kind,
            default=default,
            description=text,
            of=list(dict.fromkeys(filter(None, of))),
        )
        for (table, key, kind, default, text), of in owners.items()
    ]


def key_names() -> set[str]:
    """Return the names of all tables and keys of study files, without the tables of the keys."""
    return {*all_tables(), *(fact.name.rpartition(".")[2] for _, _, fact in _iter_facts())}


def unknown_key(name: str) -> str | None:
    """Return the message about a dotted name that no key has, such as `model.layers`, or None."""
    if not re.fullmatch(r"\[{0,2}[A-Za-z]\w*\]{0,2}[. ]\w+(\.\w+)*", name):
        return None
    table, _, key = _plain(name).rpartition(".")
    if key in ELSEWHERE:
        return f"unknown key '{name}'; {ELSEWHERE[key]}"
    known = {f"{owner}.{fact.name}" for owner, _, fact in _iter_facts()}
    return f"unknown key '{name}'{nearest_hint(f'{table}.{SYNONYMS.get(key, key)}', known)}"


def _iter_facts() -> Iterator[tuple[str, str, KeyFact]]:
    """Yield each key of study files after its table, and the name on which it depends.

    This is the name of a task, of a kind, or of a part such as an optimizer; "" if all have the key.
    """
    for name, each in all_tables().items():
        yield from ((name, "", fact) for model in each.models() for fact in iter_keys(model))
    for task in task_names():
        yield from (("task", task, fact) for fact in iter_keys(require_task(task).settings))
    for task, key, form in own_data_forms():
        yield from (("task", task, fact) for fact in iter_keys(form, f"{key}."))
    roles: tuple[Role, ...] = ("table", "curve")
    for table in roles:
        for kind, model in KINDS[table].items():
            yield from ((table, kind, fact) for fact in iter_keys(model))
    for table, part, reader in _parts():
        common = {fact.name for fact in iter_keys(reader.base, f"{part}.")}
        for name in reader.names:
            facts = (fact for fact in iter_keys(reader.find(name), f"{part}.") if fact.name not in common)
            yield from ((table, name, fact) for fact in facts)


def _parts() -> Iterator[tuple[str, str, PartReader]]:
    """Yield the parts of a study whose keys depend on their names, each after its table and its key."""
    for name, table in all_tables().items():
        for model in table.models():
            for key, field in model.model_fields.items():
                yield from ((name, key, reader) for reader in readers_in(field))


def format_table(entry: StudyTableEntry) -> str:
    """Return the lines about a table of study files: its meaning, its keys, and examples."""
    lines = wrap(f"{entry.table}: {entry.summary}", WIDTH, subsequent_indent="    ")
    if entry.kinds:
        text = f"kind: {', '.join(entry.kinds)}; activemem show KIND lists the keys"
        lines += wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")
    keys = ["\n".join(key_lines(each, each.key)) for each in entry.keys]
    if entry.examples:
        keys.append("\n".join(["examples of holds", *(f"  {example}" for example in entry.examples)]))
    if entry.page:
        keys.append(f"all forms: {entry.page}")
    return "\n\n".join(["\n".join(lines), *keys])


def format_key(entry: KeyEntry) -> str:
    """Return the lines about a study-file key: its table, type, default and meaning."""
    return "\n".join(key_lines(entry, f"{entry.table} {entry.key}"))


def key_lines(entry: KeyEntry, heading: str, indent: int = 0) -> list[str]:
    """Return the lines about a key below a heading: its type, its default, who has it, and its meaning."""
    default = entry.default if entry.default in ("", "required") else f"default {entry.default}"
    head = f"{heading} ({'; '.join(filter(None, (entry.type, default)))})"
    if of := entry.of:
        more = f" and {len(of) - _MOST_OWNERS} more" if len(of) > _MOST_OWNERS else ""
        head += f" of {', '.join(of[:_MOST_OWNERS])}{more}"
    below = " " * (indent + 2)
    return [
        *wrap(head, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 4)),
        *wrap(entry.description, WIDTH, initial_indent=below, subsequent_indent=below),
    ]
