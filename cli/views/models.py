"""Text output about trained models: lists, the facts about one model, and scores of texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...reporting.kept_models import KeptModel
from ...studies.catalog.metrics import METRICS_AND_COSTS, find_metric, format_number, metric_family
from ...studies.text.units import align_columns

if TYPE_CHECKING:
    from ...engine.inference.trained_model import TrainedModel
    from ...engine.objectives.text_scores import TextScore

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


def format_model(trained: TrainedModel) -> Iterator[str]:
    """Yield the facts about a model in lines."""
    file, task = trained.file, trained.file.trial.settings.task
    levels = ", ".join(f"{name} = {level}" for name, level in file.trial.levels.items())
    yield trained.recipe
    yield ""
    yield f"  trial        {file.trial.id} of {file.trial.study}"
    yield f"  levels       {levels}"
    yield f"  task         {task.name}: {task.spec.summary}"
    yield f"  parameters   {trained.parameters:,}"
    yield f"  written by   activemem {file.version}" + (f" at {file.commit}" if file.commit else "")
    yield f"  use          activemem model {', '.join(trained.uses)}"
    yield ""
    names = max((len(name) for name in file.metrics), default=0)
    for name, value in file.metrics.items():
        yield f"  {name:<{names}}   {_format(name, value)}"


def format_score(score: TextScore) -> list[str]:
    """Format a text's score as lines: the number of tokens and words, the loss and the perplexity."""
    return [
        f"{score.tokens:,} tokens, {score.words:,} words",
        f"  loss              {score.loss:.4f} nats per token",
        f"  bits              {score.bits_per_token:.4f} per token, {_bits_per_byte(score)}",
        f"  perplexity        {format_number(score.word_perplexity, 2)} per word",
    ]


def _bits_per_byte(score: TextScore) -> str:
    """Return the bits per byte, or why they are unknown."""
    bits = score.bits_per_byte
    return (
        "unknown per byte, because the tokens do not keep all of the text"
        if bits is None
        else f"{bits:.4f} per byte"
    )


def _value(model: KeptModel, metric: str) -> str:
    return _format(metric, model.metrics[metric]) if metric in model.metrics else _MISSING


def _format(name: str, value: float) -> str:
    """Format a metric's value with the metric's decimals, or with six digits for an unknown metric."""
    return find_metric(name).format(value) if metric_family(name) in METRICS_AND_COSTS else f"{value:.6g}"
