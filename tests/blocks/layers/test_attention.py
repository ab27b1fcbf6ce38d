"""Windows, position vectors, adaptive spans and persistent vectors against plain loops."""

from functools import partial
from itertools import product

import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from activemem.blocks import build
from activemem.blocks.core.initialisation import initialise
from activemem.blocks.core.positions import PairPositions, build_distance_bias
from activemem.blocks.layers import window_products
from activemem.blocks.layers.head_parts import turn
from activemem.blocks.layers.window_attention import AdaptiveSpans, WindowedBlock
from activemem.blocks.testing import conformance
from activemem.blocks.testing.conformance import CHECKS, STEP_CHECKS, gradients_are_right
from activemem.blocks.testing.fixtures import (
    WIDTH,
    count_flops,
    make_block,
    make_generator,
    parse_block,
    prefix_mask,
    random_sequences,
    saved_bytes,
)
from activemem.blocks.testing.references import outputs_equal_the_reference
from activemem.grammar import analyse, configure, parse
from activemem.grammar.analysis.analyse import block_cost

from ...quick_cases import one_in
from ..equations.attention import bucket
from ..programs_and_devices import compiled_is_the_same

both_ways = pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])

HEADS = "heads=2, head_width=3"
FAMILY = ("all_attn", "attn_split", "head_split", "single_head")
WINDOWS = [
    f"sa({HEADS}, span=3)",
    f"sa({HEADS}, pos=relative, span=3)",
    f"sa({HEADS}, pos=relative, span=1, self=true)",
    f"sa({HEADS}, span=4, adaptive=true)",
    f"sa({HEADS}, span=4, temperature=0.25)",
    *(f"{name}(N=0, span=2, {HEADS})" for name in FAMILY),
    *(f"{name}(N=3, span=2, {HEADS}, adaptive=true, pos_values=true)" for name in FAMILY),
    f"all_attn(N=3, span=2, {HEADS}, self=true)",
    f"all_attn(N=3, span=1, {HEADS})",
    f"all_attn(N=3, span=90, {HEADS})",
    f"sa({HEADS}, pos=relative, span=4, pos_values=true)",
]
HEAVY = {*WINDOWS[6:9], WINDOWS[10], WINDOWS[12], WINDOWS[14]}
"""Variants of windows that differ from others only in numbers or names, and are tested less often."""

NUMBERS = [
    *WINDOWS,
    f"sa({HEADS}, pos=relative, span=20, pos_values=true)",
    f"sa({HEADS}, pos=relative, span=6, adaptive=true, ramp=2, self=true)",
    *(
        f"{name}(N={count}, span={span}, {HEADS}{more})"
        for name in FAMILY
        for count, span, more in (
            (0, 1, ""),
            (0, 5, ", self=true, pos_values=true"),
            (3, 1, ", adaptive=true, ramp=3"),
            (3, 5, ""),
            (3, 5, ", self=true, pos_values=true"),
        )
    ),
    "ff_attn(N=4)",
    "ff_attn(N=4, bare=true)",
]


def learnt(text, *, causal, **given):
    """Return a block in which adaptive spans differ between heads."""
    block = make_block(parse(text).root, causal=causal, **given)
    if "adaptive" in text:
        with torch.no_grad():
            block.window.spans.z.copy_(torch.linspace(0.13, 0.71, len(block.window.spans.z)))
        block.after_optimiser_step()
    return block


@pytest.mark.parametrize(("text", "causal"), one_in(3, product(NUMBERS, (False, True))))
def test_a_block_equals_its_reference(text, causal):
    outputs_equal_the_reference(text, causal=causal)


@pytest.mark.parametrize(("text", "causal"), one_in(3, product(NUMBERS, (False, True))))
def test_a_sequence_in_pieces_is_the_same_sequence(text, causal, monkeypatch):
    block, x, mask = learnt(text, causal=causal), random_sequences(2, 23), prefix_mask([23, 17], 23)
    whole = block(x, mask)[mask]
    for size in (2, 7, 22):
        monkeypatch.setattr(window_products, "CHUNK_LENGTH", size)
        torch.testing.assert_close(block(x, mask)[mask], whole, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("text", "causal"),
    [
        pytest.param(text, bool(number % 2), marks=[pytest.mark.heavy] * (text in HEAVY or number % 4 > 1))
        for number, text in enumerate(WINDOWS)
    ],
)
@pytest.mark.parametrize("check", CHECKS)
def test_every_window_passes_every_check(check, text, causal):
    check(text, causal=causal)


@both_ways
@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("check", [gradients_are_right, *STEP_CHECKS])
def test_a_window_whose_heads_see_differently_far_passes_the_checks_of_gradients_and_steps(
    check, name, causal
):
    check(f"{name}(N=2, span=7, heads=2, head_width=2, adaptive=true, ramp=3)", causal=causal)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")  # inductor's own
