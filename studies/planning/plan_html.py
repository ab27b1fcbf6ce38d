"""A plan as a notebook shows it: the counts, a row for each model, and what is known before training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from ...diagnostics import replace_unprintable
from ..text.units import format_bytes, format_duration, plural, si_prefix
from .time_estimates import TimeEstimate

if TYPE_CHECKING:
    from .plan import ModelCost, Plan

_MAX_MODELS = 24
_NONE = "–"


def plan_html(plan: Plan) -> str:
    """Return a short table with the values of `study plan` that do not depend on the machine's settings."""
    unit, size = si_prefix(max((model.step_flops for model in plan.models), default=0))
    heads = ("model", "parameters", f"{unit}FLOPs/step", "memory", "trials", "est. per trial")
    rows = [_row(heads, "th"), *(_row(_cells(model, size), "td") for model in plan.models[:_MAX_MODELS])]
    more = len(plan.models) - _MAX_MODELS
    notes = [f"and {plural(more, 'model')} more"] if more > 0 else []
    items = "".join(f"<li>{_text(each)}</li>" for each in (*notes, *_notes(plan)))
    return f"<p>{_text(_counts(plan))}</p>\n<table>{''.join(rows)}</table>\n<ul>{items}</ul>"


def _counts(plan: Plan) -> str:
    stored, failed = sum(plan.counts.values()), plan.counts.get("failed", 0)
    part = [] if plan.subset_size is None else [f"{plan.subset_size:,} in this part"]
    lost = [f"{failed:,} of them failed"] if failed else []
    counts = [f"{stored:,} in the store", *lost, f"{plan.num_remaining:,} to run"]
    return " · ".join([plural(plan.total, "trial"), *part, *counts])


def _cells(model: ModelCost, size: float) -> tuple[str, ...]:
    memory = _NONE if model.memory is None else format_bytes(model.memory)
    numbers = (f"{model.parameters:,}", f"{model.step_flops / size:,.1f}", memory, f"{model.trials:,}")
    return (model.label, *numbers, _time(model.estimate))


def _notes(plan: Plan) -> Iterator[str]:
    """Yield the time of all remaining trials, facts and warnings about data, and what cannot be reached."""
    if plan.num_remaining and plan.estimate.seconds is not None:
        yield f"in all: {_time(plan.estimate)} of training, one trial after the other"
    yield from (f"data: {each}" for each in plan.data.facts)
    yield from (f"warning: {each}" for each in plan.data.warnings)
    yield from map(str, (*plan.reach_limits, *plan.short_reaches))
    yield from (f"over: {each.label}: {each.excess}" for each in plan.over_budget)


def _time(estimate: TimeEstimate) -> str:
    if estimate.seconds is None:
        return _NONE
    return f"{'≤ ' if estimate.basis == 'at most' else ''}{format_duration(estimate.seconds)}"


def _row(texts: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{_text(each)}</{tag}>' for each in texts)}</tr>"


def _text(text: str) -> str:
    """Return text without markup or characters that change how others are shown."""
    return escape(replace_unprintable(text))
