"""Every block of the vocabulary passes the conformance suite, and the suite detects violations."""

import random

import pytest
import torch

from activemem import Linear
from activemem.blocks import Block
from activemem.blocks.core import block
from activemem.blocks.testing import references
from activemem.blocks.testing.conformance import (
    CHECKS,
    STEP_CHECKS,
    dropout_acts_in_training,
    flops_are_counted,
    forward_derivatives_are_right,
    gradients_are_right,
    half_precision_is_near,
    order_of_a_sum_is_free,
    second_derivatives_are_right,
    seed_decides,
    sequences_are_independent,
    state_dict_restores,
    steps_with_gradients_are_right,
    training_memory_is_stated,
)
from activemem.blocks.testing.fixtures import example_block, parse_block
from activemem.blocks.testing.references import outputs_equal_the_reference
from activemem.grammar import UNBOUNDED, Reach, Role, Spec, render
from activemem.grammar.vocabulary.spec import SPECS

from ...registry_entries import replace_entry
from ..example_blocks import BLOCKS
from ..programs_and_devices import compiled_is_the_same, gpu_gives_the_same

every_block = pytest.mark.parametrize("name", BLOCKS)
both_ways = pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])


WITHOUT_DIRECTION = (
    dropout_acts_in_training,
    flops_are_counted,
    forward_derivatives_are_right,
    gradients_are_right,
    half_precision_is_near,
    order_of_a_sum_is_free,
    second_derivatives_are_right,
    seed_decides,
    sequences_are_independent,
    state_dict_restores,
    training_memory_is_stated,
)
"""Slow checks; on blocks that see both sides they test little more than on causal blocks."""

SLOW = (
    training_memory_is_stated,
    steps_with_gradients_are_right,
    flops_are_counted,
    gradients_are_right,
)
"""The slowest checks, which the quick suite makes of one in two blocks, each block of half of them."""


@pytest.mark.parametrize(
    ("check", "name"),
    [
        pytest.param(
            check, name, marks=[pytest.mark.heavy] * (check in SLOW and place % 2 != SLOW.index(check) % 2)
        )
        for check in CHECKS
        for place, name in enumerate(BLOCKS)
    ],
)
def test_every_block_passes_every_check(check, name):
    check(render(example_block(name)), causal=True)


@every_block
@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, marks=[pytest.mark.heavy] * (check in WITHOUT_DIRECTION))
        for check in CHECKS
        if check not in STEP_CHECKS
    ],
)
def test_every_block_that_sees_both_sides_passes_every_check(check, name):
    check(render(example_block(name)), causal=False)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")  # inductor's own
@pytest.mark.filterwarnings("ignore:.*autograd.function.Function:DeprecationWarning")  # of tracing a scan
@both_ways
@every_block
def test_the_compiled_block_gives_the_same(name, causal):
    compiled_is_the_same(render(example_block(name)), causal=causal)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@both_ways
@every_block
def test_a_gpu_gives_the_same(name, causal):
    gpu_gives_the_same(render(example_block(name)), causal=causal)


class Sound(Block):
    """A block without flaws: y_t = W · (mean of the valid positions; up to t if causal)."""

    def __init__(self, *, width, causal):
        super().__init__()
        self.causal = causal
        self.map = Linear(width, width, bias=False)

    @classmethod
    def build(cls, settings, context):
        return cls(width=context.width, causal=context.causal)

    def weights(self, x, mask):
        """Return weights (batch, queries, keys)."""
        seen = x.new_ones(x.shape[1], x.shape[1])
        seen = (seen.tril() if self.causal else seen).expand(len(x), -1, -1)
        return seen if mask is None else seen * mask[:, None, :]

    def forward(self, x, mask=None):
        weights = self.weights(x, mask)
        x = x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0.0)
        return self.map(weights / weights.sum(-1, keepdim=True) @ x)


class Counting(Sound):
    """A causal block without flaws whose state is the sum and the number of all inputs."""

    state_is_bounded = True

    def step_with_grad(self, x, state):
        counted = torch.cat([x, torch.ones_like(x)], -1).cumsum(1)  # (batch, length, 2 * width)
        counted = counted if state is None else counted + state
        total, number = counted.chunk(2, -1)
        return self.map(total / number), counted[:, -1:]


