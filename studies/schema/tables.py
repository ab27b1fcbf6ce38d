"""The tables of study files: one list, which checks, editors and help read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module

from ..text.strict_model import StrictModel
from .settings import EXPANSIONS, find_expansion


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyTable:
    """A table of study files.

    `classes` are the classes of its keys, or their names after their modules in `studies`, which are loaded
    when they are needed. There are none if the keys depend on the study or on another key. `is_list` is true
    for an array of tables, such as `[[claim]]`.
    """

    summary: str
    classes: tuple[str | type[StrictModel], ...] = ()
    is_list: bool = False

    def models(self) -> tuple[type[StrictModel], ...]:
        """Return the classes of this table's keys."""
        return tuple(_load(each) if isinstance(each, str) else each for each in self.classes)


def _load(place: str) -> type[StrictModel]:
    module, _, name = place.partition(":")
    return getattr(import_module(f"..{module}", __package__), name)


TABLES: Mapping[str, StudyTable] = {
    "study": StudyTable(
        summary="the study's name and question, and which cells it has",
        classes=("schema.settings:StudySettings",),
    ),
    "model": StudyTable(
        summary="the model's body, which is a recipe, and the layers around it",
        classes=("schema.settings:ModelSettings",),
    ),
    "task": StudyTable(summary="the task by its `name`; `activemem show TASK` lists the other keys"),
    "train": StudyTable(
        summary="how the model is trained",
        classes=(
            "schema.settings:TrainSettings",
            "resolve.training_budget:BudgetSettings",
        ),
    ),
    "factors": StudyTable(
        summary="each factor's levels by its name, which fill the holes `{name}`; also `seed`"
    ),
    "recipes": StudyTable(
        summary='fragments of recipes by name, as in `core = "sa >> ff(64)"` for the hole `{core}`'
    ),
    "cells": StudyTable(summary="a cell that the design lacks, by its level of each factor", is_list=True),
    "source": StudyTable(summary='where each setting is from, as in `train.epochs = "paper: section 3.1"`'),
    "search": StudyTable(
        summary="the search space, the objectives, and how points are chosen",
        classes=("schema.search_settings:SearchSettings",),
    ),
    "decode": StudyTable(
        summary="decoding settings that `activemem probe run` tries",
        classes=("schema.settings:DecodeSettings",),
    ),
    "table": StudyTable(summary="a table of results; the other keys depend on its `kind`", is_list=True),
    "curve": StudyTable(summary="a figure of results; the other keys depend on its `kind`", is_list=True),
    "runs": StudyTable(
        summary="runs that another program has trained, for `activemem judge`; such a file trains nothing",
        classes=("judged.keys:RunsSettings",),
    ),
    "claim": StudyTable(
        summary="a sentence about the results, and the statement that decides it",
        classes=("claims.comparisons:ClaimSpec",),
        is_list=True,
    ),
}
"""The tables of study files by name, without those of optional features."""


@cache
def all_tables() -> Mapping[str, StudyTable]:
    """Return every table of study files by its name. All optional features are loaded."""
    features = {name: find_expansion(name) for name in EXPANSIONS}
    header = tuple(each.header_keys for each in features.values() if each.header_keys)
    study = replace(TABLES["study"], classes=(*TABLES["study"].classes, *header))
    own = {name: each.table for name, each in features.items() if each.table}
    return {**TABLES, "study": study, **own}
