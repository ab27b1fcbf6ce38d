"""What a search is after, in words."""

from __future__ import annotations

from ..schema.search_settings import RACE, SearchSettings
from ..text.units import plural


def goal_words(search: SearchSettings) -> str:
    """`the highest max_length and the lowest parameters, with seconds < 60`."""
    ways = {"max": "highest", "min": "lowest"}
    goals = [f"the {ways[each.direction]} {each.name}" for each in search.objectives]
    text = " and ".join(filter(None, [", ".join(goals[:-1]), goals[-1]]))
    limits = ", ".join(map(str, search.bounds))
    return f"{text}, with {limits}" if limits else text


def search_words(search: SearchSettings, elsewhere: int = 0) -> str:
    """`20 points by tpe for the lowest loss, cut short by asha`, and how many other studies have trained."""
    cut = f", cut short by {search.scheduler}" if search.compares_epochs else ""
    cut = ", further seeds for those that may be the best" if search.scheduler == RACE else cut
    end = f", at most {search.budget.words()}" if search.budget and search.budget.words() else ""
    mean = f", means over each {' and '.join(search.across)}" if search.across else ""
    text = f"{plural(search.trials, 'point')} by {search.sampler} for {goal_words(search)}{mean}{cut}{end}"
    if not elsewhere:
        return text
    are, what = "is" if elsewhere == 1 else "are", "count" if search.warm_start else "warm_start = true takes"
    return f"{text}; {plural(elsewhere, 'point')} of its space {are} known of other studies, which {what}"
