"""`scheduler = "population"` of [search]: the generations of its members, and what cannot be searched so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, cast

from ...grammar.nodes import ChoiceDimension, Dimension, RealDimension
from ..catalog.metrics import COSTS, MODEL_COSTS
from ..catalog.schedules import rates_depend_on_length
from ..fidelity import Fidelity
from ..presentation.reader import AnyCurveSpec, AnyTableSpec
from ..resolve.draft import Draft
from ..resolve.study_budget import StudyBudget
from ..resolve.template import HOLE_PATTERN, Template
from ..schema.search_settings import EPOCHS, POPULATION, SearchSettings
from ..schema.settings import TrialSettings
from ..schema.training import CHANGEABLE
from ..text.diagnostics import Diagnostics
from ..text.pydantic_messages import format_value
from ..text.toml_positions import KeyPath

_SHOWN = ("points", "front")
"""The kinds of tables and figures that are about a population's members."""

_OPTIMIZER: KeyPath = ("train", "optimizer")


def expand_generations(diagnostics: Diagnostics) -> Fidelity | None:
    """The generations of a document's population, whose epochs become a factor of it; None without one.

    All members come to each of them. Faults are noted; those of other keys are left to who reads these.
    """
    data = cast("dict[str, Any]", diagnostics.document.data)
    search, train, factors = (data.get(name, {}) for name in ("search", "train", "factors"))
    if not all(isinstance(each, Mapping) for each in (search, train, factors)):
        return None
    interval, epochs = search.get("interval"), train.get("epochs")
    if search.get("scheduler") != POPULATION or type(interval) is not int or interval < 1:
        return None
    if type(epochs) is int and epochs < 1:
        return None
    if fault := _generations_fault(search, train, factors):
        diagnostics.report_error(*fault)
        return None
    rungs = tuple(range(interval, epochs + 1, interval))
    data["factors"] = {**factors, EPOCHS: list(reversed(rungs))}
    data["train"] = {**train, EPOCHS: f"{{{EPOCHS}}}"}
    return Fidelity(name=EPOCHS, rungs=rungs, reduction=1, brackets=False)


def _generations_fault(
    search: Mapping[str, Any], train: Mapping[str, Any], factors: Mapping[str, Any]
) -> tuple[KeyPath, str] | None:
    """Why a training cannot be divided into generations, and where that is said."""
    interval, epochs, space = search["interval"], train.get("epochs"), search.get("space")
    if EPOCHS in factors or (isinstance(space, Mapping) and EPOCHS in space) or type(epochs) is not int:
        got = f"'{EPOCHS}' as what varies" if type(epochs) is int else format_value(epochs)
        message = f"a {POPULATION} counts its generations in epochs: expected a number of them in [train]"
        return ("search", "scheduler"), f"{message}, got {got}"
    if train.get("changes"):
        return ("train", "changes"), f"a {POPULATION} makes these itself: leave them out"
    if epochs % interval or epochs == interval:
        message = f"expected a part of the {epochs} epochs of [train] that divides them, got {interval}"
        return ("search", "interval"), message
    return None


def check_population(
    draft: Draft,
    search: SearchSettings,
    ends: Sequence[TrialSettings],
    dimensions: Mapping[str, Dimension],
    *,
    fidelity: Fidelity,
    budget: StudyBudget,
) -> None:
    """Note what a population cannot search, given the settings at the ends of its dimensions."""
    diagnostics = draft.diagnostics
    for name, dimension in dimensions.items():
        if fault := _dimension_fault(draft.template, name, dimension):
            path = ("search", "space", name) if name in search.space else ("search", "scheduler")
            diagnostics.report_error(path, fault)
    if search.metric[0] in (*COSTS, *MODEL_COSTS):
        message = f"{POPULATION} needs a metric of what is learnt, got '{search.metric[0]}'"
        diagnostics.report_error(("search", "metric"), message)
    for path, fault in _setting_faults(ends, fidelity):
        diagnostics.report_error(path, fault)
    if excess := budget.describe_excess(ends[0]):
        diagnostics.report_error(("search", "scheduler"), f"all members are over the budget: {excess}")
    if (points := _count(dimensions)) is not None and points < search.trials:
        message = f"expected at least as many points as the {search.trials} members, got {points}"
        diagnostics.report_error(("search", "trials"), message)


def check_shown(
    diagnostics: Diagnostics, tables: Sequence[AnyTableSpec], curves: Sequence[AnyCurveSpec]
) -> None:
    """Note tables and figures of points whose values stay, and of which one ends after the other."""
    for name, specs in (("table", tables), ("curve", curves)):
        for index, spec in enumerate(specs):
            if spec.kind not in _SHOWN:
                message = (
                    f"'{spec.kind}' is about points that keep their values, which members of a {POPULATION} "
                    f"change: expected {' or '.join(_SHOWN)}"
                )
                diagnostics.report_error((name, index, "kind"), message)


def _dimension_fault(template: Template, name: str, dimension: Dimension) -> str:
    """Why a dimension is none that a training can change; or nothing."""
    inside = [option for option in getattr(dimension, "options", ()) if HOLE_PATTERN.search(str(option))]
    places = [path for path, names in template.holes.items() if name in names]
    others = [path for path in places if not _is_changeable(path, template.texts[path])]
    keys = f"a {POPULATION} changes {', '.join(CHANGEABLE)} of [train.optimizer] alone"
    if others or not places:
        where = ", ".join(".".join(map(str, path)) for path in others)
        return f"{keys}, got {name} in {where or 'the recipe'}"
    return f"{keys}, got options of {name} with holes" if inside else ""


def _is_changeable(path: KeyPath, text: str) -> bool:
    """Whether a text is the hole of a key of the optimizer that may change."""
    return path[:2] == _OPTIMIZER and path[2] in CHANGEABLE and HOLE_PATTERN.fullmatch(text) is not None


def _setting_faults(ends: Sequence[TrialSettings], fidelity: Fidelity) -> Iterator[tuple[KeyPath, str]]:
    """What a training that goes on from another one cannot have."""
    train = ends[0].train
    if rates_depend_on_length(train.schedule, fidelity.rungs[-2] * train.steps_per_epoch):
        message = (
            f"a {POPULATION} goes on from generation to generation: expected a schedule whose rates do not "
            f"depend on the number of epochs, such as constant or inverse_sqrt, got {train.schedule.name}"
        )
        yield ("train", "schedule"), message
    if len({each.train.optimizer.name for each in ends}) > 1:
        yield _OPTIMIZER, f"a {POPULATION} has one rule, got several"


def _count(dimensions: Mapping[str, Dimension]) -> int | None:
    """How many points there are; None if they cannot be counted."""
    if any(isinstance(each, RealDimension) for each in dimensions.values()):
        return None
    return prod(
        len(each.options) if isinstance(each, ChoiceDimension) else (each.high - each.low) // each.step + 1
        for each in dimensions.values()
        if not isinstance(each, RealDimension)
    )
