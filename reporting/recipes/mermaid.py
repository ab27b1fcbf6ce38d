"""A recipe as a Mermaid flowchart: data flow from the top to the bottom, copies framed, sums joined."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from ...grammar import Analysis, ModelPart, PartKind, Recipe
from ...grammar.vocabulary.cost_tree import PREVIOUS_PART
from ...studies.text.units import si_prefix
from .breakdown import format_costs
from .sizes import Sizes


def render(recipe: Recipe, analysis: Analysis, sizes: Sizes) -> str:
    """The flowchart, to be set in a Markdown fence or drawn by Mermaid; residual connections are left out."""
    unit, size = si_prefix(analysis.flops_per_token)
    chart = _Chart(sizes, f"{unit}FLOPs/token", size)
    total = " · ".join(chart.figure_texts(analysis.tree))
    lines = ["---", f"title: {_quoted(recipe.text)}", "---", "flowchart TB"]
    lines += [f"  {line}" for line in [*chart.series(analysis.tree.parts), *chart.edges]]
    return "\n".join([*lines, f"  %% in all: {total}", ""])


class _Chart:
    """The lines of one chart; each part gets a name when it is drawn, and `ends` are what the next follows.

    In a whole model parts follow others by their labels: `known` has the ends of each.
    Edges come after all nodes, for Mermaid takes a node into a frame in which an edge names it.
    """

    def __init__(self, sizes: Sizes, unit: str, size: float) -> None:
        self._sizes, self._unit, self._size = sizes, unit, size
        self._names = (f"n{number}" for number in count())
        self._ends: list[str] = []
        self._known: dict[str, list[str]] = {}
        self.edges: list[str] = []

    def figure_texts(self, part: ModelPart) -> list[str]:
        """The figures of a part, each with its unit."""
        parameters, flops, memory, sees, _, _ = format_costs(part, self._sizes, self._size)
        words = [f"{parameters} parameters"] if part.parameters else []
        words += [f"{flops} {self._unit}"] if part.flops else []
        words += [f"reach {sees}"] if sees else []
        return [*words, *([memory] if memory else [])]

    def series(self, parts: tuple[ModelPart, ...]) -> Iterator[str]:
        """Parts one after another."""
        for part in parts:
            if part.predecessors is not None:
                known = {**self._known, PREVIOUS_PART: self._ends}
                ends = [end for label in part.predecessors for end in known[label]]
                self._ends = list(dict.fromkeys(ends))
            yield from self._part(part)
            self._known[part.label] = self._ends

    def _part(self, part: ModelPart) -> Iterator[str]:
        match part.kind:
            case PartKind.SUM:
                yield from self._sum(part)
            case PartKind.TRANSDUCER:
                yield from self.series(part.parts)
            case PartKind.COPIES | PartKind.SERIES | PartKind.STACK:
                yield from self._subgraph(part)
            case PartKind.SHARED:
                yield f"{next(self._names)}{self._label(part)}"
            case _:
                yield self._node(self._label(part))

    def _label(self, part: ModelPart) -> str:
        """The shape of a part by itself: its text, and below it its figures."""
        return f"[{_quoted('<br/>'.join([part.label, *self.figure_texts(part)]))}]"

    def _node(self, shape: str) -> str:
        """A node of that shape, which follows all ends and becomes the only one."""
        name = next(self._names)
        self.edges += [f"{end} --> {name}" for end in self._ends]
        self._ends = [name]
        return f"{name}{shape}"

    def _sum(self, part: ModelPart) -> Iterator[str]:
        """The parts side by side, all following the same ends, and a sign that joins them."""
        before, after = self._ends, []
        for inner in part.parts:
            self._ends = before
            yield from self._part(inner)
            after += self._ends
        self._ends = after
        yield self._node('(("added"))')

    def _subgraph(self, part: ModelPart) -> Iterator[str]:
        """The parts of one copy, of a series inside a sum, or of a stack by name, framed with all parameters.

        Mermaid breaks longer titles into lines that lie over what is framed.
        """
        title = f"{'series' if part.kind is PartKind.SERIES else part.label} · {part.parameters:,} in all"
        yield f"subgraph {next(self._names)}[{_quoted(title)}]"
        known = dict(self._known)
        for line in self.series(part.parts):
            yield f"  {line}"
        self._known = known
        yield "end"


def _quoted(text: str) -> str:
    """The text in quotes, which keep what it says from being read as Mermaid's own signs."""
    return '"' + text.replace('"', "#quot;") + '"'
