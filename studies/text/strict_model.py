"""The base of every table of a study file: frozen, without unknown keys or converted types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A table of a study file; the text below a key is its description, which `docs/studies.md` shows."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", use_attribute_docstrings=True)


@dataclass(frozen=True, slots=True)
class KnownNames:
    """In the annotation of a key: the names that it can have, listed if the key is missing."""

    list_names: Callable[[], Iterable[str]]
