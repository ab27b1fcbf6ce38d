"""Descriptions of a search, such as its objectives and the size of its space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from ...grammar import Cardinality, Space
from ..planning.final_values import ValueStatus
from ..planning.reused_trials import RecipeSpace
from ..resolve.costs import max_trial_flops
from ..resolve.search_source import PROBES
from ..schema.search_settings import EPOCHS, SearchSettings
from ..study import Study
from ..text.units import listed, plural
from .points import SearchPoints


@dataclass(frozen=True, slots=True, kw_only=True)
class RungCost:
    """The size and cost of one stage (rung) of a search.

    `value` is the fidelity on this rung, such as a number of epochs or a width. `share` is the work of a
    trial as a fraction of a whole training, averaged over both ends of the dimensions. `epochs` is the
    maximum total number of epochs of its trials.
    """

    value: int
    points: int
    trials: int
    epochs: int
    share: float


def rung_costs(study: Study) -> tuple[RungCost, ...]:
    """Return the cost of each stage (rung) of a search, in order. Empty if it has only one."""
    search = study.search
    if search is None or not search.rungs.rungs:
        return ()
    whole = search.trials_at_ends(search.rungs.top)
    found: list[RungCost] = []
    for rung, (count, trials) in enumerate(zip(search.points_by_rung, search.trials_by_rung, strict=True)):
        ends = search.trials_at_ends(rung)
        found.append(
            RungCost(
                value=search.rungs.rungs[rung],
                points=count,
                trials=trials,
                epochs=trials * max(trial.settings.train.epochs for trial in ends),
                share=fmean(
                    max_trial_flops(end.settings) / max_trial_flops(top.settings)
                    for end, top in zip(ends, whole, strict=True)
                ),
            )
        )
    return tuple(found)


def space_size(study: Study) -> Cardinality | None:
    """Return how many different recipes a search can try; None for a grid, or if its recipe is fixed.

    The number is an upper bound if a dimension has several places and a recipe can contain two of them.
    """
    if study.search is None or (pattern := (space := RecipeSpace(study)).pattern) is None:
        return None
    found = Space(pattern).count
    is_exact = found.exact and len(set(space.places)) == len(space.places)
    return Cardinality(forms=found.forms, infinite=found.infinite, exact=is_exact)


def space_words(study: Study) -> str:
    """Describe how many points a search's space has.

    Also say if the search requests more, or how many are within the limits. For example `54 architectures` or
    `2 points, fewer than the requested 6: …`; "" if neither is known.
    """
    if study.search is None:
        return ""
    size, points = space_size(study), study.search.num_points
    words = [str(size)] if size is not None else []
    if points < study.search.settings.trials:
        allowed = " within the limits" if study.budget.limits else ""
        fewer = f"fewer than the requested {study.search.settings.trials:,}"
        words.append(f"{plural(points, 'point')}{allowed}, {fewer}: a run ends after all of them")
    elif study.budget.limits:
        share = 100 * len(study.search.allowed_probes) / PROBES
        words.append(f"{share:.2g} % of {PROBES} random points are within the limits")
    return "; ".join(words)


def goal_words(study: Study) -> str:
    """Describe the objectives: `the highest max_length and the lowest parameters, with seconds < 60`."""
    ways = {"max": "highest", "min": "lowest"}
    objectives = study.search.settings.objectives if study.search else ()
    goals = [f"the {ways[each.direction]} {each.name}" for each in objectives]
    text = listed(goals)
    limits = ", ".join(map(str, study.header.bounds))
    return f"{text}, with {limits}" if limits else text


def over_limit_sentence(found: SearchPoints) -> Iterator[str]:
    """Yield a sentence that counts the points that exceed a limit, or may exceed it."""
    words = [f"{plural(count, 'point')} {reason}" for count, reason in _over_limit(found) if count]
    if words:
        yield f"Excluded: {' and '.join(words)}."


def _over_limit(found: SearchPoints) -> tuple[tuple[int, str], ...]:
    return (
        (found.num_infeasible, "outside a limit of the search"),
        (found.num_undetermined, "possibly outside a limit"),
    )


def left_out(found: SearchPoints) -> Iterator[tuple[int, str]]:
    """Yield why points are not ranked, such as `the training diverged`, and how many.

    Failed and pruned points are not counted.
    """
    statuses = Counter(point.status for point in found.points)
    metrics = " or ".join(goal.name for goal in found.goals)
    reasons = (
        (statuses[ValueStatus.NO_VALUE], f"no finite {metrics}"),
        (statuses[ValueStatus.DIVERGED], "the training diverged or ended worse than a guess"),
        *_over_limit(found),
    )
    yield from ((count, reason) for count, reason in reasons if count)


def rung_words(name: str, rungs: Sequence[RungCost]) -> str:
    """Describe the stages (rungs) of a search: `20 points at width=8, 6 at 24, 2 at 72: …`.

    The text ends with the number of epochs, and with the work as a number of whole trainings.
    """
    first, *others = rungs
    ways = [f"{plural(first.points, 'point')} at {name}={first.value}"]
    ways += [f"{each.points:,} at {each.value}" for each in others]
    work = sum(each.trials * each.share for each in rungs)
    epochs = plural(sum(each.epochs for each in rungs), "epoch")
    more = "more if later points are better than earlier ones"
    return f"{', '.join(ways)}: {epochs}, as much work as {work:,.3g} whole trainings, {more}"


def scheduler_words(search: SearchSettings) -> str:
    """Return the end of a sentence on a search's scheduler, such as `, cut short by asha`, or ""."""
    if search.fidelity != EPOCHS:
        return f", by {search.scheduler.name} over {search.fidelity}"
    return f", cut short by {search.scheduler.name}" if search.compares_epochs else ""


def search_words(study: Study, elsewhere: int = 0) -> str:
    """Describe a search: `20 points by tpe (the first 10 at random) for the lowest loss, cut short by asha`.

    `elsewhere` is the number of points whose results are known from other studies.
    """
    assert study.search is not None
    search = study.search.settings
    end = f", at most {search.budget.words()}" if search.budget and search.budget.words() else ""
    mean = f", means over each {' and '.join(search.across)}" if search.across else ""
    startup = min(search.trials, search.startup)
    random = f" (the first {startup} at random)" if startup else ""
    text = f"{plural(search.trials, 'point')} by {search.sampler_name}{random} for {goal_words(study)}"
    text = f"{text}{mean}{scheduler_words(search)}{end}"
    if not elsewhere:
        return text
    are = "is" if elsewhere == 1 else "are"
    what = "count" if search.warm_start else "warm_start = true reuses"
    return f"{text}; {plural(elsewhere, 'point')} of its space {are} known from other studies, which {what}"
