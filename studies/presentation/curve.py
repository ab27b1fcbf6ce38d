"""[[curve]]: what a figure shows of a study, and whether it fits the study's factors and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from ...diagnostics import nearest_hint
from ..catalog.metrics import METRICS_AND_COSTS, find_metric, metric_family, unknown_metric
from ..catalog.published import published_tables
from ..schema.design import Design
from ..schema.factors import SEED
from ..schema.settings import Level, Name
from ..text.pydantic_messages import format_value
from ..text.strict_model import StrictModel
from ..text.toml_positions import KeyPath
from .selection import describe_mixed_levels, level_name_fault, select_faults, selected_levels

Band = Literal["sd", "se", "ci", "minmax"]

CellCurve = Literal["line", "bar", "box", "heat", "pareto"]
"""Kinds of figures whose marks are cells."""

TIME_AXES = {"epoch": "Epoch", "step": "Step"}
"""The axes of a learning curve, with their titles."""

INDEX_AXES = ("index", "index2")
"""The first and the second index of a metric such as `attention[3,7]`."""

MAX_COLUMNS = 6
"""More panels than these do not fit side by side in rows."""

_KEYS_BY_KIND = {
    "line": {"series", "panels", "rows", "band", "logx", "logy", "accent", "published"},
    "bar": {"panels", "rows", "band", "accent", "published"},
    "box": {"panels", "rows", "accent"},
    "heat": {"y", "panels", "rows"},
    "pareto": {"series", "panels", "rows", "band", "logx", "logy", "accent"},
}
"""The keys of each kind besides the common ones."""

_COMMON_KEYS = {"name", "kind", "value", "x", "select", "caption"}


class CurveSpec(StrictModel):
    """`[[curve]]`: a metric over a factor, over time, over its own index, or against a cost."""

    name: Name
    """what `--curve` and the file call it"""
    kind: CellCurve
    """lines with bands, bars in rows, box plots, a heat map, or a cloud with its front; the kinds below have
    keys of their own"""
    value: str
    """the metric; a family such as `bleu` over its index, or a cost"""
    x: str
    """a factor; for lines also `epoch`, `step` or `index`, for boxes `index`, for heat maps `index` or
    `index2`; for a front a cost such as `parameters` or `flops`, or another metric"""
    y: str | None = None
    """the rows of a heat map, whose columns are `x`"""
    series: str | None = None
    """the factor with a line for each of its levels"""
    panels: str | None = None
    """the factor with a panel for each of its levels"""
    rows: str | None = None
    """the factor with a row of panels for each of its levels; `panels` are then their columns"""
    select: dict[str, Any] = Field(default={})
    """for a factor, the level or the list of levels that is kept"""
    band: Band = "sd"
    """what bands and whiskers show: standard deviation, standard error, 95 % interval, or the range"""
    logx: bool = False
    """whether `x` is logarithmic; 0 is drawn before its start"""
    logy: bool = False
    """whether the metric's axis is logarithmic"""
    accent: Any = None
    """the one level in colour: of `series`, or of the `x` of bars and boxes"""
    published: str | None = None
    """the paper's table whose numbers are drawn as diamonds beside ours"""
    caption: str | None = None
    """the text above the figure; by default metric, axis and levels"""

    @property
    def roles(self) -> dict[str, str]:
        """The names in the roles x, y, series, panels and rows, as far as they are given."""
        roles = {
            "x": self.x,
            "y": self.y,
            "series": self.series,
            "panels": self.panels,
            "rows": self.rows,
        }
        return {role: name for role, name in roles.items() if name is not None}

    @property
    def needs_history(self) -> bool:
        """Whether it needs more than the final values: those of every epoch, or of every index."""
        return self.kind == "box" or not {*TIME_AXES, *INDEX_AXES}.isdisjoint(self.roles.values())

    @property
    def accent_factor(self) -> str | None:
        """The factor whose level `accent` is."""
        return self.series if self.kind in ("line", "pareto") else self.x


