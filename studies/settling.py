"""From a template and values to the settings of one trial, or all that is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..grammar import RecipeError, render
from ..grammar.nodes import Block, Node, Series, walk
from ..grammar.roles import SEQUENCE, VECTOR, output
from .factors import SEED
from .settings import Level, Settings, read_recipe
from .tasks import TaskError, require_task
from .template import RECIPE, Template
from .wording import Problem, ProblemsError, checked

_STAND_IN = "sa"  # for a recipe that is wrong, so that all else is checked too


def settle(template: Template, values: Mapping[str, Level]) -> Settings:
    """The settings of the trial that has these values; ProblemsError with all that is wrong with it.

    `values` has a level for every hole, and for every dimension that is to be settled. A wrong recipe does
    not keep the other tables from being checked.
    """
    tables = template.fill(values)
    problems: list[Problem] = []
    if RECIPE in template.texts:
        try:
            tables["model"]["recipe"] = template.recipe(values)
        except RecipeError as error:
            problems += [Problem(RECIPE, fault.message) for fault in error.faults]
            tables["model"]["recipe"] = _STAND_IN
    try:
        settings = checked(Settings, {**tables, SEED: values.get(SEED, 0)})
    except ProblemsError as error:
        raise ProblemsError((*problems, *error.problems)) from error
    problems += _mismatches(settings)
    if problems:
        raise ProblemsError(tuple(problems))
    return settings


def _mismatches(settings: Settings) -> Iterator[Problem]:
    """What fits each table but not all of them together: a recipe or a length that the task cannot take."""
    task = require_task(settings.task.name)
    root = read_recipe(settings.model.recipe).root
    gives = output(root)
    if gives != SEQUENCE:
        what, out = _odd(root, gives), "the pool" if gives == VECTOR else "it"
        needs = f"{task.name} needs an output for each token of its input"
        yield Problem(RECIPE, f"{what} gives {gives}, but {needs}: leave {out} out")
    try:
        task.check(settings.train.curriculum.start)
    except TaskError as error:
        yield Problem(("train", "curriculum", "start"), str(error))


def _odd(root: Node, gives: str | None) -> str:
    """The part of a recipe that makes its output what it is: the last, or the first block that does so."""
    last = root.parts[-1] if isinstance(root, Series) else root
    blocks = (part for part in walk(root) if isinstance(part, Block) and output(part) == gives)
    return render(last if gives == VECTOR else next(blocks, last))
