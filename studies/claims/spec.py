"""[[claim]]: its keys, and a claim resolved within its study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, field_validator

from ..schema.level_names import one_line
from ..schema.settings import Level
from ..text.strict_model import StrictModel
from .comparisons import Statement

Test = Literal["pooled", "t", "permutation", "wilcoxon"]


class ClaimSpec(StrictModel):
    """`[[claim]]`: a name for people, what holds if it is true, and where a paper says so."""

    name: Annotated[str, Field(min_length=1, max_length=200, description="the claim in words, in one line")]
    holds: Annotated[str, Field(max_length=4000, description="what holds if the claim is true")]
    source: str | None = Field(default=None, description="where a paper says so, or its words")
    each: str | None = Field(
        default=None, description="a factor at each of whose levels alone the claim is made, one by one"
    )
    level: float = Field(
        default=0.95, ge=0.5, lt=1, description="the confidence of the claim's verdicts together"
    )
    test: Test = Field(
        default="pooled",
        description="what decides: the t interval with a variance of all comparable cells, the t interval "
        "of the comparison alone, or a test that assumes less",
    )

    @field_validator("name")
    @classmethod
    def check_printable(cls, name: str) -> str:
        """Return the name, which must fit in one line of output."""
        if name != one_line(name):
            raise ValueError(f"expected one line of printable signs, got {name!r}")
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim with its resolved statement; `varied_factors` are those with several levels.

    In every cell, the level of another factor determines that of each of `dependent_factors`.
    """

    spec: ClaimSpec
    statement: Statement
    varied_factors: Mapping[str, tuple[Level, ...]]
    dependent_factors: frozenset[str]
