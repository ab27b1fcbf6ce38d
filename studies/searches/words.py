"""Descriptions of a search in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from ..planning.trial_values import ValueStatus
from ..schema.search_parts import EPOCHS, RACE
from ..schema.search_settings import SearchSettings
from ..text.units import plural
from .points import SearchPoints
from .rung_costs import RungCost


def goal_words(search: SearchSettings) -> str:
    """Return the objectives in words.

    Example: `the highest max_length and the lowest parameters, with seconds < 60`.
    """
    ways = {"max": "highest", "min": "lowest"}
    goals = [f"the {ways[each.direction]} {each.name}" for each in search.objectives]
    text = " and ".join(filter(None, [", ".join(goals[:-1]), goals[-1]]))
    limits = ", ".join(map(str, search.bounds))
    return f"{text}, with {limits}" if limits else text


def beyond_sentence(found: SearchPoints) -> Iterator[str]:
    """Yield how many points are left out because they are, or may be, beyond a limit."""
    words = [f"{plural(found.beyond, 'point')} beyond a limit of the search"] if found.beyond else []
    words += [f"{plural(found.unknown, 'point')} that may be"] if found.unknown else []
    if words:
        yield f"Left out: {' and '.join(words)}."


def left_out(found: SearchPoints) -> Iterator[tuple[int, str]]:
    """Yield how many ended points are not ranked, and why; failed and pruned ones are counted elsewhere."""
    statuses = Counter(point.status for point in found.points)
    values = "; ".join(
        f"{metric} is not finite ({', '.join(f'{n} × {word}' for word, n in words.items())})"
        for metric, each in found.not_finite.items()
        if (words := Counter(sorted(map(_value_word, each))))
    )
    reasons = (
        (statuses[ValueStatus.NO_VALUE], values),
        (statuses[ValueStatus.DIVERGED], "the training diverged"),
        (found.beyond, "beyond a limit of the search"),
        (found.unknown, "a value that the search limits is not known"),
    )
    yield from ((count, reason) for count, reason in reasons if count)


def _value_word(value: float | None) -> str:
    if value is None:
        return "no value"
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"


def best_words(found: SearchPoints, shown: int) -> str:
    """Return a description of the points that are shown first."""
    of = f"{shown} of {plural(len(found.complete), 'point')}"
    if not shown:
        return "No point that counts is done yet."
    if len(found.goals) == 1:
        return f"The best {of}, the best first."
    return (
        f"The front: {of}, which none surpasses in all of {', '.join(each.metric for each in found.goals)}."
    )


def rung_words(name: str, rungs: Sequence[RungCost]) -> str:
    """`20 points at width=8, 6 at 24, 2 at 72: 28 epochs, as much work as 5.3 whole trainings, …`."""
    first, *others = rungs
    ways = [f"{plural(first.points, 'point')} at {name}={first.value}"]
    ways += [f"{each.points:,} at {each.value}" for each in others]
    work = sum(each.trials * each.share for each in rungs)
    epochs = plural(sum(each.epochs for each in rungs), "epoch")
    more = "more where later points are better than those before"
    return f"{', '.join(ways)}: {epochs}, as much work as {work:,.3g} whole trainings, {more}"


def sampler_words(search: SearchSettings) -> str:
    """Return `tpe` or `gp_trees with a prior`."""
    return f"{search.sampler_name} with a prior" if search.prior else search.sampler_name


def scheduler_words(search: SearchSettings) -> str:
    """Return `, cut short by asha`; empty without a scheduler."""
    if search.scheduler.name == RACE:
        return ", further seeds for those that may be the best"
    if search.fidelity != EPOCHS:
        return f", by {search.scheduler.name} over {search.fidelity}"
    return f", cut short by {search.scheduler.name}" if search.compares_epochs else ""


def search_words(search: SearchSettings, elsewhere: int = 0) -> str:
    """`20 points by tpe for the lowest loss, cut short by asha`, and how many other studies have trained."""
    end = f", at most {search.budget.words()}" if search.budget and search.budget.words() else ""
    mean = f", means over each {' and '.join(search.across)}" if search.across else ""
    text = f"{plural(search.trials, 'point')} by {sampler_words(search)} for {goal_words(search)}"
    text = f"{text}{mean}{scheduler_words(search)}{end}"
    if not elsewhere:
        return text
    are, what = "is" if elsewhere == 1 else "are", "count" if search.warm_start else "warm_start = true takes"
    return f"{text}; {plural(elsewhere, 'point')} of its space {are} known of other studies, which {what}"
