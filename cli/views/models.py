"""Text output about trained models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...reporting.kept_models import KeptModel
from ...studies.catalog.metrics import METRICS_AND_COSTS, find_metric, metric_family
from ...studies.text.units import align_columns

if TYPE_CHECKING:
    from ... import TrainedModel

_MISSING = "—"


def format_kept_models(models: Sequence[KeptModel], metric: str | None) -> list[str]:
    """Return a line for each model, in columns: its trial, its levels and a metric."""
    factors = list(dict.fromkeys(name for model in models for name in model.levels))
    heading = ["trial", *factors, *([metric] if metric else [])]
    rows = [heading]
    for model in models:
        rows.append([model.trial, *(str(model.levels.get(name, _MISSING)) for name in factors)])
        if metric:
            rows[-1].append(_format(metric, model.metrics[metric]) if metric in model.metrics else _MISSING)
    return align_columns(rows)


def format_model(model: TrainedModel) -> Iterator[str]:
    """Yield the facts about a model in lines."""
    file, trial = model.file, model.file.trial
    task = trial.settings.task.spec
    yield model.recipe
    yield ""
    yield f"  trial        {trial.id} of {trial.study}"
    yield f"  levels       {', '.join(f'{name} = {level}' for name, level in trial.levels.items())}"
    yield f"  task         {task.name}: {task.summary}"
    yield f"  parameters   {model.parameters:,}"
    yield f"  written by   activemem {file.version}" + (f" at {file.commit}" if file.commit else "")
    yield f"  use          activemem model {', '.join(model.uses)}"
    yield ""
    names = max((len(name) for name in file.metrics), default=0)
    for name, value in file.metrics.items():
        yield f"  {name:<{names}}   {_format(name, value)}"


def model_facts(model: TrainedModel) -> dict[str, object]:
    """Return the facts about a model as plain data, without the bytes of its vocabulary's files."""
    file, trial = model.file, model.file.trial
    return {
        "trial": trial.id,
        "study": trial.study,
        "levels": trial.levels,
        "recipe": model.recipe,
        "parameters": model.parameters,
        "settings": trial.settings,
        "metrics": file.metrics,
        "symbols": _without_content(file.symbols),
        "uses": model.uses,
        "version": file.version,
        "commit": file.commit,
    }


def _without_content(symbols: Any) -> Any:  # noqa: ANN401 -- plain data
    if isinstance(symbols, Mapping):
        return {name: _without_content(value) for name, value in symbols.items() if name != "content"}
    return symbols


def _format(name: str, value: float) -> str:
    return find_metric(name).format(value) if metric_family(name) in METRICS_AND_COSTS else f"{value:.6g}"