def curve_faults(spec: CurveSpec, design: Design, paper: str | None) -> list[tuple[KeyPath, str]]:
    """Everything in a figure's specification that does not fit a study: the key's path, and what is wrong.

    Levels are checked only if the factors are right, so that no fault follows from another.
    """
    factors = design.known_levels
    faults = [*_key_faults(spec), *select_faults(spec.select, factors), *_role_faults(spec, factors)]
    if not faults:
        faults += _level_faults(spec, design)
    if metric_family(spec.value) not in METRICS_AND_COSTS:
        faults.append((("value",), unknown_metric(spec.value)))
    elif spec.kind == "pareto" and find_metric(spec.value).higher_is_better is None:
        faults.append((("value",), f"expected a metric with a better direction, got '{spec.value}'"))
    published = [name for known, name in published_tables() if known == paper]
    if "published" in _KEYS_BY_KIND[spec.kind] and spec.published not in (None, *published):
        unknown = f"no published table '{spec.published}' of {paper or 'a paper: [study] names none'}"
        faults.append((("published",), unknown + nearest_hint(spec.published, published)))
    return faults


def _key_faults(spec: CurveSpec) -> Iterator[tuple[KeyPath, str]]:
    """Keys that the kind does not have, and the one that a heat map needs."""
    for key in CurveSpec.model_fields:
        if key in spec.model_fields_set - _COMMON_KEYS - _KEYS_BY_KIND[spec.kind]:
            kinds = [kind for kind, keys in _KEYS_BY_KIND.items() if key in keys]
            verb = "has" if len(kinds) == 1 else "have"
            yield (key,), f"kind '{spec.kind}' has no {key}; {' and '.join(kinds)} {verb}"
    if spec.kind == "heat" and spec.y is None:
        yield (), "missing key 'y'"
    if spec.rows is not None and spec.panels is None:
        yield ("rows",), "expected panels as well, the columns of these rows"
    if spec.published is not None and spec.x in TIME_AXES:
        yield (("published",), "a paper's numbers are given by level, not over time")


def _role_faults(spec: CurveSpec, factors: Mapping[str, tuple[Level, ...]]) -> Iterator[tuple[KeyPath, str]]:
    """Roles with a name that is not a factor, or with the name of another role."""
    met: dict[str, str] = {}
    for role, name in spec.roles.items():
        others = _special_values(spec.kind, role)
        if spec.kind == "pareto" and role == "x":
            if name not in others:
                yield (role,), f"expected a cost or a metric, got '{name}'{nearest_hint(name, others)}"
        elif name not in factors and name not in others:
            yield (role,), f"unknown factor '{name}'{nearest_hint(name, [*factors, *others])}"
        if name in met:
            yield (role,), f"expected something other than {met[name]}'s, got '{name}'"
        met.setdefault(name, role)


def _special_values(kind: str, role: str) -> tuple[str, ...]:
    """The names that a role can have besides factors; they take precedence over a factor of the same name."""
    if kind == "pareto" and role == "x":
        return tuple(METRICS_AND_COSTS)
    if kind == "line" and role == "x":
        return (*TIME_AXES, "index")
    if kind == "box" and role == "x":
        return ("index",)
    return INDEX_AXES if kind == "heat" and role in ("x", "y") else ()


def _level_faults(spec: CurveSpec, design: Design) -> Iterator[tuple[KeyPath, str]]:
    """Levels that cannot be drawn: words on a line, factors without a role, an accent that is not a level."""
    levels = selected_levels(spec.select, design.factors)
    if spec.kind == "line" and spec.x in levels:
        words = [format_value(level) for level in levels[spec.x] if isinstance(level, str | bool)]
        if words:
            yield ("x",), f"expected a factor of numbers, got {', '.join(words)}"
    if spec.rows is not None and spec.panels in levels and len(levels[spec.panels]) > MAX_COLUMNS:
        count = len(levels[spec.panels])
        yield (
            ("panels",),
            f"expected at most {MAX_COLUMNS} levels side by side, got {count}: select some of them",
        )
    factors = [name for name in spec.roles.values() if name in levels]
    if spec.kind != "pareto" and (mixed := describe_mixed_levels(factors, spec.select, design)):
        yield ("x",), f"expected every other factor but {SEED} to have one level, got {mixed}"
    if spec.accent is None:
        return
    known = selected_levels(spec.select, design.known_levels)
    if spec.accent_factor not in known:
        yield ("accent",), "expected a factor that it is a level of, as series"
    elif message := level_name_fault(spec.accent, known[spec.accent_factor], spec.accent_factor):
        yield ("accent",), message
