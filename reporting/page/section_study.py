"""The sections of a report about the study, such as its models and settings.

The question is the comment at the beginning of the study file. The settings include the defaults, so that the
page does not depend on the defaults of a later version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, takewhile
from statistics import fmean
from typing import Any

import polars as pl

from ...grammar import analyse, parse
from ...grammar.canonical import render
from ...plugins import DIGEST_LENGTH, PluginError, loaded_files, plugin_path
from ...storage.rows import has_trial
from ...studies.catalog.metrics import METRICS
from ...studies.plan import (
    SIZE_KEYS,
    ModelCost,
    check_layers,
    design_settings,
    group_by_model,
    model_costs,
    model_labeller,
    predict_reach_limits,
)
from ...studies.planning.status import outcome_trials
from ...studies.planning.time_estimates import TimeEstimator
from ...studies.presentation.metric_words import with_true_title
from ...studies.resolve.costs import REFERENCE_TOKENS, parameter_count, reach, sequence_tokens
from ...studies.resolve.trial import Trial, first_of_each_kind
from ...studies.schema.factors import level_name, level_names, one_line
from ...studies.schema.limits import find_quantity
from ...studies.schema.settings import RECIPE_PATH, TrialSettings, find_design
from ...studies.searches.words import goal_words, scheduler_words
from ...studies.study import Study, find_study_file
from ...studies.text.document import iter_leaves
from ...studies.text.errors import StudyError, command_line
from ...studies.text.units import format_bytes, format_duration, format_reach, plural, si_prefix
from ..recipes import svg
from ..snapshot import Snapshot

_UNSET = {"null", "[]", "{}"}
"""The values of settings that are not set, as JSON text."""


def question(inputs: Snapshot) -> Mapping[str, object] | None:
    """Return the study's question; None if the study file has no comment at its beginning, and no paper."""
    study = inputs.study
    paragraphs = [split_code(each) for each in leading_comment(study.document.text)]
    return {"paragraphs": paragraphs, "paper": study.paper} if paragraphs or study.paper else None


def leading_comment(text: str) -> list[str]:
    """Return the paragraphs of the comment at the beginning of a study file, without indented commands."""
    comment = takewhile(lambda line: line.startswith("#"), text.lstrip().splitlines())
    lines = [line.removeprefix("#").removeprefix(" ") for line in comment]
    prose = (line for line in lines if not line.startswith("    "))
    return [
        one_line(" ".join(group))
        for has_text, group in groupby(prose, lambda line: bool(line.strip()))
        if has_text
    ]


def split_code(text: str) -> list[str]:
    """Return the parts of a text in turn: words, the code between two backticks, words, and so on."""
    return re.split(r"`([^`]+)`", text)


def design(inputs: Snapshot) -> Mapping[str, object]:
    """Return the factors that the study varies, the dimensions of its search, and its tasks."""
    study = inputs.study
    tasks = {trial.common.task.name: trial.common.task for trial in study.trials}
    title = find_design(study.design.kind).title
    return {
        "study": study,
        "goal": goal_words(study) if study.search else "",
        "sampler": study.search.settings.sampler_name if study.search else "",
        "cut": scheduler_words(study.search.settings) if study.search else "",
        "titles": list(_searched_titles(study)),
        "cells": title[:1].upper() + title[1:],
        "dimensions": {name: render(each) for name, each in study.dimensions.items()},
        "factors": {
            name: level_names(each)
            for name, each in study.factors.items()
            if name not in study.dimensions and len(each) > 1
        },
        "tasks": {task.spec: task.interface.model.vocab for task in tasks.values()},
    }


def _searched_titles(study: Study) -> Iterator[str]:
    settings = [trial.settings for trial in study.examples] if study.search else []
    for objective in study.search.settings.objectives if study.search else ():
        metric = find_quantity(objective.name)
        if metric is not None:
            yield (with_true_title(metric, settings)[0] if objective.name in METRICS else metric).title


