"""Which metrics a study shows, so that those measured inside of its models are read with its trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .claims.statements import comparisons, quantities
from .measures import MEASURES
from .metrics import PROBED, family
from .study import Study


def wanted(studies: Iterable[Study]) -> frozenset[str]:
    """The metrics that tables, figures and claims name, a family by its own name.

    With those of probes comes the one that tells which models were probed.
    """
    named = frozenset(name for study in studies for name in _named(study))
    probes = any(family(name) in MEASURES and MEASURES[family(name)].probe for name in named)
    return named | {PROBED} if probes else named


def _named(study: Study) -> Iterator[str]:
    for spec in study.tables:
        yield from spec.value
        yield from [spec.otherwise] if spec.otherwise else []
    for spec in study.curves:
        yield from (spec.value, spec.x)
    for claim in study.claims:
        for comparison in comparisons(claim.statement):
            for side in (comparison.left, comparison.right):
                yield from (quantity.metric for quantity in quantities(side))
