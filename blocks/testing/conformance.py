"""Conformance checks of blocks, both built-in blocks and plug-in blocks.

A test of a plug-in's block runs all checks:

    @pytest.mark.parametrize("causal", [False, True])
    @pytest.mark.parametrize("check", CHECKS)
    def test_my_block_conforms(check, causal):
        check("my_block(k=4)", causal=causal)

A check takes the text of one block with small arguments, and raises AssertionError if its specification and
its module disagree. All weights are drawn from seeds, in double precision.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError
from torch.func import functional_call, jvp
from torch.nn.attention import SDPBackend, sdpa_kernel

from ...grammar import ModelPart, Norm, Reach, Role, configure, lookup, nodes
from ...grammar.analysis.analyse import block_cost
from ...grammar.vocabulary.spec import block_code
from ..core.block import Block, BuildError, StreamState
from .fixtures import (
    VOCAB,
    WIDTH,
    assert_close,
    assert_dropout_acts,
    assert_flops_stated,
    assert_memory_stated,
    assert_seed_decides,
    assert_state_dict_restores,
    build_and_analyse,
    build_small,
    count_flops,
    idle_parameters,
    is_pool,
    make_block,
    make_generator,
    parse_block,
    prefix_mask,
    random_sequences,
    reach_words,
    saved_bytes,
    seeded,
    states_reach,
    use_plain_operations,
    valid_outputs,
)
from .references import outputs_equal_the_reference

LENGTHS = (8, 1, 3, 7)
"""The valid lengths of a padded batch."""

LONG_LENGTHS = (257, 64, 127, 128, 129, 130, 160)
"""The lengths of long sequences, around the sizes of chunks; the first is the longest."""


PIECES = ((1,) * 29, (7, 7, 7, 7, 1), (1, 2, 5, 21), (20, 6, 2, 1))
"""Lengths of pieces that add up to a sequence of 29 positions."""


def shape_stays(text: str, *, causal: bool) -> None:
    """Check that the output is finite and has the input's shape; a pool's output is (batch, width)."""
    block = make_block(parse_block(text), causal=causal)
    for batch, length in ((1, 1), (3, 1), (1, 2), (2, 11)):
        y = block(random_sequences(batch, length))
        expected = (batch, WIDTH) if is_pool(text) else (batch, length, WIDTH)
        assert y.shape == expected, f"expected an output of shape {expected}, got {tuple(y.shape)}"
        assert y.isfinite().all(), "expected finite numbers"


def empty_batches_stay_empty(text: str, *, causal: bool) -> None:
    """Check that a batch without sequences has an output without sequences.

    A last batch with fewer sequences than micro-batches has such parts.
    """
    block = make_block(parse_block(text), causal=causal)
    try:
        count = len(block(random_sequences(0, 5)))
    except RuntimeError as error:
        raise AssertionError(f"forward raises for a batch of 0 sequences: {error}") from error
    assert count == 0, f"expected 0 outputs of a batch of 0 sequences, got {count}"


def reach_is_as_stated(text: str, *, causal: bool) -> None:
    """Check that a block sees exactly as far as the reach in its specification.

    The first and the last input within the reach change an output, and none beyond does. A block that sees
    only earlier inputs reaches 0 to the right. A plug-in's block need not state a reach.
    """
    if is_pool(text) or not states_reach(text):
        return
    node = parse_block(text)
    reach = stated_cost(node, causal=causal, length=19).reach
    block, length = make_block(node, causal=causal), _length_to_see(reach, 19)
    with torch.no_grad():
        touched = _dependency_matrix(block, random_sequences(1, length), _rounding(node.name))
    _assert_reach(touched, reach)
    spec = lookup(node.name)
    if spec is not None and spec.role is Role.CHANNEL:
        assert touched.equal(torch.eye(length, dtype=torch.bool)), "a channel block sees other positions"


def future_is_hidden(text: str, *, causal: bool) -> None:
    """Check that no output of a causal block depends on later inputs.

    In short sequences one input changes at a time, also in training mode. In long ones, all inputs from a
    position on change.
    """
    if is_pool(text) or not causal:
        return
    node = parse_block(text)
    block, rounding = make_block(node, causal=causal), _rounding(node.name)
    for training in (False, True):
        block.train(training)
        touched = _dependency_matrix(partial(seeded, block), random_sequences(2, 12), rounding)
        leaks, mode = touched.tril(-1).nonzero().tolist(), "in training, " * training
        assert not leaks, (
            f"{mode}the input at position {leaks[0][0]} changes the output at position {leaks[0][1]}"
        )
    block.eval()
    for length in LONG_LENGTHS:
        _assert_later_inputs_hidden(block, length, rounding)


def stack_reaches_as_analysed(text: str, *, causal: bool) -> None:
    """Check that a stack of two copies of the block reaches as far as the analysis states.

    Each copy is followed by a feed-forward layer.
    """
    if is_pool(text) or not states_reach(text):
        return
    model, analysis = build_and_analyse(f"2 * ({text} >> ff(9))", causal=causal, d_model=16, length=31)
    model, length = model.double().eval(), _length_to_see(analysis.reach, 31)
    tokens = torch.randint(VOCAB, (1, length), generator=make_generator(3)).repeat(length, 1)
    with torch.no_grad():
        changed = (tokens + torch.eye(length, dtype=torch.int64)) % VOCAB
        touched = _differ(model(changed), model(tokens), _rounding(parse_block(text).name))
    _assert_reach(touched, analysis.reach)


def padding_changes_nothing(text: str, *, causal: bool) -> None:
    """Check that padding of any content does not change the outputs, in short and in long sequences."""
    block = make_block(parse_block(text), causal=causal)
    with torch.no_grad():
        for lengths in (LENGTHS, LONG_LENGTHS):
            count, longest = len(lengths), lengths[0]
            x, mask = random_sequences(count, longest), prefix_mask(lengths, longest)
            y = block(x, mask)
            for row, out, length in zip(x, y, lengths, strict=True):
                alone = block(row[None, :length])[0]
                assert_close(valid_outputs(out, length), alone, rtol=1e-11, atol=1e-11)
            junk = torch.where(mask[..., None], x, 1e4 * random_sequences(count, longest, seed=9))
            assert valid_outputs(y, mask).equal(valid_outputs(block(junk, mask), mask)), (
                "the content of padding changes an output"
            )
            whole = prefix_mask([longest] * count, longest)
            assert_close(block(x, whole), block(x), rtol=1e-12, atol=1e-12)


def sequences_are_independent(text: str, *, causal: bool) -> None:
    """Check that the sequences of a batch do not affect each other."""
    block, x = make_block(parse_block(text), causal=causal), random_sequences(3, 7)
    y = block(x)
    for row, out in zip(x, y, strict=True):
        assert_close(out, block(row[None])[0], rtol=1e-11, atol=1e-11)
    other = torch.cat([x[:1], random_sequences(2, 7, seed=8)])
    for training in (False, True):
        block.train(training)
        mode = "in training, " * training
        assert seeded(block, other)[0].equal(seeded(block, x)[0]), (
            f"{mode}another sequence of the batch changes an output"
        )


def gradients_are_right(text: str, *, causal: bool) -> None:
    """Check that all parameters get gradients, equal to finite differences, with and without padding."""
    block = make_block(parse_block(text), causal=causal, width=4)
    idle = idle_parameters(block, random_sequences(2, 4, width=4))
    assert not idle, f"parameters that get no gradient: {', '.join(idle)}"
    for mask in (None, prefix_mask([4, 2], 4)):
        function, given = _function_of(block, 4, mask)
        # one random direction for each tensor finds any wrong gradient, and is faster than single numbers
        checked = torch.autograd.gradcheck(function, given, fast_mode=True)
        assert checked, "the gradients are wrong"


def second_derivatives_are_right(text: str, *, causal: bool) -> None:
    """Check that gradients of gradients equal finite differences.

    Attention uses plain products, since torch's fused kernel has no second derivative on a CPU. A plug-in's
    block may end in torch's own error.
    """
    node = parse_block(text)
    function, given = _function_of(make_block(node, causal=causal, width=4), 3, prefix_mask([3, 2], 3))
    try:
        with sdpa_kernel(SDPBackend.MATH):
            checked = torch.autograd.gradgradcheck(function, given, fast_mode=True)
    except GradcheckError as error:
        raise AssertionError(f"the second derivatives are wrong: {error}") from error
    except RuntimeError:
        if block_code(node.name) is None:
            raise
    else:
        assert checked, "the second derivatives are wrong"


def forward_derivatives_are_right(text: str, *, causal: bool) -> None:
    """Check that `torch.func.jvp` gives the derivatives that the gradients give.

    A plug-in's block may end in torch's own error.
    """
    node = parse_block(text)
    function, given = _function_of(make_block(node, causal=causal, width=4), 5, prefix_mask([5, 3], 5))
    generator = make_generator(5)
    changes = tuple(torch.randn(each.shape, generator=generator, dtype=each.dtype) for each in given)
    try:
        with warnings.catch_warnings():  # torch's rules for it use a function that torch has deprecated
            warnings.simplefilter("ignore", DeprecationWarning)
            y, found = jvp(function, given, changes)[:2]
    except RuntimeError:
        if block_code(node.name) is None:
            raise
        return
    assert isinstance(y, Tensor) and isinstance(found, Tensor), "a block has one output"
    direction = torch.randn(y.shape, generator=generator, dtype=y.dtype)
    gradients = torch.autograd.grad(function(*given), given, direction)
    expected = sum(
        ((one * other).sum() for one, other in zip(gradients, changes, strict=True)), torch.zeros(())
    )
    assert_close((found * direction).sum(), expected, rtol=1e-9, atol=1e-9)


def flops_are_counted(text: str, *, causal: bool) -> None:
    """Check that the FLOPs in the analysis are within one percent of the FLOPs that torch counts."""
    node = parse_block(text)
    block = use_plain_operations(make_block(node, causal=causal, dtype=torch.float32))
    for length in (3, 40):
        cost = stated_cost(node, causal=causal, length=length)
        batches = (random_sequences(batch, length, dtype=torch.float32) for batch in (1, 3))
        one, three = (count_flops(partial(block, x)) for x in batches)
        # work done once per batch cancels in the difference
        assert_flops_stated((three - one) / 2, length=length, stated=cost.flops)


def training_memory_is_stated(text: str, *, causal: bool) -> None:
    """Check that the analysis states the training memory within one percent.

    All pairs of values of norm, position and dropout occur.
    """
    kinds: tuple[tuple[Norm, str, float, int, int], ...] = (
        ("pre", "timing", 0.0, 40, 3),
        ("pre", "none", 0.1, 1, 3),
        ("post", "timing", 0.1, 9, 1),
        ("post", "none", 0.0, 70, 1),
    )
    for norm, position, dropout, length, batch in kinds:
        model, analysis = build_and_analyse(
            text,
            causal=causal,
            d_model=8,
            length=length,
            norm=norm,
            position=position,
            dropout=dropout,
            attention_dropout=dropout,
        )
        saved = saved_bytes(use_plain_operations(model, keeps_kernels=True), batch=batch, length=length)
        assert_memory_stated(saved, length=length, stated=analysis.memory(batch).activations)


def state_dict_restores(text: str, *, causal: bool) -> None:
    """Check that a state dict restores a block, and that a deep copy shares no weights with it."""
    assert_state_dict_restores(_maker(text, causal=causal), random_sequences(2, 6))


def seed_decides(text: str, *, causal: bool) -> None:
    """Check that the weights depend on the seed, and on nothing else."""
    assert_seed_decides(_maker(text, causal=causal), random_sequences(2, 6))


def dropout_acts_in_training(text: str, *, causal: bool) -> None:
    """Check that dropout acts in training, differently each time, and not in evaluation."""
    tokens = torch.randint(VOCAB, (2, 7), generator=make_generator(2))
    dropping, plain = (
        build_small(f"{text} >> ff(8)", causal=causal, d_model=WIDTH, dropout=rate) for rate in (0.5, 0.0)
    )
    assert_dropout_acts(dropping, plain, tokens)


def order_of_a_sum_is_free(text: str, *, causal: bool) -> None:
    """Check that the outputs of a sum are bit-identical for any order of its parts."""
    if is_pool(text):
        return
    tokens = torch.randint(VOCAB, (2, 7), generator=make_generator(2))
    outputs: list[Tensor] = []
    for recipe in (f"{text} + ff(3) + ff(4)", f"ff(4) + {text} + ff(3)"):
        model = build_small(recipe, causal=causal, d_model=WIDTH, dropout=0.5)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            outputs.append(model.train()(tokens))
    assert outputs[0].equal(outputs[1]), "the order of a sum's parts changes an output"


def half_precision_is_near(text: str, *, causal: bool) -> None:
    """Check that products in bf16 change outputs by at most 5 %, and gradients by at most 30 %.

    Outputs of a long sequence are as near, because running sums are not in bf16.
    """
    block = make_block(parse_block(text), causal=causal, dtype=torch.float32)
    x, long = random_sequences(2, 7, dtype=torch.float32), random_sequences(1, 1030, dtype=torch.float32)

    def run() -> tuple[Tensor, ...]:
        with torch.no_grad():
            far = block(long)
        given = x.clone().requires_grad_()
        y = block(given)
        return far, y.detach(), *torch.autograd.grad(y.float().sum(), given)

    exact = run()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        near = run()
    for one, other, most in zip(exact, near, (0.05, 0.05, 0.3), strict=True):
        error, norm = float((other.float() - one).norm()), float(one.norm())
        off = error / norm if norm else error  # a block that sees only far inputs gives zeros
        assert off <= most, f"expected an error of at most {most:g} of the norm, got {off:.3f}"


def outputs_with_past_are_right(text: str, *, causal: bool) -> None:
    """Check that `forward_with_past` gives the outputs that the whole sequence gives."""
    if not causal or is_pool(text):
        return
    block = make_block(parse_block(text), causal=True)
    past, x = random_sequences(2, 40), random_sequences(2, 6, seed=3)
    expected = block(torch.cat([past, x], 1))[:, 40:]
    assert_close(block.forward_with_past(x, past), expected, rtol=1e-9, atol=1e-9)
    if block.context_length is not None:
        seen = past[:, max(0, 40 - block.context_length) :]
        assert_close(block.forward_with_past(x, seen), expected, rtol=1e-9, atol=1e-9)


def steps_with_gradients_are_right(text: str, *, causal: bool) -> None:
    """Check that `step_with_grad` gives the outputs and gradients that the whole sequence gives."""
    if not causal or is_pool(text):
        return
    block, x = make_block(parse_block(text), causal=True), random_sequences(3, 29).requires_grad_()
    whole = block(x)
    (expected,) = torch.autograd.grad(whole[:, -1].sum(), x)
    for pieces in PIECES:
        state, outputs = None, []
        for piece in x.split(pieces, 1):
            y, state = block.step_with_grad(piece, state)
            is_state = state is None or (isinstance(state, Tensor) and len(state) == 3)
            assert is_state, "the state is not one tensor whose first dimension is the batch"
            outputs.append(y)
        found = torch.cat(outputs, 1)
        assert_close(found, whole, rtol=1e-9, atol=1e-9)
        assert_close(torch.autograd.grad(found[:, -1].sum(), x)[0], expected, rtol=1e-9, atol=1e-9)


def states_stay_small(text: str, *, causal: bool) -> None:
    """Check that the state of `step` has no gradient, and stops growing after `context_length` inputs."""
    if not causal or is_pool(text):
        return
    block = make_block(parse_block(text), causal=True)
    if block.context_length is None and not block.state_is_bounded:
        try:
            block.step(random_sequences(2, 3), None)
        except BuildError:
            return
        raise AssertionError("expected BuildError from the step of a block whose state grows")
    length, state, sizes = max(block.context_length or 0, 1), None, list[int]()
    for piece in (random_sequences(2, length), random_sequences(2, length), random_sequences(2, 1)):
        _, state = block.step(piece, state)
        assert state is None or not state.requires_grad, "the state of a stream has a gradient"
        sizes.append(0 if state is None else state.numel())
    assert len(set(sizes)) == 1, (
        f"expected a state of constant size, got {sizes} numbers "
        f"after pieces of {length}, {length} and 1 inputs"
    )
    assert block.context_length != 0 or state is None, "the state of a block that sees no past is not None"


def stream_gives_what_one_pass_gives(text: str, *, causal: bool) -> None:
    """Check that a model with two copies of the block gives the same outputs in pieces as in one pass."""
    block = make_block(parse_block(text), causal=causal)
    if not causal or is_pool(text) or (block.context_length is None and not block.state_is_bounded):
        return
    model = build_small(f"2 * ({text} >> ff(5))", causal=True, d_model=8)
    model, tokens = model.double().eval(), torch.randint(VOCAB, (2, 29), generator=make_generator(2))
    with torch.no_grad():
        expected = model(tokens)
        for pieces in PIECES:
            stream, outputs = StreamState(), []
            for piece in tokens.split(pieces, 1):
                y, stream = model.forward_stream(piece, stream)
                outputs.append(y)
            assert_close(torch.cat(outputs, 1), expected, rtol=1e-9, atol=1e-9)


STEP_CHECKS: tuple[Callable[..., None], ...] = (
    outputs_with_past_are_right,
    steps_with_gradients_are_right,
    states_stay_small,
    stream_gives_what_one_pass_gives,
)
"""The checks of a causal block that reads in pieces; they pass for pools and non-causal blocks."""

CHECKS: tuple[Callable[..., None], ...] = (
    shape_stays,
    reach_is_as_stated,
    future_is_hidden,
    stack_reaches_as_analysed,
    padding_changes_nothing,
    sequences_are_independent,
    gradients_are_right,
    second_derivatives_are_right,
    forward_derivatives_are_right,
    flops_are_counted,
    training_memory_is_stated,
    state_dict_restores,
    seed_decides,
    dropout_acts_in_training,
    order_of_a_sum_is_free,
    half_precision_is_near,
    outputs_equal_the_reference,
    *STEP_CHECKS,
    empty_batches_stay_empty,
)
"""All checks that take at most about a second; each is called as `check(text, causal=…)`."""


def _function_of(
    block: Block, length: int, mask: Tensor | None
) -> tuple[Callable[..., Tensor], tuple[Tensor, ...]]:
    """Return a block as a function of two sequences and its weights, and these as arguments.

    The function returns the outputs at valid positions.
    """
    names = tuple(dict(block.named_parameters()))
    x = random_sequences(2, length, width=4).requires_grad_()

    def function(x: Tensor, *values: Tensor) -> Tensor:
        y = functional_call(block, dict(zip(names, values, strict=True)), (x, mask))
        return y if mask is None else valid_outputs(y, mask)

    return function, (x, *block.parameters())


def _maker(text: str, *, causal: bool) -> Callable[[int], Block]:
    node = parse_block(text)
    return lambda seed: make_block(node, causal=causal, seed=seed)


def stated_cost(node: nodes.BlockNode, *, causal: bool, length: int) -> ModelPart:
    """Return the cost of a block on a sequence, as its analysis states it."""
    return block_cost(node, configure(d_model=WIDTH, causal=causal, dropout=0.0), length=length)


def _rounding(name: str) -> float:
    """Return the relative change of an output that does not count, which is 0 for the blocks of this package.

    A plug-in may multiply Fourier transforms, which add rounding errors to earlier outputs.
    """
    return 0.0 if block_code(name) is None else 1e-12


def _differ(y: Tensor, other: Tensor, rounding: float) -> Tensor:
    """Return at which positions (batch, length) two outputs differ by more than rounding."""
    return ~((y - other).abs().amax(-1) <= rounding * other.abs().max())


def _dependency_matrix(function: Callable[[Tensor], Tensor], x: Tensor, rounding: float) -> Tensor:
    """Return a matrix (inputs, outputs) that is true where an output changes with an input."""
    length = x.shape[1]
    moved = torch.diag(1.0 + torch.arange(length) / 7).repeat_interleave(len(x), 0)[:, :, None]
    repeated = x.repeat(length, 1, 1)  # a row's bits may depend on its place in a batch
    touched = _differ(function(repeated + moved), function(repeated), rounding)
    return touched.view(length, len(x), length).any(1)


@torch.no_grad()
def _assert_later_inputs_hidden(block: Block, length: int, rounding: float) -> None:
    """Check, at and near each multiple of 32, that inputs from there on change no earlier output."""
    ends = sorted({at + near for at in range(32, length, 32) for near in (-1, 0, 1)} & {*range(length)})
    x, other = (random_sequences(1, length, seed=seed) for seed in (1, 9))
    later = torch.arange(length) >= torch.tensor(ends)[:, None]
    repeated = x.repeat(len(ends), 1, 1)
    moved = _differ(block(torch.where(later[..., None], other, x)), block(repeated), rounding)
    leaks = (moved & ~later).nonzero().tolist()
    assert not leaks, (
        f"inputs from position {ends[leaks[0][0]]} on change the output at position {leaks[0][1]} "
        f"in a sequence of {length}"
    )


_LONGEST = 150
"""The longest sequence in which a reach is checked."""


def _length_to_see(reach: Reach, least: int) -> int:
    """Return the length of a sequence that shows whether a block sees beyond its reach."""
    sides = [int(side) for side in (reach.left, reach.right) if math.isfinite(side)]
    return min(max(least, sum(sides) + 2), _LONGEST)


def _assert_reach(touched: Tensor, reach: Reach) -> None:
    """Check the reach; beyond the end of the sequence it counts as the whole sequence."""
    length = len(touched)
    seen = [source - target for source, target in touched.nonzero().tolist()]
    found = max(0, -min(seen, default=0)), max(0, max(seen, default=0))
    for side, stated in zip(found, (reach.left, reach.right), strict=True):
        # a block may see single positions, of which those beyond the end do not show
        fits = side == min(stated, length - 1) or length <= stated < math.inf
        words = f"sees {reach_words(*found, length)}, but its stated reach is"
        assert fits, f"{words} {reach_words(reach.left, reach.right)}"
