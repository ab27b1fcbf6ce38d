"""How far the study is, and what a search has found so far.

A page may be built at any time; this is what tells whether it is the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum

from ..labels import level_text
from ..leaders import leaders
from ..metrics import METRICS
from ..quantities import duration
from .markup import Column, Html, Section, code, grid, joined, paragraph, plain
from .material import Material


def section(material: Material) -> Section:
    """The counts, the time that training took, the best points of a search."""
    pieces = [paragraph(plain(f"{material.standing.words()}."))]
    if len(material.own):
        seconds = fsum(material.own["seconds"])
        pieces.append(paragraph(plain(f"Training took {duration(seconds)}, one trial after the other.")))
    return Section(name="standing", title="How far it is", body=joined([*pieces, *_leaders(material)]))


def _leaders(material: Material) -> Iterator[Html]:
    """The best points, the best first."""
    study, found = material.study, leaders(material.study, material.outcomes)
    if study.search is None or not found:
        return
    metric = METRICS[study.search.metric]
    columns = [Column(metric.name, "number"), *(Column(name) for name in study.dimensions)]
    rows = [
        (plain(metric.show(each.mean)), *(code(level_text(each.values[name])) for name in study.dimensions))
        for each in found
    ]
    yield grid("best points of the search", columns, rows)
