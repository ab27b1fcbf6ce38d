"""What the study asks: its own words, what it varies, its tasks.

The words are the comment with which the study file begins, so that a file explains itself in one place.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from ...grammar.text import render
from ..demands import demand
from ..labels import level_names, one_line
from ..metrics import METRICS
from ..quantities import plural
from ..settings import Level, TaskSettings
from ..tasks import require_task
from .markup import Column, Html, Section, code, grid, joined, paragraph, plain
from .material import Material


def section(material: Material) -> Section:
    """The question, and what is varied to answer it."""
    study, pieces = material.study, []
    if words := remark(study.text):
        pieces.append(paragraph(plain(words), "lead"))
    if study.paper:
        pieces.append(
            paragraph(plain(f"Paper: {study.paper}; what it prints stands beside what is found here."))
        )
    pieces += [*_searched(material), *_varied(material), *_tasks(material)]
    return Section(name="question", title="Question", body=joined(pieces))


def remark(text: str) -> str:
    """The comment with which a study file begins, as one paragraph."""
    lines = takewhile(lambda line: line.startswith("#"), text.lstrip().splitlines())
    return one_line(" ".join(line.lstrip("#") for line in lines))


def levels(values: tuple[Level, ...]) -> Html:
    """The levels of a factor."""
    return joined(map(code, level_names(values)), ", ")


def _varied(material: Material) -> Iterator[Html]:
    """The factors, and how they are combined."""
    study = material.study
    rows = [
        (code(name), plain(f"{len(each)}"), levels(each))
        for name, each in study.factors.items()
        if name not in study.dimensions and len(each) > 1
    ]
    if not rows:
        return
    how = {
        "grid": "Each level of a factor with each of the others",
        "one_at_a_time": "Each factor by itself around the baseline",
        "zip": "The factors' first levels together, then the second, and so on",
    }
    if study.search is None:
        yield paragraph(plain(f"{how[study.design.kind]}: {plural(len(study.trials()), 'trial')}."))
    columns = [Column("factor"), Column("levels", "number"), Column("which", "words")]
    yield grid("factors and their levels", columns, rows)


def _searched(material: Material) -> Iterator[Html]:
    """The dimensions of a search, and how it chooses."""
    study = material.study
    if study.search is None:
        return
    search = study.search
    side = "highest" if search.direction == "max" else "lowest"
    metric = METRICS[search.metric].title if search.metric in METRICS else search.metric
    text = f"A search of {plural(search.trials, 'point')} for the {side} {search.metric} ({metric})"
    text += f", chosen by {search.sampler}" + (
        f", cut short by {search.scheduler}" * (search.scheduler != "none")
    )
    yield paragraph(plain(f"{text}."))
    rows = [(code(name), code(render(each))) for name, each in study.dimensions.items()]
    yield grid("dimensions of the search", [Column("dimension"), Column("chosen from")], rows)


def _tasks(material: Material) -> Iterator[Html]:
    """What is learnt, and after whom."""
    asked = {trial.settings.task.name: trial.settings.task for trial in material.study.trials()}
    if tasks := [require_task(name) for name in asked]:
        columns = [Column("task"), Column("input to target", "words"), Column("symbols", "number")]
        rows = [(code(task.name), plain(task.summary), plain(_symbols(asked[task.name]))) for task in tasks]
        yield grid("tasks", columns, rows)
        yield paragraph(plain("; ".join(dict.fromkeys(task.source for task in tasks)) + "."), "faint")


def _symbols(task: TaskSettings) -> str:
    """How many symbols a task has; a dash where it has numbers."""
    vocab = demand(task).vocab
    return "–" if vocab is None else f"{vocab:,}"