def settings(inputs: Snapshot) -> Mapping[str, object]:
    """Return the settings of the study that have a value, each with its source.

    First those of the study file, then the defaults. Facts about the user's own files follow, such as their
    hashes. Then come the settings from which the cells follow, such as the sizes of a ladder. At the end is
    how a search chooses its points.
    """
    study = inputs.study
    sheet = [each for each in study.source_sheet.settings if each.text not in _UNSET]
    own, cells, searched = (dict(find(study)) for find in (_own_facts, design_settings, _search_settings))
    sources = {each.name: str(each.source) for each in sheet if each.source}
    if sources:
        chosen = dict.fromkeys(searched, "how the search chooses points")
        sources = dict.fromkeys(cells, "how cells are made") | chosen | sources
    texts = {each.name: [each.text] for each in sheet}
    return {"settings": texts | own | cells | searched, "sources": sources}


def _own_facts(study: Study) -> Iterator[tuple[str, list[str]]]:
    """Yield facts about the user's own files, which a trial has in place of their paths."""
    task = study.examples[0].settings.task.model_dump(mode="json") if study.own_corpus else {}
    facts = {key: value for key, value in task.items() if isinstance(value, dict)}
    yield from ((name, [text]) for name, text in setting_texts({"task": facts}).items())


def _search_settings(study: Study) -> Iterator[tuple[str, list[str]]]:
    """Yield how a search chooses points: the seeds of its baseline, the keys of [search], its dimensions."""
    if (search := study.search) is None:
        return
    if search.baseline:
        yield "study.baseline_seeds", [str(len(search.baseline_seeds))]
    settings = search.settings
    for path, value in iter_leaves(("search",), settings.model_dump(mode="json", exclude={"space"})):
        texts = value if isinstance(value, list) else [value]
        if path == ("search", "direction"):
            texts = [each.direction for each in settings.objectives]
        if value is not None and texts:
            yield ".".join(map(str, path)), list(map(_plain_text, texts))
    for name, dimension in search.dimensions.items():
        yield f"search.space.{name}", [render(dimension)]


def iter_settings(inputs: Snapshot) -> Iterator[TrialSettings]:
    """Yield the settings of trials that differ in more than seeds; of a search, those of trained trials."""
    if inputs.study.search is None:
        trials = inputs.study.trials
    else:
        trials = outcome_trials(inputs.study, inputs.own_outcomes).values()
    yield from (trial.common for trial in first_of_each_kind(trials))