@both_ways
@pytest.mark.parametrize("text", [WINDOWS[0], WINDOWS[4], WINDOWS[8]])
def test_the_compiled_window_gives_the_same(text, causal):
    torch.compiler.reset()  # only so many graphs are made of one function
    compiled_is_the_same(text, causal=causal)


@pytest.mark.parametrize(
    ("text", "causal"),
    one_in(2, ((text, bool(number % 3)) for number, text in enumerate([*WINDOWS, f"sa({HEADS})"]))),
)
def test_the_stated_memory_is_what_torch_saves_with_dropout(text, causal):
    sizes = {"d_model": 8, "vocab": 7, "causal": causal, "dropout": 0.0, "attention_dropout": 0.3}
    model = build(text, **sizes)
    for length in (1, 150):
        stated = analyse(text, length=length, **sizes).memory(2).activations
        assert stated == pytest.approx(saved_bytes(model, batch=2, length=length), rel=0.01, abs=8)


@pytest.mark.parametrize("text", [f"sa({HEADS})", *WINDOWS, "ff_attn(N=4)"])
def test_weights_are_dropped_only_in_training(text):
    sizes = {"d_model": 8, "vocab": 7, "causal": True, "dropout": 0.0}
    tokens = torch.randint(7, (2, 30), generator=make_generator(2))
    dropping, plain = (
        build(text, **sizes, attention_dropout=rate, generator=make_generator(1)) for rate in (0.5, 0.0)
    )
    assert dropping.eval()(tokens).equal(plain.eval()(tokens))
    assert not dropping.train()(tokens).equal(dropping.train()(tokens))


def test_blocks_of_one_window_share_their_position_vectors():
    text = f"2 * (all_attn(N=2, span=4, {HEADS}) >> sa({HEADS}, pos=relative, span=4) >> sa({HEADS}, span=4))"
    other = f"all_attn(N=2, span=5, {HEADS}) >> all_attn(N=2, span=4, {HEADS}, self=true)"
    model = build(f"{text} >> {other}", d_model=8, vocab=7, causal=True)
    tables = {id(weight): weight for name, weight in model.named_parameters() if "positions" in name}
    assert sorted(tuple(table.shape) for table in tables.values()) == [(4, 3), (4, 3), (5, 3)]


def test_weights_begin_as_in_the_paper():
    block = make_block(parse("all_attn(N=300, span=100, heads=4, head_width=25)").root, causal=True, width=64)
    block.requires_grad_(False)
    for weight in (block.query.weight, block.key_value.weight):
        assert weight.abs().max() == pytest.approx(64**-0.5, rel=0.01)
    assert block.output.weight.abs().max() == pytest.approx(0.1, rel=0.01)
    assert block.window.positions.weight.std() == pytest.approx(1, rel=0.05)
    assert block.persistent.keys.std() == pytest.approx(0.2, rel=0.05)
    assert block.persistent.vectors.std() == pytest.approx(300**-0.5, rel=0.05)


def test_a_window_without_positions_begins_as_attention_without_a_window():
    whole, within = (make_block(parse(f"sa({HEADS}{more})").root, causal=True) for more in ("", ", span=9"))
    x = random_sequences(2, 8)
    torch.testing.assert_close(within(x), whole(x), rtol=1e-11, atol=1e-11)


@both_ways
def test_positions_that_no_head_sees_are_not_computed(causal):
    block = learnt("all_attn(N=2, span=2000, heads=2, head_width=3, adaptive=true)", causal=causal)
    assert block.context_length == 1472  # 32 + 0.71 · 2000 - 1, rounded up to a multiple of 64
    x = random_sequences(1, 400)
    trimmed = block(x)
    block.window.spans.max_distance = 2000
    torch.testing.assert_close(block(x), trimmed, rtol=1e-11, atol=1e-11)


def test_a_span_is_kept_within_its_bounds_and_is_a_term_of_the_loss():
    block = make_block(
        parse("all_attn(N=2, span=500, heads=3, head_width=3, adaptive=true)").root, causal=True
    )
    initialise(block, make_generator(1))
    block.after_optimiser_step()
    assert block.context_length == 64
    assert block.penalty() == 0
    with torch.no_grad():
        block.window.spans.z.copy_(torch.tensor([-0.3, 0.5, 1.7]))
    block.after_optimiser_step()
    assert block.window.spans.z.tolist() == [0.0, 0.5, 1.0]
    assert block.context_length == 500
    assert block.penalty().item() == pytest.approx(250)
    assert make_block(parse("all_attn(N=2, span=500)").root, causal=True).penalty() is None


