"""Long convolutions in strips equal the sum over lags, for lengths that no piece size divides."""

import pytest

from activemem.blocks.testing.conformance import STEP_CHECKS, flops_are_counted, training_memory_is_stated
from activemem.blocks.testing.references import outputs_and_gradients_equal_the_reference

VARIANTS = ["base_conv(k=200, filter=implicit)", "hyena(channels=3, order=3, k=50, short_conv=0)"]


@pytest.mark.parametrize("text", VARIANTS)
def test_strips_give_the_outputs_and_gradients_of_the_reference(text):
    outputs_and_gradients_equal_the_reference(text, 130)
    for check in (
        flops_are_counted,
        training_memory_is_stated,
        *STEP_CHECKS,
    ):
        check(text, causal=True)
