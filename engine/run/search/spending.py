"""What a search has spent of its budget, by the rows of its trainings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....studies.schema.search_settings import SearchBudget


def counts(row: Mapping[str, Any]) -> bool:
    """Whether a trial has been trained; in a race one is given up before it begins."""
    return bool(row["epochs"]) or row["status"] != "pruned"


def is_spent(budget: SearchBudget | None, rows: Sequence[Mapping[str, Any]], running: int) -> bool:
    """Whether a search's trainings, so many that run among them, have come to an end of its budget."""
    if budget is None:
        return False
    spent = {
        "trainings": len(rows) + running,
        "flops": sum(row["flops"] or 0 for row in rows),
        "hours": sum(row["seconds"] for row in rows) / 3600,
    }
    limits = {name: getattr(budget, name) for name in spent}
    return any(limit is not None and spent[name] >= limit for name, limit in limits.items())
