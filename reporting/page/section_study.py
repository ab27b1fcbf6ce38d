"""The study's question, every setting of its trials, and how to reproduce its results.

The question is the comment with which the study file begins, so that a file explains itself in one place.
Defaults are among the settings, so that the page does not depend on those of a later version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from ...grammar.canonical import render
from ...studies.catalog.metrics import METRICS
from ...studies.presentation.metric_words import with_true_title
from ...studies.resolve.trial import settings_from_json
from ...studies.schema.level_names import level_names, one_line
from ...studies.schema.search_settings import find_quantity
from ...studies.schema.settings import TrialSettings
from ...studies.searches.words import goal_words, sampler_words, scheduler_words
from ...studies.study import Study
from ...studies.study_files import find_study_file
from ...studies.text.command_line import command_line
from ...studies.text.errors import StudyError
from ...studies.text.toml_positions import KeyPath
from .inputs import PageInputs

_BESIDE_TRIALS = ("recipes", "factors", "cells", "decode")
"""What a study gives besides the settings that each of its trials has."""


def question(inputs: PageInputs) -> Mapping[str, object]:
    """Return the question, and what is varied to answer it."""
    study = inputs.study
    tasks = {trial.settings.task.name: trial.settings.task for trial in study.trials}
    return {
        "study": study,
        "lead": leading_comment(study.text),
        "goal": goal_words(study.search) if study.search else "",
        "sampler": sampler_words(study.search) if study.search else "",
        "cut": scheduler_words(study.search) if study.search else "",
        "titles": list(_searched_titles(study)),
        "dimensions": {name: render(each) for name, each in study.dimensions.items()},
        "factors": {
            name: level_names(each)
            for name, each in study.factors.items()
            if name not in study.dimensions and len(each) > 1
        },
        "tasks": {task.spec: task.interface.vocab for task in tasks.values()},
    }


def _searched_titles(study: Study) -> Iterator[str]:
    settings = [trial.settings for trial in study.boundary_trials()] if study.search else []
    for objective in study.search.objectives if study.search else ():
        metric = find_quantity(objective.name)
        if metric is not None:
            yield (with_true_title(metric, settings)[0] if objective.name in METRICS else metric).title


def leading_comment(text: str) -> str:
    """Return the comment with which a study file begins, as one paragraph."""
    lines = takewhile(lambda line: line.startswith("#"), text.lstrip().splitlines())
    return one_line(" ".join(line.lstrip("#") for line in lines))


def settings(inputs: PageInputs) -> Mapping[str, object] | None:
    """Return the texts of each setting, named as in the study file; the seed is a factor.

    Where the study has a table [source], all else that needs a source there follows: recipes and factors,
    cells, and searches that are tried after the training.
    """
    found: dict[KeyPath, dict[str, None]] = {}
    for settings in _iter_settings(inputs):
        for path, value in _flat(settings.model_dump(mode="json", exclude={"seed"})):
            found.setdefault(path, {})[json.dumps(value, ensure_ascii=False)] = None
    written = inputs.study.template.texts
    texts = {
        ".".join(map(str, path)): [written[path]]
        if len(each) > 1 and path in written
        else list(map(_unquoted, each))
        for path, each in found.items()
    }
    sourced = [each for each in inputs.study.source_sheet.settings if each.source]
    others = {each.name: [_text(each.value)] for each in sourced if each.name.split(".")[0] in _BESIDE_TRIALS}
    sources = {each.name: str(each.source) for each in sourced}
    return {"settings": texts | others, "sources": sources} if texts else None


def _iter_settings(inputs: PageInputs) -> Iterator[TrialSettings]:
    """Yield the settings of every trial: those of the grid, of a search those that the store has."""
    if inputs.study.search is None:
        yield from (trial.settings for trial in inputs.study.trials)
    else:
        yield from map(settings_from_json, inputs.own_outcomes["settings"])


def _flat(table: Mapping[str, Any], path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, (*path, key))
        else:
            yield (*path, key), value


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _unquoted(value: str) -> str:
    """Return a text without its quotes, anything else as JSON has it."""
    read = json.loads(value)
    return read if isinstance(read, str) else value


def reproduce(inputs: PageInputs) -> Mapping[str, object]:
    """Return the commands in their order; the file is part of the page, so that the page is enough."""
    study, packaged = inputs.study, _is_packaged(inputs.study)
    file = study.name if packaged else f"{study.name}.toml"
    lines = [command_line("study", "run", file, set=study.overrides)]
    lines += [command_line("table", "render", study.name, published=True)] if study.tables else []
    lines += [command_line("curve", "render", study.name)] if study.curves else []
    lines += [command_line("claim", "check", study.name)] if study.claims else []
    lines += [command_line("report", "build", study.name)]
    return {"text": study.text, "packaged": packaged, "file": file, "commands": "\n".join(lines)}


def _is_packaged(study: Study) -> bool:
    try:
        return find_study_file(study.name).read_text(encoding="utf-8") == study.text
    except (StudyError, OSError):
        return False
