"""A recipe as a Mermaid flowchart: data flow from the top to the bottom, copies framed, sums joined."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from ..grammar import Analysis, Form, Part, Recipe
from ..grammar.parts import BEFORE
from .anatomy import figures
from .figures import prefix
from .sizes import Sizes


def picture(recipe: Recipe, analysis: Analysis, sizes: Sizes) -> str:
    """The flowchart, to be set in a Markdown fence or drawn by Mermaid; residual connections are left out."""
    unit, size = prefix(analysis.flops_per_token)
    chart = _Chart(sizes, f"{unit}FLOPs/token", size)
    total = " · ".join(chart.words(analysis.tree))
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

    def words(self, part: Part) -> list[str]:
        """The figures of a part, each with its unit."""
        parameters, flops, memory, sees, _, _ = figures(part, self._sizes, self._size)
        words = [f"{parameters} parameters"] if part.parameters else []
        words += [f"{flops} {self._unit}"] if part.flops else []
        words += [f"reach {sees}"] if sees else []
        return [*words, *([memory] if memory else [])]

    def series(self, parts: tuple[Part, ...]) -> Iterator[str]:
        """Parts one after another."""
        for part in parts:
            if part.follows is not None:
                known = {**self._known, BEFORE: self._ends}
                ends = [end for label in part.follows for end in known[label]]
                self._ends = list(dict.fromkeys(ends))
            yield from self._part(part)
            self._known[part.label] = self._ends

    def _part(self, part: Part) -> Iterator[str]:
        match part.form:
            case Form.SUM:
                yield from self._sum(part)
            case Form.WHOLE:
                yield from self.series(part.parts)
            case Form.COPIES | Form.SERIES | Form.STACK:
                yield from self._framed(part)
            case Form.SHARED:
                yield f"{next(self._names)}{self._label(part)}"
            case _:
                yield self._node(self._label(part))

    def _label(self, part: Part) -> str:
        """The shape of a part by itself: its text, and below it its figures."""
        return f"[{_quoted('<br/>'.join([part.label, *self.words(part)]))}]"

    def _node(self, shape: str) -> str:
        """A node of that shape, which follows all ends and becomes the only one."""
        name = next(self._names)
        self.edges += [f"{end} --> {name}" for end in self._ends]
        self._ends = [name]
        return f"{name}{shape}"

    def _sum(self, part: Part) -> Iterator[str]:
        """The parts side by side, all following the same ends, and a sign that joins them."""
        before, after = self._ends, []
        for inner in part.parts:
            self._ends = before
            yield from self._part(inner)
            after += self._ends
        self._ends = after
        yield self._node('(("added"))')

    def _framed(self, part: Part) -> Iterator[str]:
        """The parts of one copy, of a series inside a sum, or of a stack by name, framed with all parameters.

        Mermaid breaks longer titles into lines that lie over what is framed.
        """
        title = f"{'series' if part.form is Form.SERIES else part.label} · {part.parameters:,} in all"
        yield f"subgraph {next(self._names)}[{_quoted(title)}]"
        known = dict(self._known)
        for line in self.series(part.parts):
            yield f"  {line}"
        self._known = known
        yield "end"


def _quoted(text: str) -> str:
    """The text in quotes, which keep what it says from being read as Mermaid's own signs."""
    return '"' + text.replace('"', "#quot;") + '"'
