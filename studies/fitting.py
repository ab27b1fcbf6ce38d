"""Whether a table fits its study: known factors, a known metric, and nothing but seeds to average over."""

from __future__ import annotations

from collections.abc import Mapping

from .factors import SEED
from .faults import nearest
from .labels import level_text
from .metrics import METRICS
from .published import published_tables
from .settings import Level, TableSpec


def misfits(
    spec: TableSpec, factors: Mapping[str, tuple[Level, ...]], paper: str | None
) -> list[tuple[str, str]]:
    """Everything in a table's specification that does not fit a study: the key, and what is wrong with it."""
    wrong = [
        (key, f"unknown factor '{factor}'{nearest(factor, factors)}")
        for key, factor in (("rows", spec.rows), ("columns", spec.columns))
        if factor not in factors
    ]
    if spec.rows == spec.columns:
        wrong.append(("columns", f"expected a factor other than the rows', got '{spec.columns}'"))
    elif not wrong and (loose := _loose(spec, factors)):
        wrong.append(("columns", f"expected every other factor but {SEED} to have one level, got {loose}"))
    if spec.value not in METRICS:
        wrong.append(("value", f"unknown metric '{spec.value}'{nearest(spec.value, METRICS)}"))
    printed = [name for known, name in published_tables() if known == paper]
    if spec.published is not None and spec.published not in printed:
        where = f"no published table '{spec.published}' of {paper or 'a paper: [study] names none'}"
        wrong.append(("published", where + nearest(spec.published, printed)))
    return wrong


def _loose(spec: TableSpec, factors: Mapping[str, tuple[Level, ...]]) -> str:
    """The factors, with their levels, that a cell of the table would mix."""
    return " and ".join(
        f"{factor} ({', '.join(map(level_text, levels))})"
        for factor, levels in factors.items()
        if factor not in (spec.rows, spec.columns, SEED) and len(levels) > 1
    )
