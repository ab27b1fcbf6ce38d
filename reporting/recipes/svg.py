"""A recipe as an SVG: the residual stream from top to bottom, with the costs of each part.

Labels are next to their parts, and the only colour remains distinct in grey print. A part in a repeat counts
all of its copies, so that the rows with bars add up to the total. A bar is the row's share of the total.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html import escape
from textwrap import wrap

from ...errors import replace_unprintable
from ...grammar import Analysis, ModelPart, PartKind, Recipe
from ...grammar.analysis.analyse import PREVIOUS_PART
from ...studies.text.units import si_prefix, truncate
from .breakdown import conditions, format_costs, generation_memory

_WIDTH, _ROW, _MARGIN, _BAR, _BRACKET = 900, 24, 24, 60, 12
_NUMBERS = (410, 555, 705)
"""The right ends of the numbers in the three columns with bars; each bar begins just after its number."""

_STREAM = 26
"""The distance between two streams, without brackets."""

_CONTAINER_FORMS = (PartKind.COPIES, PartKind.STACK)
"""The kinds of parts that have a single row without bars."""

_REACH = 785
_LABELS_END = _NUMBERS[0] - 80
_CHARACTER = 7.2
"""The approximate width of a label's character."""

_INK, _FAINT, _LINE, _ACCENT = "#222", "#666", "#999", "#4c78a8"
_STYLE = (
    f"text{{font:13px Helvetica,Arial,sans-serif;fill:{_INK}}} .n{{text-anchor:end}} .f{{fill:{_FAINT}}} "
    f".r{{font-family:Menlo,Consolas,monospace}} .t{{font-weight:bold}} "
    f"path{{fill:none;stroke:{_LINE};stroke-width:1.5}} rect,circle{{fill:{_ACCENT}}}"
)


def render(recipe: Recipe, analysis: Analysis, batch: int) -> str:
    """Return the SVG text of a recipe, with a white background and a height that fits the rows."""
    title = wrap(recipe.text, 96, break_on_hyphens=False)
    top = _MARGIN + 20 * len(title) + 60
    flow = _StreamLayout(top)
    tree = analysis.tree_with_memory(batch)
    parts = tuple(_drawing_order(tree.parts))
    flow.streams(parts, _MARGIN + _BRACKET * _brackets(parts) + 3)
    total = flow.y + 8
    row = _SvgRow(part=tree, label="total", x=_MARGIN, y=total, css_class="t")
    body = [
        *_title(title, recipe.id),
        *_heads(analysis, top - 28),
        *flow.strokes,
        *(line for row in flow.rows for line in _row(row, tree, analysis)),
        _path(f"M{_MARGIN} {total - 16}H{_WIDTH - _MARGIN}"),
        *_row(row, tree, analysis),
        _text(_MARGIN, total + 36, conditions(analysis, batch), "f"),
        *([_text(_MARGIN, total + 56, kept, "f")] if (kept := generation_memory(analysis)) else ()),
    ]
    height = total + 56 + _MARGIN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}"'
    lines = [f'{head} height="{height}" style="background:#fff">', f"<title>{escape(recipe.text)}</title>"]
    return "\n".join([*lines, f"<style>{_STYLE}</style>", *body, "</svg>", ""])


@dataclass(frozen=True, slots=True, kw_only=True)
class _SvgRow:
    part: ModelPart
    label: str
    x: float
    y: float
    css_class: str = ""


@dataclass(slots=True)
class _StreamLayout:
    """Layout of a model's parts from top to bottom.

    `y` is the middle of the next row, and `ends` has the end position of each part, by label.
    """

    y: float
    rows: list[_SvgRow] = field(default_factory=list)
    strokes: list[str] = field(default_factory=list)
    ends: dict[str, tuple[float, float]] = field(default_factory=dict)

    def streams(self, parts: tuple[ModelPart, ...], x: float) -> None:
        followed = {label for part in parts for label in part.predecessors or ()}
        for place, part in enumerate(parts):
            start, below = self.y, len(self.strokes)
            if part.predecessors == () and followed.intersection(self.ends):
                x += _STREAM + _BRACKET * _brackets(parts[place:])
            elif part.predecessors != () and self.ends:
                x, start = self.ends[part.predecessors[0] if part.predecessors else PREVIOUS_PART]
            self.series((part,), x)
            end = self.y - _ROW
            if end > start:
                self.strokes.insert(below, _path(f"M{x} {start}V{end}"))  # below what is drawn on it
            self.ends[part.label] = self.ends[PREVIOUS_PART] = x, end

    def series(self, parts: tuple[ModelPart, ...], x: float) -> None:
        for part in parts:
            self._draw_inputs(part, x)
            match part.kind:
                case PartKind.COPIES | PartKind.STACK:
                    self._draw_repeated(part, x)
                case PartKind.SERIES | PartKind.TRANSDUCER if part.parts:
                    self.series(part.parts, x)
                case PartKind.SUM:
                    self._sum(part, x)
                case PartKind.BLOCK | PartKind.TRANSDUCER:
                    self.strokes.append(_path(f"M{x} {self.y - 9}c17 0 17 18 0 18"))
                    self._add(part, part.label, x + 22)
                case PartKind.FRAME:
                    self.strokes.append(f'<circle cx="{x}" cy="{self.y}" r="3"/>')
                    self._add(part, part.label, x + 22)
                case PartKind.SHARED:
                    self._add(part, part.label, x + 22, "f")

    def _draw_inputs(self, part: ModelPart, x: float) -> None:
        """Draw lines to a part from the other streams that it reads. These streams are on its left."""
        for label in (part.predecessors or ())[1:]:
            left, end = self.ends[label]
            self.strokes.append(_path(f"M{left} {end}V{self.y - 8}q0 8 8 8H{x}"))

    def _draw_repeated(self, part: ModelPart, x: float) -> None:
        """Draw a repeated part: a row with the costs of all copies, then one copy beside a bracket."""
        self._add(part, part.label, x + 22, "f")
        start = self.y - 10
        self.series(_spread(part), x)
        if part.kind is PartKind.STACK:
            return
        left = x - _BRACKET * _brackets((part,))
        self.strokes.append(_path(f"M{left + 5} {start}h-5V{self.y - _ROW + 10}h5"))

    def _sum(self, part: ModelPart, x: float) -> None:
        start, fork = self.y, x + 14
        for inner in part.parts:
            self.strokes.append(_path(f"M{fork} {self.y}h8"))
            if inner.kind is PartKind.BLOCK:
                self._add(inner, inner.label, fork + 12)
                continue
            first, stream = self.y, fork + 12 + _BRACKET * _brackets((inner,))
            self.strokes.append(_path(f"M{fork} {first}H{stream}"))
            self.series((inner,), stream)
            self.strokes.append(_path(f"M{stream} {first}V{self.y - _ROW + 9}"))
        end = self.y
        # the costs that are not in any part: those of the addition and of its norm
        parameters = part.parameters - sum(one.parameters for one in part.parts)
        kept = part.kept - sum(one.kept for one in part.parts)
        rest = ModelPart(label="", parameters=parameters, kept=kept)
        self._add(rest, "added, with their norm", fork + 12, "f")
        self.strokes.append(_path(f"M{x} {start - 11}q14 0 14 11V{end - 11}q0 11 -14 11"))

    def _add(self, part: ModelPart, label: str, x: float, mark: str = "") -> None:
        self.rows.append(_SvgRow(part=part, label=label, x=x, y=self.y, css_class=mark))
        self.y += _ROW


