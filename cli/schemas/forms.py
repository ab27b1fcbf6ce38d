"""Forms of commands' JSON output, by command, and a check of pages against them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from . import catalogs, recipes, search_points, stores, studies

FORMS: Mapping[str, type[Any]] = {
    "recipe check": recipes.RecipeCheckPage,
    "recipe render": recipes.RecipeRenderPage,
    "recipe show": recipes.RecipeShowPage,
    "recipe compare": recipes.RecipeComparePage,
    "recipe nearest": recipes.NearestPage,
    "recipe sample": recipes.RecipeSamplePage,
    "list blocks": catalogs.BlockListPage,
    "list tasks": catalogs.TaskListPage,
    "list metrics": catalogs.MetricListPage,
    "list KIND": catalogs.NameListPage,
    "show BLOCK": catalogs.BlockShowPage,
    "show TASK": catalogs.TaskShowPage,
    "show METRIC": catalogs.MetricShowPage,
    "show NAME": catalogs.NameShowPage,
    "study run": studies.StudyRunPage,
    "study watch": studies.StudyStatusPage,
    "study plan": studies.StudyPlanPage,
    "study coordinates": studies.StudyCoordinatesPage,
    "study show": studies.StudyShowPage,
    "study status": studies.StudyStatusPage,
    "study forget": studies.StudyForgetPage,
    "study rename": studies.StudyRenamePage,
    "study export": studies.StudyExportPage,
    "study list": studies.StudyListPage,
    "study query": studies.StudyQueryPage,
    "study noise": studies.StudyNoisePage,
    "study propose": search_points.ProposalLine,
    "study tell": search_points.AnswerLine,
    "probe run": studies.ProbeRunPage,
    "probe compare": studies.ProbeComparePage,
    "model list": stores.ModelListPage,
    "model show": stores.ModelShowPage,
    "model predict": stores.ModelPredictLine,
    "model generate": stores.ModelGeneratePage,
    "model score": stores.ModelScorePage,
    "model export": stores.ModelExportPage,
    "table render": studies.TableRenderPage,
    "curve render": studies.CurveRenderPage,
    "report build": studies.ReportBuildPage,
    "claim check": studies.ClaimCheckPage,
    "store check": stores.StoreCheckPage,
    "store repair": stores.StoreRepairPage,
    "store clean": stores.StoreCleanPage,
    "data list": catalogs.DataPage,
    "data check": catalogs.DataPage,
    "data fetch": catalogs.DataFetchPage,
    "config show": catalogs.ConfigShowPage,
}
"""Of each command that prints JSON its page, or a line of those that print lines."""


def check_page(command: str, page: object) -> None:
    """Compare a page with its form: no field is missing, none is new; ValueError with all that differs."""
    _reader(command).validate_python(page)


def json_schema() -> dict[str, Any]:
    """Return the forms of all commands as JSON Schema, by command."""
    return {command: _reader(command).json_schema() for command in FORMS}


@cache
def _reader(command: str) -> TypeAdapter[Any]:
    form = FORMS[command]
    for each in (form, *(entry for entry in _entries() if isinstance(entry, type))):
        each.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # pyright: ignore[reportAttributeAccessIssue] -- what pydantic reads
    return TypeAdapter(form)


def _entries() -> list[Any]:
    """Return all forms, also those inside of others."""
    modules = (catalogs, recipes, search_points, stores, studies)
    return [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and hasattr(value, "__required_keys__")
    ]