class Shifted(Sound):
    """A block without flaws that has a buffer."""

    def __init__(self, *, width, causal):
        super().__init__(width=width, causal=causal)
        self.register_buffer("shift", torch.zeros(width))

    def forward(self, x, mask=None):
        return super().forward(x, mask) + self.shift


class Hoarding(Counting):
    """A block that claims a bounded state but stores all inputs."""

    def step_with_grad(self, x, state):
        seen = x if state is None else torch.cat([state, x], 1)
        return self(seen)[:, -x.shape[1] :], seen


class Forgetful(Counting):
    """A block that loses its state between pieces."""

    def step_with_grad(self, x, state):
        return super().step_with_grad(x, None)


class Severed(Counting):
    """A block that returns a state without the gradient that the check needs."""

    def step_with_grad(self, x, state):
        y, state = super().step_with_grad(x, state)
        return y, state.detach()


class Aside(Sound):
    """A block that appends the past to the sequence instead of putting it before."""

    def forward_with_past(self, x, past):
        return self(torch.cat([x, past], 1))[:, : x.shape[1]]


class Misled(Sound):
    """A block in whose gradient one element is 10 % too small."""

    def forward(self, x, mask=None):
        mixed = x.clone()
        mixed[:, -1, 0] = 0.9 * x[:, -1, 0] + 0.1 * x[:, -1, 0].detach()
        return super().forward(mixed, mask)


class SquareOnce(torch.autograd.Function):
    """The square, with a gradient that hides from its own gradient, and a forward derivative of 3 x."""

    @staticmethod
    def forward(x):
        return x.square()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        return 2 * ctx.saved_tensors[0].detach() * gradient

    @staticmethod
    def jvp(ctx, change):
        return 3 * ctx.saved_tensors[0] * change


class Once(Sound):
    """A block whose first derivatives are right, but not its second and its forward ones."""

    def forward(self, x, mask=None):
        return super().forward(SquareOnce.apply(x), mask)


class Doubled(Sound):
    """A block that computes twice the result of its equation."""

    def forward(self, x, mask=None):
        return 2 * super().forward(x, mask)


class Rounded(Sound):
    """A block that differs from its equation in the eighth digit."""

    def forward(self, x, mask=None):
        return (1 + 1e-8) * super().forward(x, mask)


class Leaking(Sound):
    """A block that claims to be causal but is not."""

    def weights(self, x, mask):
        causal, self.causal = self.causal, False
        weights = super().weights(x, mask)
        self.causal = causal
        return weights


class LeakingInTraining(Leaking):
    """A block that is causal in evaluation, and drops a tenth of its outputs in training."""

    def weights(self, x, mask):
        return super().weights(x, mask) if self.training else Sound.weights(self, x, mask)

    def forward(self, x, mask=None):
        return torch.nn.functional.dropout(super().forward(x, mask), 0.1, self.training)


class MixingInTraining(Sound):
    """A block that mixes the sequences of a batch in training."""

    def forward(self, x, mask=None):
        return super().forward(x, mask) + self.training * x.mean(0, keepdim=True)


class LeakingFar(Sound):
    """A block whose mask also shows the input 64 positions ahead."""

    def weights(self, x, mask):
        ahead = x.new_ones(x.shape[1] - 64).diag(64) if x.shape[1] > 64 else 0.0
        return super().weights(x, mask) + ahead


class Wrapping(Sound):
    """A block that averages by transforms of 256 numbers, in which the sums of long sequences wrap around."""

    def forward(self, x, mask=None):
        x = x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0.0)
        if x.shape[1] < 140:
            return super().forward(x, mask)
        taps = torch.fft.rfft(x.new_ones(x.shape[1]), 256).unsqueeze(-1)
        sums = torch.fft.irfft(torch.fft.rfft(x, 256, 1) * taps, 256, 1)
        counts = torch.arange(1, x.shape[1] + 1).unsqueeze(-1)
        return self.map(torch.nn.functional.pad(sums, (0, 0, 0, 256))[:, : x.shape[1]] / counts)


