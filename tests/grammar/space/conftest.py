"""Spaces over blocks with real parameters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from activemem.grammar import parse
from activemem.grammar.space.space import Space


@pytest.fixture
def blend(more_blocks: None) -> Callable[[str], Space]:
    """A space over blocks with real parameters."""
    return lambda text: Space(parse(text))
