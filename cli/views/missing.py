"""Ablations that a reviewer may request, as lines of text: grouped by kind, with the cost of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ...reporting.missing_ablations import HEADINGS, MODEL, MissingAblations, Request, RequestCost
from ...studies.planning.time_estimates import total_time
from ...studies.resolve.training_budget import SECONDS_EFFECT
from ...studies.schema.factors import level_name
from ...studies.text.units import WIDTH, format_duration, plural, si_prefix

_MIN_WORDS_WIDTH = 24  # a request with less room beside its costs is on the lines below them


def format_missing(
    missing: MissingAblations, costs: Sequence[RequestCost], *, width: int = WIDTH
) -> Iterator[str]:
    """Yield lines about missing ablations under a heading for each kind, then their total cost."""
    held = ", ".join(f"{name} = {level_name(level)}" for name, level in missing.held.items())
    models, own = plural(len(missing.models), MODEL), plural(len(missing.study.seeds), "seed")
    new = (
        ""
        if missing.seeds == missing.study.seeds
        else f"; {plural(len(missing.seeds), 'seed')} are requested"
    )
    each = " each" if len(missing.models) > 1 else ""
    first = f"{missing.study.name}: {models}{f' at {held}' if held else ''}, {own}{each}{new}"
    yield from wrap(first, width, subsequent_indent="  ")
    checked = {each.settings.task.name for each in missing.models}
    tasks = dict.fromkeys(trial.settings.task.name for trial in missing.study.cells)
    if others := [name for name in tasks if name not in checked]:
        how = "to check another task, make it the baseline, or the first level of its factor"
        note = f"not checked: {', '.join(others)}; {how}"
        yield from wrap(note, width, initial_indent="  ", subsequent_indent="  ")
    if not missing.requests:
        yield "no ablation is missing"
        return
    words = [request_words(each) for each in missing.requests]
    texts = [cost_words([cost]) for cost in costs]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    open_ones = [place for place, cost in enumerate(costs) if cost.trials]
    for kind, heading in HEADINGS.items():
        own = [place for place in open_ones if missing.requests[place].kind == kind]
        if own:
            yield f"\n{heading}"
        for place in own:
            cells = (f"{text:>{size}}" for text, size in zip(texts[place], widths, strict=True))
            start = f"  {'  '.join(cells)}   "
            if len(start) + _MIN_WORDS_WIDTH <= width:
                yield from wrap(words[place], width, initial_indent=start, subsequent_indent=" " * len(start))
            else:
                yield start.rstrip()
                yield from wrap(words[place], width, initial_indent="    ", subsequent_indent="    ")
    if trained := len(costs) - len(open_ones):
        yield f"\n{plural(trained, 'request')} {'is' if trained == 1 else 'are'} trained already"
    if open_ones and (matched := missing.study.design.matched_size) is not None:
        yield ""
        yield from wrap(
            f"Each model keeps the {matched.name} computed for match, so changed models differ in size", width
        )
    if open_ones and missing.study.design.ladder:
        yield ""
        yield from wrap("Each model keeps its number of steps, also where its size or batch changes", width)
    if open_ones and "seconds" in missing.study.template.tables["train"]:
        yield ""
        yield from wrap(f"Seconds end each training: {SECONDS_EFFECT}", width)
    if open_ones:
        yield f"\nTotal: {', '.join(cost_words(costs))}"


def request_words(request: Request) -> str:
    """Describe a requested ablation on one line: its change, then its models."""
    models = list(dict.fromkeys(cell.model for cell in request.cells))
    if request.kind == "seeds":
        return f"{request.change} in {plural(len(request.cells), 'cell')}"
    return f"{request.change} · {models[0] if len(models) == 1 else plural(len(models), MODEL)}"


def cost_words(costs: Sequence[RequestCost]) -> tuple[str, str, str]:
    """Return the number of trials, the FLOPs and the time of these requests."""
    flops, estimate = sum(cost.flops for cost in costs), total_time(cost.estimate for cost in costs)
    prefix, scale = si_prefix(flops)
    if estimate.seconds is None:
        time = "time unknown"
    else:
        time = f"{'at most ' if estimate.basis == 'at most' else ''}{format_duration(estimate.seconds)}"
    trials = plural(sum(len(cost.trials) for cost in costs), "trial")
    return trials, f"{flops / scale:.1f} {prefix}FLOPs", time
