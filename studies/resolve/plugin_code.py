"""Plug-in source that a trial's result depends on: what it uses, with a digest of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ...grammar.nodes import BlockNode, walk
from ...grammar.norms import NORMS
from ...grammar.positions import POSITIONS
from ...grammar.vocabulary.registry import block_code
from ...plugins import Registry
from ..catalog.callbacks import CALLBACKS
from ..catalog.loss_terms import LOSS_TERMS
from ..catalog.optimisers import OPTIMIZERS
from ..catalog.registry import dataset_code
from ..catalog.schedules import SCHEDULES
from ..catalog.tasks import TASKS
from ..schema.settings import TrialSettings, read_recipe

SHOWN_DIGITS = 8
"""So many digits of a digest are shown."""


def with_code(settings: TrialSettings) -> TrialSettings:
    """Return the settings with the digests of the plug-in code loaded now."""
    code = code_here(settings)
    return settings.model_copy(update={"code": code}) if code != settings.code else settings


def code_here(settings: TrialSettings) -> dict[str, str]:
    """Return the digests of the plug-in source that these settings use, by what is used.

    Metrics are not included: they do not change what is trained.
    """
    model, train = settings.model, settings.train
    return _code_of(
        model.recipe,
        getattr(settings.task, "corpus", None),
        (TASKS, settings.task.name),
        (NORMS, model.norm_kind),
        (POSITIONS, model.position),
        (OPTIMIZERS, train.optimizer.name),
        (SCHEDULES, train.schedule.name),
        *((LOSS_TERMS, each.name) for each in train.loss_terms),
        *((CALLBACKS, each.name) for each in train.callbacks),
    )


def changed_code(stored: str) -> dict[str, tuple[str, str]]:
    """Return the source that differs between a row's settings and now, as (old, new).

    The old one is "" if unrecorded. Plug-ins that are not loaded are left out.
    """
    try:
        record = json.loads(stored)
        then: Mapping[str, str] = record.get("code", {})
        model, train = record["model"], record["train"]
        here = _code_of(
            model["recipe"],
            record["task"].get("corpus"),
            (TASKS, record["task"]["name"]),
            (NORMS, model.get("norm_kind", "layer_norm")),
            (POSITIONS, model.get("position", "timing")),
            (OPTIMIZERS, train["optimizer"]["name"]),
            (SCHEDULES, train.get("schedule", {}).get("name", "constant")),
            *((LOSS_TERMS, each["name"]) for each in train.get("loss_terms", ())),
            *((CALLBACKS, each["name"]) for each in train.get("callbacks", ())),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # RecipeError is a ValueError
        return {}
    changed = {what: (then.get(what, ""), now) for what, now in here.items()}
    return {what: both for what, both in changed.items() if digest(both[0]) != digest(both[1])}


def _code_of(recipe: str, corpus: object, *named: tuple[Registry[Any], str]) -> dict[str, str]:
    """Return the code of a recipe's blocks, of a named corpus, and of what registries name."""
    blocks = [("block", name, block_code(name)) for name in _blocks(recipe)]
    corpora = [("corpus", corpus, dataset_code(corpus) if isinstance(corpus, str) else None)]
    others = [(registry.kind, name, registry.code(name)) for registry, name in named]
    found = ((kind, name, code) for kind, name, code in (*blocks, *corpora, *others) if code is not None)
    return {f"{kind} {name}": code for kind, name, code in found}


@lru_cache(maxsize=4096)
def _blocks(recipe: str) -> tuple[str, ...]:
    """Return the sorted names of the blocks of a recipe."""
    names = {node.name for node in walk(read_recipe(recipe).root) if isinstance(node, BlockNode)}
    return tuple(sorted(names))


def code_fault(settings: TrialSettings) -> str | None:
    """Return why these settings cannot be trained here, as their plug-ins have other source.

    Returns None if they can.
    """
    here = code_here(settings)
    whats = here.keys() | settings.code.keys()
    other = [what for what in whats if digest(here.get(what, "")) != digest(settings.code.get(what, ""))]
    if not settings.code or not other:  # settings that were made by hand say nothing of it
        return None
    expected, got = (
        ", ".join(sorted({shown(code[what]) if what in code else f"no {what}" for what in other}))
        for code in (settings.code, here)
    )
    return f"expected the plug-in {expected}, got {got}"


def digest(code: str) -> str:
    """Return the digest alone: a file is the same under another name."""
    return code.rpartition(" ")[2]


def shown(code: str) -> str:
    """Code as people see it: `mqar.py 1a2b3c4d`."""
    owner, _, digest = code.rpartition(" ")
    return f"{owner} {digest[:SHOWN_DIGITS]}"
