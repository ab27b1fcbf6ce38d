"""`[when]`: conditional factors, which exist only in cells with certain levels of other factors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Self

from ...errors import nearest_hint
from ..schema.design import DesignReader, Expansion
from ..schema.factors import SEED, Conditions
from ..schema.settings import Level
from ..schema.tables import StudyTable
from ..text.document import Diagnostics
from ..text.strict_model import format_value
from ..text.toml_positions import KeyPath

TABLE = "when"


class When(Expansion):
    """Expansion that makes factors conditional on the levels of other factors."""

    table = StudyTable(
        summary="for each factor that not every cell has, the levels of other factors that it needs"
    )

    @classmethod
    def read(cls, diagnostics: Diagnostics) -> Self | None:
        """Return the expansion; report a fault if the study is a search."""
        if diagnostics.table(TABLE) and diagnostics.has_search:
            message = "conditions are only for grids: in a search, write choice(…) in the recipe"
            diagnostics.report((TABLE,), message, key=True)
            return None
        return cls()

    def read_cells(self, reader: DesignReader) -> Mapping[str, Any]:
        conditions = {
            name: {other: tuple(reader.find(other, each) for each in of) for other, of in condition.items()}
            for name, condition in read_conditions(reader.diagnostics, reader.names, reader.around).items()
        }
        if conditions and not reader.kind.has_conditions:
            design = reader.header.design.name
            message = f"in a {design} design every factor is in every cell: remove [when]"
            reader.diagnostics.report((TABLE,), message)
        for name, condition in conditions.items():
            for other, of in condition.items():
                for each in of:
                    reader.check_levels((TABLE, name), {other: each})
        return {"conditions": conditions}


EXPANSION = When


def read_conditions(diagnostics: Diagnostics, names: Collection[str], fixed: Collection[str]) -> Conditions:
    """Return the valid conditions of factors, and report the others.

    `names` are the factors without the seed; `fixed` are factors that are present in every cell.
    """
    conditions: dict[str, dict[str, tuple[Level, ...]]] = {}
    table = diagnostics.table(TABLE)
    for name, condition in table.items():
        path: KeyPath = (TABLE, name)
        if name not in names:
            diagnostics.report(path, f"unknown factor '{name}'{nearest_hint(name, names)}", key=True)
        elif name in fixed:
            diagnostics.report(
                path,
                f"every cell has {name}, because it is in `around`: remove the condition of {name}",
                key=True,
            )
        elif not isinstance(condition, Mapping) or not condition:
            expected = 'expected levels of other factors, such as { mixer = "conv" }'
            diagnostics.report(path, f"{expected}, got {format_value(condition)}")
        else:
            conditions[name] = {
                other: tuple(levels if isinstance(levels, list) else [levels])
                for other, levels in condition.items()
                if _is_other(diagnostics, (*path, other), names)
            }
    order = list(_ordered(conditions))
    for name in conditions.keys() - set(order):
        diagnostics.report((TABLE, name), f"{name} depends on itself", key=True)
    return {name: conditions[name] for name in order}


def _is_other(diagnostics: Diagnostics, path: KeyPath, names: Collection[str]) -> bool:
    """Return whether a condition depends on a valid factor; report a fault if not.

    `path` is `("when", NAME, OTHER)`: the condition of the factor NAME depends on the factor OTHER.
    """
    _, name, other = path
    if other == SEED:
        diagnostics.report(
            path, "a condition cannot name the seed, because every cell has every seed", key=True
        )
    elif other == name:
        diagnostics.report(path, f"{name} depends on itself", key=True)
    elif other not in names:
        diagnostics.report(path, f"unknown factor '{other}'{nearest_hint(str(other), names)}", key=True)
    else:
        return True
    return False


def _ordered(conditions: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield conditional factors, each after those that its condition names; leave out cyclic conditions."""
    done: set[str] = set()
    while ready := [
        name
        for name, condition in conditions.items()
        if name not in done and not (condition.keys() & conditions.keys()) - done
    ]:
        done.update(ready)
        yield from ready
