"""Text output about trained models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...reporting.kept_models import KeptModel
from ...studies.catalog.metrics import METRICS_AND_COSTS, find_metric, format_number, metric_family
from ...studies.catalog.tasks import require_task
from ...studies.text.units import align_columns

if TYPE_CHECKING:
    from ..pages import ModelScorePage, ModelShowPage

_MISSING = "—"


def format_kept_models(models: Sequence[KeptModel], metric: str | None) -> list[str]:
    """Return a line for each model, in columns: its trial, its levels and a metric."""
    factors = list(dict.fromkeys(name for model in models for name in model.levels))
    heading = ["trial", *factors, *([metric] if metric else [])]
    rows = [
        [
            model.trial,
            *(str(model.levels.get(name, _MISSING)) for name in factors),
            *([_value(model, metric)] if metric else []),
        ]
        for model in models
    ]
    return align_columns([heading, *rows])


def format_model(model: ModelShowPage) -> Iterator[str]:
    """Yield the facts about a model in lines."""
    task = require_task(model.settings["task"]["name"])
    yield model.recipe
    yield ""
    yield f"  trial        {model.trial} of {model.study}"
    yield f"  levels       {', '.join(f'{name} = {level}' for name, level in model.levels.items())}"
    yield f"  task         {task.name}: {task.summary}"
    yield f"  parameters   {model.parameters:,}"
    yield f"  written by   activemem {model.version}" + (f" at {model.commit}" if model.commit else "")
    yield f"  use          activemem model {', '.join(model.uses)}"
    yield ""
    names = max((len(name) for name in model.metrics), default=0)
    for name, value in model.metrics.items():
        yield f"  {name:<{names}}   {_format(name, value)}"


def format_score(score: ModelScorePage) -> list[str]:
    """Format a text's score as lines: the number of tokens and words, the loss and the perplexity."""
    per_byte = "unknown per byte, because the tokens do not keep all of the text"
    if score.bits_per_byte is not None:
        per_byte = f"{score.bits_per_byte:.4f} per byte"
    return [
        f"{score.tokens:,} tokens, {score.words:,} words",
        f"  loss              {score.loss:.4f} nats per token",
        f"  bits              {score.bits_per_token:.4f} per token, {per_byte}",
        f"  perplexity        {format_number(score.word_perplexity, 2)} per word",
    ]


def _value(model: KeptModel, metric: str) -> str:
    return _format(metric, model.metrics[metric]) if metric in model.metrics else _MISSING


def _format(name: str, value: float) -> str:
    return find_metric(name).format(value) if metric_family(name) in METRICS_AND_COSTS else f"{value:.6g}"
