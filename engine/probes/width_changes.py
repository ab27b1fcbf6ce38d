"""Table of how much activations change in training, at each width."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from ...studies.text.units import WIDTH, plural, side_by_side

GROWS = 0.25
"""Activations whose change grows faster than width to this power are unstable across widths."""
SHRINKS = -0.5
"""Layers whose exponent is below this learn almost nothing in wide models. It is further from 0 than `GROWS`,
because changes over a few steps shrink a little with width even in models that scale well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerChange:
    """The mean change of a layer's activations in training, for each width.

    `exponent` is the power of the width with which the change grows.
    """

    layer: str
    changes: Mapping[int, float]
    exponent: float

    @property
    def grows(self) -> bool:
        """Return whether the layer's change grows with the width."""
        return self.exponent > GROWS

    @property
    def shrinks(self) -> bool:
        """Return whether the layer's change shrinks with the width."""
        return self.exponent < SHRINKS


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCoordinates:
    """The layers of a model, compared across widths.

    `model` has its levels of all factors but its size. `flat` says that no layer's change grows or shrinks
    with the width.
    """

    model: str
    flat: bool
    layers: tuple[LayerChange, ...]

    @property
    def verdict(self) -> str:
        """Return how the changes depend on the width: flat, or a list of growing and shrinking layers."""
        changing = {
            "growing": [each.layer for each in self.layers if each.grows],
            "shrinking": [each.layer for each in self.layers if each.shrinks],
        }
        found = [f"{what}: {', '.join(names)}" for what, names in changing.items() if names]
        return "; ".join(found) or "flat: one rate suits all widths"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StudyCoordinates:
    """Changes of the layers in a study's models, at each width.

    The models took `steps` training steps. The text of this object is what `activemem study coordinates`
    prints.
    """

    study: str
    steps: int
    models: tuple[ModelCoordinates, ...]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return f"<StudyCoordinates: {self.study}, {plural(len(self.models), 'model')}>"

    def _lines(self) -> Iterator[str]:
        yield f"{self.study} · mean change of the activations in {plural(self.steps, 'step')}, by d_model"
        for each in self.models:
            yield ""
            if each.model:
                yield f"  {each.model}"
            yield from _table(each.layers)
            lowest = f"{SHRINKS:g}".replace("-", "−")
            text = f"{each.verdict} (above {GROWS:g} grows, below {lowest} shrinks)"
            yield from wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")


def _table(layers: Sequence[LayerChange]) -> Iterator[str]:
    """Yield a row for each layer: the change at each width, and the exponent; in blocks if too wide."""
    widths = layers[0].changes
    columns = [[str(width), *(f"{each.changes[width]:.3g}" for each in layers)] for width in widths]
    columns += [["exponent", *(f"{each.exponent:+.2f}".replace("-", "−") for each in layers)]]
    widest = (max(map(len, column)) for column in columns)
    texts = [[f"{text:>{size}}" for text in column] for column, size in zip(columns, widest, strict=True)]
    for block in side_by_side(texts, ["", *(each.layer for each in layers)], width=WIDTH - 2, gap=3):
        yield from (f"  {row}" for row in block)
