"""What the study asks: its own words, what it varies, its tasks.

The words are the comment with which the study file begins, so that a file explains itself in one place.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from ...grammar.canonical import render
from ...studies.catalog.metrics import METRICS
from ...studies.catalog.tasks import require_task
from ...studies.resolve.model_interface import model_interface
from ...studies.schema.level_names import level_names, one_line
from ...studies.schema.settings import Level, TaskSettings
from ...studies.text.units import plural
from .html import Html, HtmlColumn, PageSection, code, escape_html, html_table, join_html, paragraph
from .inputs import PageInputs


def section(inputs: PageInputs) -> PageSection:
    """The question, and what is varied to answer it."""
    study, pieces = inputs.study, []
    if words := leading_comment(study.text):
        pieces.append(paragraph(escape_html(words), "lead"))
    if study.paper:
        pieces.append(
            paragraph(escape_html(f"Paper: {study.paper}; what it prints stands beside what is found here."))
        )
    pieces += [*_searched(inputs), *_varied(inputs), *_tasks(inputs)]
    return PageSection(name="question", title="Question", body=join_html(pieces))


def leading_comment(text: str) -> str:
    """The comment with which a study file begins, as one paragraph."""
    lines = takewhile(lambda line: line.startswith("#"), text.lstrip().splitlines())
    return one_line(" ".join(line.lstrip("#") for line in lines))


def format_levels(values: tuple[Level, ...]) -> Html:
    """The levels of a factor."""
    return join_html(map(code, level_names(values)), ", ")


def _varied(inputs: PageInputs) -> Iterator[Html]:
    """The factors, and how they are combined."""
    study = inputs.study
    rows = [
        (code(name), escape_html(f"{len(each)}"), format_levels(each))
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
        yield paragraph(escape_html(f"{how[study.design.kind]}: {plural(len(study.trials()), 'trial')}."))
    columns = [HtmlColumn("factor"), HtmlColumn("levels", "number"), HtmlColumn("which", "words")]
    yield html_table("factors and their levels", columns, rows)


def _searched(inputs: PageInputs) -> Iterator[Html]:
    """The dimensions of a search, and how it chooses."""
    study = inputs.study
    if study.search is None:
        return
    search = study.search
    side = "highest" if search.direction == "max" else "lowest"
    metric = METRICS[search.metric].title if search.metric in METRICS else search.metric
    text = f"A search of {plural(search.trials, 'point')} for the {side} {search.metric} ({metric})"
    text += f", chosen by {search.sampler}" + (
        f", cut short by {search.scheduler}" * (search.scheduler != "none")
    )
    yield paragraph(escape_html(f"{text}."))
    rows = [(code(name), code(render(each))) for name, each in study.dimensions.items()]
    yield html_table("dimensions of the search", [HtmlColumn("dimension"), HtmlColumn("chosen from")], rows)


def _tasks(inputs: PageInputs) -> Iterator[Html]:
    """What is learnt, and after whom."""
    asked = {trial.settings.task.name: trial.settings.task for trial in inputs.study.trials()}
    if tasks := [require_task(name) for name in asked]:
        columns = [
            HtmlColumn("task"),
            HtmlColumn("input to target", "words"),
            HtmlColumn("symbols", "number"),
        ]
        rows = [
            (code(task.name), escape_html(task.summary), escape_html(_symbols(asked[task.name])))
            for task in tasks
        ]
        yield html_table("tasks", columns, rows)
        yield paragraph(escape_html("; ".join(dict.fromkeys(task.source for task in tasks)) + "."), "faint")


def _symbols(task: TaskSettings) -> str:
    """How many symbols a task has; a dash where it has numbers."""
    vocab = model_interface(task).vocab
    return "–" if vocab is None else f"{vocab:,}"
