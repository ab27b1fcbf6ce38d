"""The base of every table of a study file: frozen, without unknown keys or converted types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from ...plugins import contract_faults


class StrictModel(BaseModel):
    """A table of a study file; the text below a key is its description, which `docs/studies.md` shows."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", use_attribute_docstrings=True)


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Annotation of a key with the names that it can have, which are listed if the key is missing."""

    list_names: Callable[[], Iterable[str]]


def class_faults(
    settings: type[BaseModel], base: type[BaseModel], given: Collection[str] = ("name",)
) -> list[str]:
    """List what a plug-in's class of settings lacks; keys in `given` need nothing."""
    missing = contract_faults(settings, base)
    if not (isinstance(settings, type) and issubclass(settings, base)):
        return missing
    fields = {key: field for key, field in settings.model_fields.items() if key not in given}
    bare = [key for key, field in fields.items() if not field.description]
    return [
        *missing,
        *(f"{key}: expected a text below it that says what it is" for key in bare),
        *(f"{key}: expected a default" for key, field in fields.items() if field.is_required()),
    ]
