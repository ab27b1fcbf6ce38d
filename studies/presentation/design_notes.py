"""A study's design in words: its cells, and which effects it can separate."""

from __future__ import annotations

import math

from ..designs import Aliases, Effect, find_aliases
from ..schema.design import Design, level_key
from ..schema.factors import describe_condition
from ..text.units import plural

_RESOLUTIONS = {
    "III": "main effects are not aliased with each other, but with interactions of two factors",
    "IV": (
        "main effects are not aliased with each other or with interactions of two factors, some of which "
        "are aliased with each other"
    ),
    "V or more": "no main effect or interaction of two factors is aliased with another",
}
"""The meaning of each resolution of a fraction."""


def explain_design(design: Design) -> str:
    """Explain a design that is not a plain grid: its cells, and which effects it can separate."""
    around = f"around each {' and '.join(design.around)}: " if design.around else ""
    told = around + _explain_kind(design) if design.crossed else ""
    where = [f"{name} only where {describe_condition(each)}" for name, each in design.conditions.items()]
    labels = [f"{' and '.join(design.labels)} only {'names' if len(design.labels) == 1 else 'name'} cells"]
    return "; ".join([*([told] if told else []), *where, *(labels if design.labels else [])])


def _explain_kind(design: Design) -> str:
    match design.kind:
        case "grid":
            told = "every combination of levels" if design.conditions else ""
        case "one_at_a_time":
            told = (
                "the baseline, and every change of one factor; it estimates single changes, "
                "not their interactions"
            )
        case "zip":
            told = "factors change together; it compares rows, and cannot attribute effects to factors"
        case "cumulative":
            told = _cumulative(design)
        case "path":
            told = _path(design)
        case "fractional" | "plackett_burman":
            told = _two_level(design)
        case "random" | "latin_hypercube":
            told = _sample(design)
    return told


def design_aliases(design: Design) -> Aliases | None:
    """Return the aliases of a two-level design, with factors by index in `two_level`.

    None for other designs.
    """
    if design.kind not in ("fractional", "plackett_burman") or not design.two_level:
        return None
    rows = [
        tuple(
            int(level_key(row[name]) != level_key(design.baseline_level(name))) for name in design.two_level
        )
        for row in design.rows()
    ]
    return find_aliases(rows)


def alias_words(design: Design) -> list[str]:
    """Return a sentence for each group of aliases: `gate is aliased with norm × position`."""
    aliases = design_aliases(design)
    if aliases is None:
        return []
    return [
        f"{_effect(design, first)} is aliased with {' and '.join(_effect(design, each) for each in others)}"
        for first, *others in aliases.groups
    ]


def _cumulative(design: Design) -> str:
    steps = design.steps
    return (
        f"{plural(len(steps), 'step')} from the baseline, {', '.join(steps)}, each added to the "
        "previous ones; effects depend on this order"
    )


def _path(design: Design) -> str:
    steps = len(design.steps)
    most = 1 + steps * (steps + 1) // 2
    kept = f"kept so far: {', '.join(design.taken)}; " if design.taken else ""
    left = steps - len(design.taken)
    now = f"round {len(design.taken) + 1} of {steps}" if left else "all rounds have ended"
    return (
        f"from the baseline to the target, {plural(steps, 'change')}; each round tries all remaining "
        f"changes and keeps the best in {design.metric}, at most {most:,} "
        f"cells; {kept}{now}; it shows the order "
        "of importance along one path, not the effect of a single change"
    )


def _two_level(design: Design) -> str:
    factors, rows = len(design.two_level), design.rows()
    full = 2**factors
    if len(rows) >= full:
        return f"all {full:,} combinations of {plural(factors, 'factor')}; every effect can be estimated"
    head = f"{len(rows):,} of {full:,} combinations of {factors} factors of two levels"
    aliases = design_aliases(design)
    assert aliases is not None, "a fraction has factors of two levels"
    if aliases.partial:
        sizes = ", ".join(str(size) for size, _ in aliases.partial)
        return (
            f"{head}; main effects are not aliased with each other, but "
            "partly with interactions of two others "
            f"(correlation {sizes}), which are assumed to be small"
        )
    resolution = "III" if aliases.mains else "IV" if aliases.interactions else "V or more"
    return f"{head}, resolution {resolution}; {_RESOLUTIONS[resolution]}"


def _effect(design: Design, effect: Effect) -> str:
    """Name a main effect by its factor, `gate`; an interaction by both, `norm × position`."""
    return " × ".join(design.two_level[number] for number in effect)


def _sample(design: Design) -> str:
    inner = design.inner
    size = math.prod(map(len, inner.values()))
    head = f"{len(design.rows()):,} of {size:,} combinations, drawn with seed {design.sample_seed}"
    if design.kind == "random":
        return (
            f"{head}, of which more satisfy the constraints; it finds the most important factors, "
            "not small effects or interactions"
        )
    return (
        f"{head}, with balanced levels; it finds the most important factors, not small effects or "
        "interactions"
    )