def test_learnt_spans_are_seen_when_they_are_loaded():
    text = "all_attn(N=2, span=500, heads=3, head_width=3, adaptive=true)"
    block, other = learnt(text, causal=True), make_block(parse(text).root, causal=True, seed=4)
    other.load_state_dict(block.state_dict())
    x = random_sequences(2, 300)
    assert other(x).equal(block(x))
    assert other.context_length == block.context_length == 448
    initialise(other, make_generator(0))
    assert other.window.max_distance == 64


def test_the_models_of_the_paper_have_their_parameters():
    sizes = partial(analyse, length=512, d_model=512, vocab=205, causal=True, norm="post")
    of_layers = 18 * (4 * 512**2 + 2 * 1024 * 512 + 2 * 512)
    around = 64 * 8192 + 2 * 205 * 512 + 205
    assert sizes("18 * all_attn(N=1024, span=8192)").parameters == of_layers + around == 38_501_581
    assert sizes("36 * all_attn(N=2048, span=8192)").parameters == pytest.approx(114.0e6, rel=0.001)


@pytest.mark.parametrize("text", [text for text in NUMBERS if not text.startswith("ff")])
def test_a_piece_of_a_stream_costs_what_is_stated(text):
    node = parse(text).root
    block = make_block(node, causal=True, dtype=torch.float32)
    past, x = (random_sequences(20, length, dtype=torch.float32) for length in (block.context_length, 30))
    counted = count_flops(lambda: block.forward_with_past(x, past))
    config = configure(d_model=WIDTH, causal=True)
    assert counted == 20 * block_cost(node, config, length=30, past=block.context_length).flops


def test_variants_of_one_size_have_as_many_parameters_except_for_split_heads():
    def parameters(name):
        return analyse(f"{name}(N=64, span=32)", length=1, d_model=512, vocab=7).parameters

    joined, split, heads, single = map(parameters, FAMILY)
    assert joined == split == single
    assert joined - heads == 2 * 256 * 512 + 2 * 64 * 256


def test_persistent_vectors_in_a_sublayer_of_their_own_have_the_parameters_of_all_attention():
    sizes = {"length": 1, "d_model": 512, "vocab": 28, "causal": True, "norm": "none"}
    around = 8192 * 64 + 28 * 512 + 28 * 513  # positions, embedding, output layer
    for text in (
        "36 * all_attn(N=2048, span=8192)",
        "24 * (sa(pos=relative, span=8192) >> ff_attn(N=3072))",
        "24 * (sa(pos=relative, span=8192) >> ff_attn(N=3584, bare=true))",
    ):
        assert analyse(text, **sizes).parameters - around == 113_246_208


def test_persistent_vectors_in_a_sublayer_of_their_own_give_the_results_of_those_of_one_head():
    generator = make_generator(1)
    x = torch.randn(8, 16, 128, generator=generator)
    alone = build_block("ff_attn(N=64)")
    beside = build_block("single_head(N=64, span=1, heads=8, head_width=16)")
    beside.load_state_dict({**beside.state_dict(), **alone.state_dict()})
    with torch.no_grad():
        beside.key_value.weight.zero_()
    torch.testing.assert_close(alone(x), beside(x))


def build_block(text):
    """Return a causal block of width 128 with initial weights."""
    block = make_block(parse(text).root, causal=True, width=128, dtype=torch.float32)
    initialise(block, make_generator(0))
    return block


def test_the_ramp_of_a_span_begins_at_the_position_before():
    block = build_block("sa(heads=2, head_width=4, pos=relative, span=8, adaptive=true, ramp=4)")
    with torch.no_grad():
        block.window.spans.z.copy_(torch.tensor([0.0, 0.25]))
    left = block.window.spans(8, 1).exp().squeeze(1, 2)  # the distance 8 first
    assert left[0].tolist() == pytest.approx([0, 0, 0, 0, 0.25, 0.5, 0.75, 1])
    assert left[1].tolist() == pytest.approx([0, 0, 0.25, 0.5, 0.75, 1, 1, 1])


