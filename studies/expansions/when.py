"""`[when]`: conditional factors, which exist only in cells with certain levels of other factors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from ...errors import nearest_hint
from ..schema.design import DesignReader, Expansion
from ..schema.factors import SEED, as_list
from ..schema.settings import Level
from ..schema.tables import StudyTable
from ..text.document import Diagnostics
from ..text.strict_model import format_value

TABLE = "when"

_Condition = dict[str, tuple[Level, ...]]


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
        """Return the valid conditions, each after those of the factors that it names. Report the others."""
        report, found = reader.diagnostics.report, dict[str, _Condition]()
        for name, condition in reader.diagnostics.table(TABLE).items():
            if name not in reader.names:
                message = f"unknown factor '{name}'{nearest_hint(name, reader.names)}"
                report((TABLE, name), message, key=True)
            elif not isinstance(condition, Mapping) or not condition:
                expected = 'expected levels of other factors, such as { mixer = "conv" }'
                report((TABLE, name), f"{expected}, got {format_value(condition)}")
            else:
                found[name] = _read_condition(reader, name, condition)
        ordered = dict[str, _Condition]()
        while ready := [
            name
            for name in found
            if name not in ordered and not found[name].keys() & (found.keys() - ordered.keys())
        ]:
            ordered |= {name: found[name] for name in ready}
        for name in found.keys() - ordered:
            report((TABLE, name), f"{name} depends on itself", key=True)
        for name in (
            () if reader.kind.has_conditions else [each for each in ordered if each not in reader.around]
        ):
            report((TABLE, name), f"every cell has {name} in this design: remove its condition", key=True)
            del ordered[name]
        return {"conditions": ordered}


def _read_condition(reader: DesignReader, name: str, given: Mapping[str, Any]) -> _Condition:
    """Return the levels that the condition of a factor names, by factor; report faults."""
    condition: _Condition = {}
    for other, levels in given.items():
        if other == SEED:
            fault = "a condition cannot name the seed, because every cell has every seed"
        elif other == name:
            fault = f"{name} depends on itself"
        elif other not in reader.names:
            fault = f"unknown factor '{other}'{nearest_hint(other, reader.names)}"
        else:
            condition[other] = tuple(reader.find(other, each) for each in as_list(levels))
            for each in condition[other]:
                reader.check_levels((TABLE, name), {other: each})
            continue
        reader.diagnostics.report((TABLE, name, other), fault, key=True)
    return condition


EXPANSION = When
