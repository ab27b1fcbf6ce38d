"""[[claim]]: what its keys mean, and a claim that has been read against its study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, field_validator

from ..labels import one_line
from ..settings import Level, Section
from .statements import Statement

Test = Literal["t", "permutation", "wilcoxon"]


class ClaimSpec(Section):
    """`[[claim]]`: a name for people, what holds if it is true, and where a paper says so.

    `level` is the confidence that the verdict needs, `test` what it is asked of.
    """

    name: Annotated[str, Field(min_length=1, max_length=200)]
    holds: Annotated[str, Field(max_length=4000)]
    source: str | None = None
    level: float = Field(default=0.95, ge=0.5, lt=1)
    test: Test = "t"

    @field_validator("name")
    @classmethod
    def printable(cls, name: str) -> str:
        """A name stands in a line of output."""
        if name != one_line(name):
            raise ValueError(f"expected one line of printable signs, got {name!r}")
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim with its statement written out; `varied` has the factors of several levels, with these."""

    spec: ClaimSpec
    statement: Statement
    varied: Mapping[str, tuple[Level, ...]]
