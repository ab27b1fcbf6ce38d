"""A plan as text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from .planning.time_estimates import NO_NUMBER
from .schema.factors import bare_level_names, level_name, short_level_names
from .text.units import (
    WIDTH,
    abbreviate_all,
    format_bytes,
    labelled_lines,
    plural,
    si_prefix,
)

if TYPE_CHECKING:
    from .plan import ModelCost, Plan
    from .study import Study

NO_ESTIMATE = "no estimate before the first trial on this machine, which reads the data"

_FACTOR = re.compile(r"(\w+)=")

_MAX_MODELS = 24
_MIN_LABEL_WIDTH = 12


def format_plan(
    plan: Plan, *, first_trial: str = "", width: int = WIDTH, bold: Callable[[str], str] = str
) -> str:
    """Return the text of a plan, as `activemem study plan` prints it.

    `first_trial` is the command that trains one trial, for a plan without an estimate.
    """
    lines = [
        *map(bold, wrap(f"{plan.study.name} · {plan.study.title}", width)),
        *wrap(_counts(plan.study, plan), width),
        "",
        *_models(plan.study, plan, width),
    ]
    for note in plan.notes:
        text, _, table = note.text.partition("\n\n")
        text += f":\n{first_trial}" if text == NO_ESTIMATE and first_trial else ""
        label = f"{note.label}  " if note.label == "in all" else note.label  # it stands out
        lines += ["", *labelled_lines(label, text, width)]
        lines += ["", table] if table else []
    return "\n".join(lines)


def _counts(study: Study, plan: Plan) -> str:
    """Describe the counts: `8 mixers × 6 tasks × 3 seeds = 144 trials · 12 in the store · 132 to run`."""
    axes = [_axis(name, len(levels)) for name, levels in study.factors.items() if len(levels) > 1]
    seeds = plural(len(study.seeds), "seed")
    product = math.prod(map(len, study.factors.values()))
    if search := study.search:
        if search.baseline and len(search.baseline_seeds) > len(study.seeds):
            seeds += f" ({len(search.baseline_seeds):,} of the baseline)"
        across = [_axis(name, len(study.factors[name])) for name in search.settings.across]
        axes, product = [plural(search.num_points, "point"), *across, seeds], plan.total
        if rungs := len(search.rungs.rungs):
            # the numbers cannot be multiplied: most points reach only the first rung
            axes[0] += f" on {plural(rungs, 'rung')}"
    elif product != len(study.cells):
        axes, product = [plural(len(study.cells) // len(study.seeds), "cell"), seeds], len(study.cells)
    trials = plural(plan.total, "trial" if product == plan.total else "distinct trial")
    stored, failed = sum(plan.counts.values()), plan.counts.get("failed", 0)
    trials += f", {plan.subset_size:,} in this part" if plan.subset_size is not None else ""
    beyond = f", {stored - plan.total:,} more than planned" if search and stored > plan.total else ""
    parts = [f"{' × '.join(axes)} = {trials}" if axes else trials, f"{stored:,} in the store{beyond}"]
    parts += [f"{failed:,} of them failed"] if failed else []
    parts += [f"{lost:,} of them incomplete"] if (lost := plan.counts.get("incomplete", 0)) else []
    lacking = plan.num_missing_weights
    parts += [f"{plan.left:,} to run" + (f", {lacking:,} of them for their weights" if lacking else "")]
    over = sum(each.trials for each in plan.over_budget)
    return " · ".join([*parts, f"{over:,} over budget"] if over else parts)


def _axis(name: str, count: int) -> str:
    """Describe a factor and its number of levels: `8 mixers` or, for other names, `5 levels of N`."""
    countable = name.isalpha() and len(name) > 1 and not name.endswith("s")
    return plural(count, name) if countable else f"{count:,} levels of {name}"


def _models(study: Study, plan: Plan, width: int) -> Iterator[str]:
    """Yield the lines of the plan's table of models, one or two for each model."""
    order = list(dict.fromkeys(model.at for model in plan.models))
    models = sorted(plan.models, key=lambda model: order.index(model.at))
    shown = models[:_MAX_MODELS]
    unit, size = si_prefix(max((model.step_flops for model in plan.models), default=0))
    matched = study.design.matched_size
    costs = matched.costs if matched else ()
    residual = "state" if costs == ("state",) else "residuals" if costs[1:] else "residual"
    solved = (matched.name, residual) if matched else ()
    heads = (_label_column_name(study, plan), *solved, "parameters", f"{unit}FLOPs/step", "memory")
    cells = [_row(model, size) for model in shown]
    for gap, time in ((3, "est. per trial"), (2, "est./trial")):  # narrower columns if labels need the room
        rows = [(*heads, time), *cells]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)][1:]
        longest, room = max(len(row[0]) for row in rows), width - sum(widths) - gap * len(widths) - 2
        if longest <= room:
            break
    texts = [row[0] for row in rows]
    labels, alone = _labels(texts, max(room, 1)), _labels(texts, width - 2)
    # labels are cut only if they are too long for a line of their own
    is_cut, stays_cut = (any("…" in label for label in each) for each in (labels, alone))
    has_room = room >= min(longest, _MIN_LABEL_WIDTH) and (stays_cut or not is_cut)
    labels = labels if has_room else alone
    heading = ""
    for label, (_, *others), at in zip(labels, rows, ["", *(model.at for model in shown)], strict=True):
        if at != heading:
            heading = at
            yield f"  {heading}"
        costs = "".join(f"{text:>{gap + width}}" for text, width in zip(others, widths, strict=True))
        yield from (label + costs,) if has_room else (label.rstrip(), costs)
    if len(models) > _MAX_MODELS:
        yield f"  and {plural(len(models) - _MAX_MODELS, 'model')} more"


def _labels(texts: Sequence[str], max_width: int) -> list[str]:
    """Return the first column of a table, padded to one width.

    If labels are too long, arguments that all of them share are left out. If that is not enough, and labels
    stay different, so are all arguments, and the names of factors move into the heading.
    """
    corner, *labels = texts
    if max(map(len, labels), default=0) > max_width:
        short = short_level_names(labels)
        bare = [(label, *bare_level_names(label))[-1] for label in labels]
        names = {tuple(_FACTOR.findall(each)) for each in bare}
        if max(map(len, short)) > max_width and len(set(bare)) == len(set(labels)) and len(names) == 1:
            corner = ", ".join(*names) or corner
            short = tuple(_FACTOR.sub("", each) for each in bare)
        labels = list(short)
    shown = (corner, *labels)
    widest = min(max_width, max(map(len, shown)))
    return [f"  {text:<{widest}}" for text in abbreviate_all(shown, widest)]


def _row(model: ModelCost, size: float) -> tuple[str, ...]:
    found, solved = model.size_match, tuple[str, ...]()
    if found is not None:
        cost, *others = found.costs
        text = format_bytes(cost.amount) if cost.name == "state" else cost.residual_text
        several = ", ".join(each.percent for each in found.costs)
        solved = (NO_NUMBER if found.size is None else f"{found.size:,}", several if others else text)
    return (
        "  " * bool(model.at) + model.label,
        *solved,
        f"{model.parameters:,}",
        f"{model.step_flops / size:,.1f}",
        NO_NUMBER if model.memory is None else format_bytes(model.memory),
        model.estimate.words,
    )


def _label_column_name(study: Study, plan: Plan) -> str:
    """Return the factor whose levels label the models, as the heading of their column, else "model"."""
    labels = {model.label for model in plan.models}
    factors = (
        name for name, levels in study.factors.items() if labels <= {level_name(each) for each in levels}
    )
    return next(factors, "model")