def _drawing_order(parts: tuple[ModelPart, ...]) -> Iterator[ModelPart]:
    """Yield the parts of a model in the order in which they are drawn.

    Transducers (such as encoder and decoder) are split into their parts, and a stream comes before its
    readers.
    """
    found = [
        one
        for part in parts
        for one in (part.parts if part.kind is PartKind.TRANSDUCER and part.parts else (part,))
    ]
    followed = {label for part in found for label in part.predecessors or ()}
    inputs = {part.label: part for part in found if part.predecessors == ()}
    yield from (part for label, part in inputs.items() if label not in followed)
    for part in found:
        if part.predecessors != ():
            yield from (inputs.pop(label) for label in reversed(part.predecessors or ()) if label in inputs)
            yield part


def _brackets(parts: tuple[ModelPart, ...]) -> int:
    """Return how many nested brackets these parts need: one for each level of repetition."""
    inside = (part for part in parts if part.kind is not PartKind.SUM)
    return max(((part.kind is PartKind.COPIES) + _brackets(part.parts) for part in inside), default=0)


def _spread(part: ModelPart) -> tuple[ModelPart, ...]:
    ratios = dict[str, float]()
    for name in ("parameters", "flops", "kept"):
        inside = sum(getattr(one, name) for one in part.parts)
        ratios[name] = getattr(part, name) / inside if inside else 1.0

    def times(inner: ModelPart) -> ModelPart:
        figures = {name: round(ratio * getattr(inner, name)) for name, ratio in ratios.items()}
        return replace(inner, **figures, parts=tuple(map(times, inner.parts)))

    return tuple(map(times, part.parts))


def _row(row: _SvgRow, tree: ModelPart, analysis: Analysis) -> Iterator[str]:
    part = row.part
    _, size = si_prefix(analysis.flops_per_token)
    *numbers, reach, _, _ = format_costs(part, analysis.length, size)
    label = truncate(row.label, int((_LABELS_END - row.x) / _CHARACTER))
    yield _text(row.x, row.y, label, row.css_class)
    shares = (part.parameters / tree.parameters, part.flops / tree.flops, part.kept / tree.kept)
    for number, share, x in zip(numbers, shares, _NUMBERS, strict=True):
        if share > 0:
            yield _text(x, row.y, number, f"n {row.css_class}")
        if _BAR * share >= 0.5 and part.kind not in _CONTAINER_FORMS and part is not tree:
            yield f'<rect x="{x + 8}" y="{row.y - 5}" width="{_BAR * share:.1f}" height="10"/>'
    if reach:
        yield _text(_REACH, row.y, reach, row.css_class)


def _title(lines: list[str], name: str) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield _text(_MARGIN, _MARGIN + 6 + 20 * number, line, "r")
    below = "a repeated part: numbers of all copies, reach of one; a bar is the part's share of the model"
    yield _text(_MARGIN, _MARGIN + 6 + 20 * len(lines), f"id {name} · {below}", "f")


def _heads(analysis: Analysis, y: float) -> Iterator[str]:
    unit, _ = si_prefix(analysis.flops_per_token)
    names = ("parameters", f"{unit}FLOPs/token", "training memory")
    for name, x in zip(names, _NUMBERS, strict=True):
        yield _text(x, y, name, "n f")
    yield _text(_REACH, y, "reach", "f")


def _text(x: float, y: float, text: str, mark: str = "") -> str:
    marked = f' class="{mark.strip()}"' if mark.strip() else ""
    return f'<text x="{x}" y="{y + 4.5}"{marked}>{escape(replace_unprintable(text))}</text>'


def _path(drawn: str) -> str:
    return f'<path d="{drawn}"/>'