class Unmasked(Sound):
    """A block that ignores the padding mask."""

    def forward(self, x, mask=None):
        return super().forward(x, None)


class Mixing(Sound):
    """A block that mixes the sequences of a batch."""

    def forward(self, x, mask=None):
        return super().forward(x, mask) + x.mean(0, keepdim=True)


class Rounding(Sound):
    """A block whose positions have the precision of its products, which is too low for those above 256."""

    def forward(self, x, mask=None):
        y = super().forward(x, mask)
        return y + torch.arange(x.shape[1]).to(y.dtype).sin().unsqueeze(-1)


class Reckless(Sound):
    """A block that draws initial weights from a generator that the seed does not set."""

    def __init__(self, *, width, causal):
        super().__init__(width=width, causal=causal)
        self.offset = torch.nn.Parameter(torch.full((width,), random.random()))

    def forward(self, x, mask=None):
        return super().forward(x, mask) + self.offset


def reference(block, x, *, causal):
    means = [x[: t + 1].mean(0) if causal else x.mean(0) for t in range(len(x))]
    return torch.stack(means) @ block.map.weight.T


def reach(_settings, context):
    return Reach(left=UNBOUNDED, right=0 if context.causal else UNBOUNDED)


@pytest.fixture
def known(monkeypatch):
    """Register a block class as `tried` during the test."""

    def make_known(cls):
        words = {"summary": "tried", "equation": "y", "source": "the tests", "owner": "the tests"}
        spec = Spec(name="tried", role=Role.MIXER, reach=reach, **words)
        replace_entry(SPECS, "tried", spec)
        replace_entry(block.BLOCKS, "tried", cls)
        monkeypatch.setitem(references._references, "tried", reference)

    return make_known


def failures(*, causal):
    """Return the checks that `tried` fails."""
    failed = set()
    for check in CHECKS:
        try:
            check("tried", causal=causal)
        except (AssertionError, RuntimeError, ValueError):  # gradcheck has errors of its own
            failed.add(check.__name__)
    return failed


@pytest.mark.parametrize(
    ("cls", "causal", "among"),
    [
        (Leaking, True, "future_is_hidden"),
        (LeakingInTraining, True, "future_is_hidden"),
        (LeakingFar, True, "future_is_hidden"),
        (Wrapping, True, "future_is_hidden"),
        (Wrapping, True, "padding_changes_nothing"),
        (Unmasked, False, "padding_changes_nothing"),
        (Mixing, True, "sequences_are_independent"),
        (MixingInTraining, True, "sequences_are_independent"),
        (Rounding, True, "half_precision_is_near"),
        (Reckless, True, "seed_decides"),
        (Misled, True, "gradients_are_right"),
        (Once, True, "second_derivatives_are_right"),
        (Once, True, "forward_derivatives_are_right"),
        (Doubled, False, "outputs_equal_the_reference"),
        (Aside, True, "outputs_with_past_are_right"),
        (Forgetful, True, "steps_with_gradients_are_right"),
        (Forgetful, True, "stream_gives_what_one_pass_gives"),
        (Severed, True, "steps_with_gradients_are_right"),
        (Hoarding, True, "states_stay_small"),
    ],
)
def test_a_block_that_breaks_a_rule_is_found(known, cls, causal, among):
    known(cls)
    assert among in failures(causal=causal)


def test_numbers_that_differ_are_printed_with_the_digits_that_differ(known):
    known(Rounded)
    with pytest.raises(AssertionError, match=r"expected (\S+) at \[\d, \d\], got (?!\1;)"):
        outputs_equal_the_reference("tried", causal=True)


def test_a_block_that_acts_in_training_without_dropout_is_not_blamed_for_dropout(known):
    known(MixingInTraining)
    with pytest.raises(AssertionError, match="without dropout, training changes outputs"):
        dropout_acts_in_training("tried", causal=True)


@both_ways
@pytest.mark.parametrize("cls", [Sound, Counting, Shifted])
def test_a_block_that_breaks_none_passes(known, cls, causal):
    known(cls)
    assert failures(causal=causal) == set()


def test_a_check_takes_one_block(golden):
    with golden.raises(ValueError):
        parse_block("sa + ff(4)")
