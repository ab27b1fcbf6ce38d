"""A plan as text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap

from ..grammar.vocabulary.spec import uncounted_kernels
from .claims.interim_tests import looks
from .planning.memory_estimates import StepMemory
from .planning.plan import ModelCost, Plan
from .planning.reused_trials import describe_stale
from .planning.time_estimates import TimeEstimate
from .resolve.training_budget import budget_note, unreached_note
from .resolve.trial import Trial, first_of_each_kind
from .schema.factors import bare_level_names, level_name, short_level_names
from .schema.search_settings import usual_direction
from .schema.settings import read_recipe
from .searches.points import comparison_note
from .searches.words import rung_costs, rung_words, search_words, space_words
from .study import Study
from .text.errors import command_line
from .text.units import (
    WIDTH,
    abbreviate_all,
    format_bytes,
    format_duration,
    labelled_lines,
    listed,
    plural,
    si_prefix,
)

NO_ESTIMATE = "no estimate before the first trial on this machine, which reads the data"

NO_NUMBER = "–"
"""The placeholder for a missing number."""

_Note = tuple[str, str]
"""A subject and the text about it; a note with an empty text is not shown."""

_STALE = "a run trains them again, --keep-stale reuses them"

_FACTOR = re.compile(r"(\w+)=")

_MAX_MODELS = 24
_MAX_NAMED = 3
_MIN_LABEL_WIDTH = 12
_MAX_ALIASES = 8


def format_plan(
    plan: Plan,
    *,
    first_trial: str = "",
    elsewhere: str = "",
    width: int = WIDTH,
    bold: Callable[[str], str] = str,
) -> str:
    """Return the text of a plan, as `activemem study plan` prints it.

    - `first_trial` is the command that trains one trial, for a plan without an estimate.
    - `elsewhere` says how long a named GPU would take.
    """
    study, machine = plan.study, plan.machine
    is_known = plan.estimate.seconds is not None
    sequential = f"{_time(plan.estimate)} of training, one trial after the other" if is_known else ""
    total = machine.total if machine else sequential
    unknown = f"{NO_ESTIMATE}:\n{first_trial}" if first_trial else NO_ESTIMATE
    where = "; ".join(filter(None, (machine and machine.where, elsewhere)))
    lines = [
        *map(bold, wrap(f"{study.name} · {study.title}", width)),
        *wrap(_counts(study, plan), width),
        "",
        *_models(study, plan, width),
        *(line for each in study.expansions.values() for line in each.plan_lines(study, width)),
    ]
    parts = [
        ("in all  ", total or unknown),
        ("data", "; ".join(plan.data.facts)),
        *(("warning", text) for text in plan.data.warnings),
        ("where", where),
        ("bf16", machine.bf16 if machine else ""),
        *_design_notes(study, plan),
        ("costs", _costliest_cells(plan)),
        *_cost_notes(plan, width),
        *_search_notes(study, plan),
        ("stale", f"{describe_stale(plan.stale)}; {_STALE}" if plan.stale else ""),
        *(
            ("over", f"{each.label}: {each.excess}; {plural(each.trials, 'trial')} not run")
            for each in plan.over_budget
        ),
        ("noise", "; ".join(plan.noise)),
        *(("note", str(ceiling)) for ceiling in (*plan.reach_limits, *plan.insufficient_reach)),
    ]
    for label, text in parts:
        lines += ["", *labelled_lines(label, text, width)] if text else []
    return "\n".join(lines)


def _design_notes(study: Study, plan: Plan) -> Iterator[_Note]:
    yield "design", study.design.explain()
    yield "order", "trials start in the order of the file" if study.header.order == "file" else ""
    aliases = study.design.alias_words()
    more = f"; and {len(aliases) - _MAX_ALIASES:,} more" if len(aliases) > _MAX_ALIASES else ""
    yield "alias", "; ".join(aliases[:_MAX_ALIASES]) + more
    if study.header.max_seeds is not None and study.claims:
        counts = looks(len(study.seeds), study.header.max_seeds)
        added = "which `study run --until-decided` adds as needed"
        yield "seeds", f"claims are tested at {listed(counts)} seeds, {added}"
    yield "note", _shared_trials(study)
    yield "note", plan.max_seeds_note
    yield budget_note(study.template.tables["train"], (each.settings for each in study.trials))
    yield "note", unreached_note(each.common for each in first_of_each_kind(study.examples))
    if plan.timed_devices:
        stored = "; ".join(f"{plural(count, 'trial')} on {on}" for on, count in plan.timed_devices.items())
        again = command_line("study", "forget", study.name)
        yield "stored", f"{stored}: they count only on that device; to train on another, first run {again}"
    for each in study.expansions.values():
        yield from each.notes(study, plan)


def _shared_trials(study: Study) -> str:
    """Return a sentence on levels that only differ in their spelling, or "" if no cells share a trial."""
    first: dict[str, Trial] = {}
    for cell in study.cells:
        other = first.setdefault(cell.id, cell)
        if other is not cell:
            names = [name for name in cell.levels if cell.levels[name] != other.levels[name]]
            labels = (
                ", ".join(f"{name}={level_name(each.levels[name])}" for name in names)
                for each in (other, cell)
            )
            return f"some cells have the same settings and share their trials, as {' and '.join(labels)}"
    return ""


def _cost_notes(plan: Plan, width: int) -> Iterator[_Note]:
    if plan.memory is not None:
        label, held = plan.memory
        yield "memory", f"a step of {abbreviate_all([label], width // 2)[0]} holds {_memory(held)}"
    recipes = dict.fromkeys(each.trial.common.model.recipe for each in plan.trials)
    kernels = (uncounted_kernels(read_recipe(each).root) for each in recipes)
    yield "flops", "; ".join(dict.fromkeys(filter(None, kernels)))
    resumed = plural(len(plan.resumed_from), "trial")
    yield "on", f"{resumed} resumed from the end of an earlier training" if plan.resumed_from else ""


def _search_notes(study: Study, plan: Plan) -> Iterator[_Note]:
    if (search := study.search) is None:
        return
    yield "search", search_words(study, plan.elsewhere)
    if search.rungs.rungs:
        yield "rungs", rung_words(search.rungs.name, rung_costs(study))
    yield "space", space_words(study)
    yield "note", comparison_note(study)
    population, points = getattr(search.settings.sampler, "population", 0), search.settings.trials
    if points < 2 * population:
        few = f"{plural(points, 'point')} are fewer than two populations of {population:,}"
        yield "note", f"{few}, the first of which is random: set a smaller population in [search] sampler"
    for goal in search.settings.objectives:
        if goal.name.startswith("test_"):
            yield "note", f"a search by {goal.name} fits its points to the test split; search by a dev metric"
        if usual_direction(goal.name) not in (goal.direction, None):
            sought, worse = ("highest", "higher") if goal.maximise else ("lowest", "lower")
            yield "note", f"the search looks for the {sought} {goal.name}, but a {worse} one is usually worse"


def _memory(held: StepMemory) -> str:
    """Describe a step's memory as `2.1 MB, ± 20 %: 0.4 MB for weights, …`."""
    weights, activations = format_bytes(held.weights), format_bytes(held.activations)
    of_weights = "weights, their gradients and the optimiser"
    at = f"activations at {plural(held.tokens, 'token')}"
    return f"{format_bytes(held.total)}, ± 20 %: {weights} of {of_weights}, {activations} of {at}"


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


