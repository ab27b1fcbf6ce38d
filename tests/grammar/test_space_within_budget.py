"""Budgets restrict a space: counting and sampling of the remaining members."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from torch import Tensor

from activemem import Budget, Space
from activemem.blocks import Block
from activemem.blocks.core import BLOCKS
from activemem.grammar import ESTIMATE_SAMPLES, SpaceError, parse

from ..golden import GoldenTexts
from ..registry_entries import replace_entry

SIZED = "4 * (choice(sa, conv(k=integer(3, 40))) >> ff(integer(8, 64, step=8)))"
BUDGET = Budget(max_parameters=500_000, d_model=64, vocab=20)


@pytest.mark.heavy
def test_a_budget_leaves_members_out_and_says_how_many_remain(golden):
    space = Space(SIZED, BUDGET)
    listed, rng = list(space), Random(0)
    remaining = space.remaining(rng)
    golden(str(remaining))
    assert 0 < len(listed) < 312
    assert all(BUDGET.admits(one) for one in listed)
    assert {space.sample(rng) for _ in range(30 * len(listed))} == set(listed)


def test_a_budget_of_operations_depends_on_the_length():
    recipe = parse("sa >> ff(8)")
    assert Budget(max_flops=10**7, d_model=8, vocab=4, length=10).admits(recipe)
    assert not Budget(max_flops=10**7, d_model=8, vocab=4, length=1000).admits(recipe)


def test_the_remaining_share_of_a_large_space_is_marked_as_an_estimate(golden):
    text = " >> ".join(["choice(sa, conv(k=integer(3, 40)))"] * 5)
    remaining = Space(parse(text), Budget(max_parameters=400_000, d_model=64, vocab=20)).remaining(Random(0))
    assert (remaining.exact, remaining.drawn) == (False, ESTIMATE_SAMPLES)
    assert remaining.architectures == round(remaining.share * ESTIMATE_SAMPLES) * 39**5 // ESTIMATE_SAMPLES
    golden(str(remaining))


def test_a_share_of_an_infinite_space_remains(blend: Callable[[str], Space], golden: GoldenTexts):
    class Blend(Block):
        """The module of `blend` for budgets, without weights."""

        def __init__(self, *, width: int, causal: bool, rate: float, gated: bool) -> None:
            super().__init__()

        def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
            return x

    replace_entry(BLOCKS, "blend", Blend)
    recipe = blend("choice(sa, blend(rate=real(0, 1)), ff(8), ff(9))").recipe
    remaining = Space(recipe, Budget(max_parameters=2_000, d_model=8, vocab=4)).remaining(Random(0))
    assert remaining.architectures is None
    golden(str(remaining))


def test_a_budget_that_admits_nothing_is_reported(monkeypatch: pytest.MonkeyPatch, golden: GoldenTexts):
    monkeypatch.setattr("activemem.grammar.space.MAX_TRIES", 50)
    space = Space(SIZED, Budget(max_parameters=10, d_model=64, vocab=20))
    with golden.raises(SpaceError):
        space.sample(Random(0))
    assert list(space) == []


def test_a_space_that_has_nothing_within_the_budget_draws_nothing(golden):
    with golden.raises(SpaceError):
        Space(SIZED, Budget(max_parameters=10, d_model=64, vocab=20)).sample_distinct(1, Random(0))
