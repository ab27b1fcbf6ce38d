"""Blocks with every kind of parameter and role, in addition to the vocabulary."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from activemem import Space
from activemem.grammar import CostContext, Parameter, Reach, Role, Settings, Spec, parse
from activemem.grammar.vocabulary.spec import SPECS

from ..registry_entries import replace_entry


def _reach(_settings: Settings, _context: CostContext) -> Reach:
    return Reach(left=0, right=0)


def _spec(name: str, role: Role, *parameters: Parameter) -> Spec:
    return Spec(
        name=name,
        role=role,
        parameters=parameters,
        summary="",
        equation="",
        source="",
        reach=_reach,
        owner="the tests",
    )


ADDED = (
    _spec("pool", Role.POOL),
    _spec("stretch", Role.TRANSDUCER),
    _spec(
        "blend",
        Role.CHANNEL,
        Parameter(name="rate", kind="real", default=0.5, low=0, high=1, meaning=""),
        Parameter(name="gated", kind="boolean", default=False, meaning=""),
    ),
    _spec(
        "pair",
        Role.MIXER,
        Parameter(name="first", kind="recipe", meaning=""),
        Parameter(name="second", kind="recipe", meaning=""),
    ),
)


@pytest.fixture
def more_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register `pool`, `stretch`, `blend(rate=0.5, gated=false)`, `pair(first, second)` during a test."""
    for spec in ADDED:
        replace_entry(SPECS, spec.name, spec)


@pytest.fixture
def blend(more_blocks: None) -> Callable[[str], Space]:
    """Return a factory of spaces over blocks with real parameters."""
    return lambda text: Space(parse(text))
