"""What the study asks: its own words, what it varies, its tasks.

The words are the comment with which the study file begins, so that a file explains itself in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from ...grammar.canonical import render
from ...studies.catalog.metrics import METRICS
from ...studies.schema.level_names import level_names, one_line
from .inputs import PageInputs


def values(inputs: PageInputs) -> Mapping[str, object]:
    """The question, and what is varied to answer it."""
    study = inputs.study
    tasks = {trial.settings.task.name: trial.settings.task for trial in study.trials}
    return {
        "study": study,
        "lead": leading_comment(study.text),
        "metric": METRICS.get(study.search.metric) if study.search else None,
        "dimensions": {name: render(each) for name, each in study.dimensions.items()},
        "factors": {
            name: level_names(each)
            for name, each in study.factors.items()
            if name not in study.dimensions and len(each) > 1
        },
        "tasks": {task.spec: task.interface.vocab for task in tasks.values()},
    }


def leading_comment(text: str) -> str:
    """The comment with which a study file begins, as one paragraph."""
    lines = takewhile(lambda line: line.startswith("#"), text.lstrip().splitlines())
    return one_line(" ".join(line.lstrip("#") for line in lines))