class _Reads(TorchDispatchMode):
    """A counter of reads of device numbers, each of which would synchronise with a GPU."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.stack.default)
        return func(*args, **(kwargs or {}))


def test_all_learnt_spans_of_a_model_are_read_at_once():
    block = "sa(heads=2, head_width=4, pos=relative, span=500, adaptive=true)"
    model = build(f"3 * {block} >> sa(span=9)", d_model=8, vocab=5, causal=True, dropout=0.0)
    learnt = [each for each in model.modules() if isinstance(each, AdaptiveSpans)]
    with torch.no_grad():
        for spans, z in zip(learnt, (0.1, 0.5, 1.7), strict=True):
            spans.z.copy_(torch.tensor([z, -1.0]))
    with _Reads() as reads:
        model.after_optimiser_step()
    assert reads.count == 1
    assert [spans.max_distance for spans in learnt] == [128, 320, 576]  # 32 + 500 z, to whole 64ths
    assert [spans.z.tolist() for spans in learnt][2] == [1.0, 0.0]
    windows = [each for each in model.modules() if isinstance(each, WindowedBlock)]
    assert [each.context_length for each in windows] == [128, 320, 500, 8]


def test_forgetting_attention_whose_gates_are_open_is_attention():
    fox, sa = (
        make_block(parse_block(f"{name}(heads=2, head_width=3)"), causal=True) for name in ("fox", "sa")
    )
    sa.load_state_dict({name: value for name, value in fox.state_dict().items() if "gate" not in name})
    with torch.no_grad():
        fox.gate.weight.zero_()
        fox.gate.bias.fill_(60.0)
    x = random_sequences(2, 70)
    assert_close(fox(x), sa(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("causal", [True, False])
def test_distances_have_the_buckets_of_t5_and_share_the_last_one(causal):
    layer = build_distance_bias("t5", 1, 4, causal=causal)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(32.0))
        found = layer(torch.arange(299, -300, -1), 300, torch.float32)[0]
    for query, key in ((0, 0), (7, 0), (16, 0), (100, 7), (299, 172), (299, 0), (3, 40), (0, 299), (150, 22)):
        assert found[query, key] == bucket(query - key, causal=causal)


@pytest.mark.parametrize("start", [5, 10_000])
def test_turned_heads_see_distances_alone(start):
    q, k = random_sequences(2, 30, width=8)[:, None]
    turned = (PairPositions(configure(d_model=8)).angles(q, 8, start=first) for first in (0, start))
    near, far = (turn(q, angles) @ turn(k, angles).transpose(-1, -2) for angles in turned)
    assert_close(near, far, rtol=1e-9, atol=1e-9)


TOUCHED = (
    conformance.flops_are_counted,
    conformance.training_memory_is_stated,
    conformance.gradients_are_right,
    conformance.padding_changes_nothing,
    outputs_equal_the_reference,
    *STEP_CHECKS,
)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("sa(heads=4, head_width=2, kv_heads=2)", marks=pytest.mark.heavy),
        pytest.param("sa(heads=3, head_width=2, pos=rope)", marks=pytest.mark.heavy),
        "sa(heads=2, head_width=3, qk_norm=rms, temperature=0.5)",
        "sa(heads=4, head_width=2, kv_heads=1, qk_norm=rms, pos=rope)",
        "diff_attn(heads=2, head_width=2, pos=rope, head_norm=none)",
        "sa(heads=3, head_width=2, pos=alibi)",
        pytest.param("sa(heads=4, head_width=2, pos=t5, kv_heads=2)", marks=pytest.mark.heavy),
        pytest.param("sa(heads=4, head_width=2, span=5, kv_heads=2, pos=rope)", marks=pytest.mark.heavy),
        pytest.param("sa(heads=2, head_width=2, span=5, pos=rope, qk_norm=rms)", marks=pytest.mark.heavy),
        "sa(heads=4, head_width=2, pos=relative, span=5, adaptive=true, ramp=4, kv_heads=1, qk_norm=rms)",
        "latent_attn(heads=2, head_width=3, latent=4, rope_width=0)",
        pytest.param("sa(heads=2, head_width=2, pos=t5, logit_cap=0.3)", marks=pytest.mark.heavy),
        "sa(heads=2, head_width=2, span=5, pos=rope, adaptive=true, ramp=4, logit_cap=0.2)",
    ],
)
def test_parameters_of_heads_pass_the_checks_that_they_touch(text):
    for check in TOUCHED:
        check(text, causal=True)
    outputs_equal_the_reference(text, causal=False)


def test_a_cap_leaves_the_fused_kernel_and_far_above_the_scores_changes_nothing():
    x = random_sequences(2, 80)  # longer than what is computed by plain products
    plain, high, low = (
        make_block(parse(f"sa(heads=2, head_width=3{more})").root, causal=True)
        for more in ("", ", logit_cap=1e5", ", logit_cap=0.01")
    )
    mask = prefix_mask([80, 71], 80)
    assert_close(high(x, mask), plain(x, mask), rtol=1e-8, atol=1e-8)
    means = functional.linear(x, low.qkv.weight[12:]).cumsum(1) / torch.arange(1, 81)[:, None]
    assert_close(low(x), low.output(means), rtol=0.02, atol=0.02)  # all scores are nearly the same


def test_a_cap_of_a_long_sequence_keeps_what_is_stated():
    sizes = {"d_model": 8, "vocab": 7, "causal": True, "dropout": 0.0}
    for text in ("sa(heads=2, head_width=4, logit_cap=5)", "sa(heads=2, head_width=4, span=20, logit_cap=5)"):
        stated = analyse(text, length=150, **sizes).memory(2).activations
        assert stated == pytest.approx(saved_bytes(build(text, **sizes), batch=2, length=150), rel=0.01)