def setting_texts(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of a trial as text, by dotted name. Settings without a value are left out."""
    return {
        ".".join(map(str, path)): _plain_text(value)
        for path, value in iter_leaves((), settings)
        if value is not None
    }


def _plain_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def reproduce(inputs: Snapshot) -> Mapping[str, object]:
    """Return the commands that reproduce the results, the study file and the plug-in files of the user."""
    study, file = inputs.study, study_file_name(inputs.study)
    named = {plugin_path(each).resolve() for each in study.plugins}
    given = [each for each in loaded_files() if each.path not in named]
    command = partial(
        command_line, plugin=[each.argument if each.is_extra else each.path.name for each in given]
    )
    is_grown = bool(study.claims and inputs.status.added)
    lines = [command("study", "run", file, set=study.document.overrides, until_decided=is_grown)]
    lines += [command("table", "render", study.name, published=bool(study.paper))] if study.tables else []
    lines += [command("curve", "render", study.name)] if study.curves else []
    lines += [command("claim", "check", study.name)] if study.claims else []
    lines += [command("report", "build", study.name)]
    return {
        "text": study.document.text,
        "packaged": file == study.name,
        "file": file,
        "plugins": {
            each.path.name: (each.digest[:DIGEST_LENGTH], each.source)
            for each in loaded_files()
            if not each.is_extra
        },
        "commands": "\n".join(lines),
    }


def study_file_name(study: Study) -> str:
    """Return the name by which commands find a study. It is the name of a shipped study, or a file name."""
    try:
        shipped = find_study_file(study.name).read_text(encoding="utf-8") == study.document.text
    except (StudyError, OSError):
        shipped = False
    return study.name if shipped else f"{study.name}.toml"


MAX_SEARCHED = 12
"""The maximum number of a search's models to show: those of its best points."""

_MIB = 2**20
_NONE = "–"


def models(inputs: Snapshot) -> Mapping[str, object] | None:
    """Return a row for each model with its predicted costs, and the models' diagrams.

    Those of a search are the models of its best points. Return None if there are none yet, or if a plug-in's
    block cannot be measured; the page then shows its failures.
    """
    try:
        return _models(inputs)
    except PluginError:
        return None


def _models(inputs: Snapshot) -> Mapping[str, object] | None:
    study, match, excluded = inputs.study, inputs.study.design.matched_size, list[ModelCost]()
    if study.search is None:
        check_layers(study, study.trials)
        label, estimator = model_labeller(study), TimeEstimator(inputs.outcomes, study.trials)
        shown = group_by_model(study, study.trials)
        models = model_costs(study, shown, estimator, {})
        excluded = model_costs(study, group_by_model(study, study.over_budget), estimator, {})
        labels = [f"{each.at} · {each.label}" if each.at else each.label for each in models]
        labelled = [(label(trial), trial.settings) for trial in first_of_each_kind(study.trials)]
        lead, recipe = "Every model is", study.template.texts[RECIPE_PATH]
    else:
        trained = {trial.id: trial for trial in inputs.points.trained}
        ranked = (trial for point in inputs.points.ranked() for trial in point.trials)
        groups = group_by_model(study, [trained[trial] for trial in ranked if trial in trained])
        shown = groups[:MAX_SEARCHED]
        models = model_costs(study, shown, TimeEstimator(inputs.outcomes, []), {})
        labels = [_resolved(study, each[0]) for each in shown]
        labelled = [
            (name, trial.settings) for name, each in zip(labels, shown, strict=True) for trial in each
        ]
        which = f"The best {len(shown)} of {len(groups):,}" if len(groups) > len(shown) else "All"
        lead, recipe = f"{which} models with ranked points, the best first.", ""
    if not models:
        return None
    unit, size = si_prefix(max(model.step_flops for model in models))
    numbers = [*([match.name, "residual"] if match else []), "parameters", f"{unit}FLOPs/step"]
    rows = (
        list(_cells(inputs, model, trials, size, matched=match is not None))
        for model, trials in zip(models, shown, strict=True)
    )
    return {
        "lead": lead,
        "recipe": recipe,
        "known": [
            *predict_reach_limits(labelled),
            *(f"{each.label}: {each.excess}; {plural(each.trials, 'trial')} not run" for each in excluded),
        ],
        "heads": ["model", *numbers, "reach", "done", "time/trial", "peak memory"],
        "rows": list(zip(labels, rows, strict=True)),
        "reference_tokens": REFERENCE_TOKENS,
        "diagrams": [_diagram(trials) for trials in shown],
    }


def _resolved(study: Study, trial: Trial) -> str:
    """Return the label of a searched model: its recipe, and the dimensions that set its size."""
    paths = [("model", key) for key in SIZE_KEYS if ("model", key) != RECIPE_PATH]
    names = {name for path in paths for name in study.template.names_at(path, study.factors)}
    sizes = [
        f"{name}={level_name(trial.levels[name])}"
        for name in study.dimensions
        if name in names & trial.levels.keys()
    ]
    return ", ".join([trial.settings.model.recipe, *sizes])


def _cells(
    inputs: Snapshot, model: ModelCost, trials: Sequence[Trial], size: float, *, matched: bool
) -> Iterator[str]:
    """Yield a model's table cells: any solved size with its error, predicted costs, then trainings."""
    if matched:
        solved = model.size_match
        yield f"{solved.size:,}" if solved and solved.size is not None else _NONE
        yield solved.residual_text if solved else _NONE
    yield f"{model.parameters:,}"
    yield f"{model.step_flops / size:,.1f}"
    done = inputs.own_outcomes.filter(has_trial(trial.id for trial in trials) & (pl.col("status") == "done"))
    yield format_reach(reach(trials[0].settings))
    yield f"{len(done)} of {len(trials)}"
    yield format_duration(fmean(done["seconds"])) if len(done) else _NONE
    yield format_bytes(max(done["peak_mib"]) * _MIB) if len(done) else _NONE


def _diagram(trials: Sequence[Trial]) -> tuple[str, str]:
    """Return a model's recipe, and its diagram with the costs of the trial with the most parameters."""
    every = (trial.common for trial in first_of_each_kind(trials))
    settings = max(every, key=parameter_count)
    recipe, past = parse(settings.model.recipe), settings.task.interface.past
    analysis = analyse(recipe, settings.config, length=sequence_tokens(settings), past=past)
    return settings.model.recipe, svg.render(recipe, analysis, settings.train.batch_size)