def _costliest_cells(plan: Plan) -> str:
    """Return which cells have the costs in the table of models; "" if all cells of a model cost the same."""
    found = {
        "parameters": {model.parameters_at for model in plan.models},
        "FLOPs/step": {model.flops_at for model in plan.models},
        "memory": {model.memory_at for model in plan.models},
    }
    costs: dict[str, list[str]] = {}
    for what, levels in found.items():
        costs.setdefault(" or ".join(sorted(levels - {""})), []).append(what)
    parts = [f"{listed(several)} at {at}" for at, several in costs.items() if at]
    return f"the table has the largest of each model: {'; '.join(parts)}" if parts else ""


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
        _time(model.estimate),
    )


def _label_column_name(study: Study, plan: Plan) -> str:
    """Return the factor whose levels label the models, as the heading of their column, else "model"."""
    labels = {model.label for model in plan.models}
    factors = (
        name for name, levels in study.factors.items() if labels <= {level_name(each) for each in levels}
    )
    return next(factors, "model")


def _time(estimate: TimeEstimate) -> str:
    if estimate.seconds is None:
        return NO_NUMBER
    bound = f"{'≤ ' if estimate.basis == 'at most' else ''}{format_duration(estimate.seconds)}"
    about = bound if estimate.expected is None else f"~{format_duration(estimate.expected)}, {bound}"
    return bound if about == f"~{bound.removeprefix('≤ ')}, {bound}" else about
