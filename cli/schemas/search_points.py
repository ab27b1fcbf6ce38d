"""The lines of `study propose` and `study tell`: points of a search as programs read and write them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Literal, NotRequired

from typing_extensions import TypedDict

from ...grammar import parse
from ...studies.resolve.costs import parameter_count
from ...studies.resolve.trial import settings_to_json
from . import SCHEMA

if TYPE_CHECKING:
    from ...engine.run.search.proposals import HandedIn, Proposal


class MetricOverSeeds(TypedDict):
    """A metric over the seeds that have it; `sd` is null for one seed."""

    mean: float
    sd: float | None
    n: int


class ProposalLine(TypedDict):
    """A point that a search would try next; `study tell` accepts the line unchanged."""

    schema: int
    id: str
    values: dict[str, Any]
    recipe: str
    recipe_id: str
    proposed_by: str
    parameters: int
    seeds: list[int]
    trials: list[str]
    settings: dict[str, Any]


class OutcomeEntry(TypedDict):
    """The outcome of a training of a known point."""

    trial: str
    seed: int
    status: str
    reason: str | None
    metrics: dict[str, float]


class AnswerLine(TypedDict):
    """The answer to a point that was handed in by a line, counted from 1."""

    schema: int
    line: int
    answer: Literal["accepted", "waiting", "known", "refused"]
    id: NotRequired[str]
    values: NotRequired[dict[str, Any]]
    recipe: NotRequired[str]
    results: NotRequired[dict[str, MetricOverSeeds]]
    trials: NotRequired[list[OutcomeEntry]]
    faults: NotRequired[list[str]]


def proposal_line(proposal: Proposal) -> ProposalLine:
    """Return a proposal for a program."""
    point, first = proposal.point, proposal.point.trials[0].settings
    settings = json.loads(settings_to_json(first))
    del settings["seed"]
    recipe = parse(first.model.recipe)
    return {
        "schema": SCHEMA,
        "id": point.name,
        "values": dict(point.values),
        "recipe": recipe.text,
        "recipe_id": recipe.id,
        "proposed_by": proposal.proposed_by,
        "parameters": parameter_count(first),
        "seeds": [trial.settings.seed for trial in point.trials],
        "trials": [trial.id for trial in point.trials],
        "settings": settings,
    }


def answer_line(number: int, handed_in: HandedIn) -> AnswerLine:
    """Return the answer to a line for a program; results are over the done trainings of a known point."""
    line: AnswerLine = {"schema": SCHEMA, "line": number, "answer": handed_in.answer.value}
    if handed_in.point is not None:
        line["id"] = handed_in.point.name
        line["values"] = dict(handed_in.point.values)
        line["recipe"] = handed_in.point.trials[0].settings.model.recipe
    if handed_in.trials:
        line["trials"] = [_outcome(row) for row in handed_in.trials]
        done = [outcome["metrics"] for outcome in line["trials"] if outcome["status"] == "done"]
        line["results"] = metrics_over_seeds(done)
    if handed_in.faults:
        line["faults"] = list(handed_in.faults)
    return line


def metrics_over_seeds(metrics: Sequence[Mapping[str, float]]) -> dict[str, MetricOverSeeds]:
    """Mean and standard deviation of each metric over trainings, of those that have a finite value."""
    found: dict[str, MetricOverSeeds] = {}
    for name in dict.fromkeys(name for each in metrics for name in each):
        values = [each[name] for each in metrics if name in each and math.isfinite(each[name])]
        if values:
            sd = stdev(values) if len(values) > 1 else None
            found[name] = {"mean": fmean(values), "sd": sd, "n": len(values)}
    return found


def _outcome(row: Mapping[str, Any]) -> OutcomeEntry:
    return {
        "trial": row["trial"],
        "seed": row["seed"],
        "status": row["status"],
        "reason": row["reason"],
        "metrics": {each["name"]: each["value"] for each in row["metrics"] if math.isfinite(each["value"])},
    }
