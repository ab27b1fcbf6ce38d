"""Weights of the adaptive-span program in our models: equal outputs, and rejected checkpoints."""

import pytest
import torch

from activemem import ActivememError, build, load_plugin
from activemem.blocks.core.block import StreamState

from .adaptive_span_program import Program, random_weights

VOCAB, WIDTH, HEADS, SPAN, RAMP = 23, 16, 2, 12, 4
CUTS = (5, 11)
SIZES = {"vocab": VOCAB, "width": WIDTH, "heads": HEADS, "layers": 2, "span": SPAN}
AROUND = {
    "d_model": WIDTH,
    "vocab": VOCAB,
    "causal": True,
    "norm": "post",
    "position": "none",
    "embedding": "unit",
    "zero_past": True,
}
CLUSTERS = {"embedding": "unit_scaled", "cutoffs": CUTS, "project_first_cluster": True}
TIED = {"tied": True, "tied_bias": True}
ALL_ATTN = f"2 * all_attn(N=6, span={SPAN}, heads={HEADS}, head_width=8, adaptive=true, ramp={RAMP})"
SA = f"sa(pos=relative, span={SPAN}, heads={HEADS}, head_width=8, adaptive=true, ramp={RAMP})"
FIXED = SA.replace(f", adaptive=true, ramp={RAMP}", "")
CASES = {
    "all-attention": (ALL_ATTN, {"vectors": 6}, {}),
    "Transformer": (f"2 * ({SA} >> ff(20))", {"inner": 20}, {}),
    "Transformer of fixed spans": (f"2 * ({FIXED} >> ff(20))", {"inner": 20, "adaptive": False}, {}),
    "a long span, cut": (
        ALL_ATTN.replace("span=12", "span=150"),
        {"vectors": 6, "span": 150, "furthest": 0.2},
        {},
    ),
    "words": (ALL_ATTN, {"vectors": 6, "cutoffs": CUTS}, {**CLUSTERS, **TIED}),
    "words, not tied": (ALL_ATTN, {"vectors": 6, "cutoffs": CUTS, "tied": False}, CLUSTERS),
}


@pytest.fixture
def released():
    """Return the module of the plug-in."""
    return load_plugin("adaptive_span_weights")


def saved(path, weights):
    """Write a checkpoint in the format of the released program, as after some steps; return its path."""
    logged = {"step": [1000], "train_bpc": [1.5], "val_bpc": [1.6]}
    optimizer = {
        "state": {0: {"step": 3, "sum": torch.ones(2)}},
        "param_groups": [{"lr": 0.07, "params": [0]}],
    }
    checkpoint = {"iter_no": 0, "model": weights, "logger": logged, "optimizer": optimizer}
    torch.save(checkpoint | {"scheduler_iter": 1000}, path)
    return path


def blocks():
    tokens = torch.randint(VOCAB, (3, 4, 9), generator=torch.Generator().manual_seed(1))
    tokens[0, 0] = torch.tensor([0, 4, 5, 10, 11, 22, 1, 6, 12])  # of all clusters
    return tokens.unbind(1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "single"])
@pytest.mark.parametrize(("recipe", "layout", "settings"), CASES.values(), ids=CASES)
@torch.no_grad()
def test_a_stream_gets_the_probabilities_that_the_program_gives_it(
    released, recipe, layout, settings, dtype, tmp_path
):
    weights = random_weights(**{**SIZES, **layout})
    model = build(recipe, **{**AROUND, **settings}).to(dtype).eval()
    released.load_adaptive_span_weights(model, saved(tmp_path / "program.pt", weights))
    program = Program(weights, heads=HEADS, ramp=RAMP, cutoffs=layout.get("cutoffs", ()), dtype=dtype)
    stream, scored = StreamState(), StreamState()
    for block in blocks():
        expected = program(block)
        found, stream = model.forward_stream(block, stream)
        torch.testing.assert_close(found.log_softmax(-1), expected, rtol=0, atol=1e-5)
        targets = block.roll(1, 0)
        lost, scored = model.nll_stream(block, targets, scored)
        torch.testing.assert_close(lost, -expected.gather(-1, targets[..., None])[..., 0], rtol=0, atol=1e-5)


def test_every_number_of_a_file_is_in_the_model_once(released, tmp_path):
    weights = random_weights(**SIZES, vectors=6, cutoffs=CUTS)
    model = build(ALL_ATTN, **{**AROUND, **CLUSTERS, **TIED})
    released.load_adaptive_span_weights(model, saved(tmp_path / "program.pt", weights))
    distinct = {id(each): each for name, each in weights.items() if not name.endswith("mask_template")}
    ours = torch.cat([each.detach().flatten() for each in model.parameters()])
    theirs = torch.cat([each.flatten() for each in distinct.values()])
    assert ours.sort().values.equal(theirs.sort().values)


def test_the_weights_alone_are_read_too(released, tmp_path):
    weights = random_weights(**SIZES, vectors=6)
    torch.save({name.removeprefix("module."): each for name, each in weights.items()}, tmp_path / "alone.pt")
    first, second = (build(ALL_ATTN, **AROUND) for _ in range(2))
    released.load_adaptive_span_weights(first, tmp_path / "alone.pt")
    released.load_adaptive_span_weights(second, saved(tmp_path / "whole.pt", weights))
    assert all(ours.equal(other) for ours, other in zip(first.parameters(), second.parameters(), strict=True))


def test_weights_that_do_not_fit_are_reported_together_and_leave_the_model_unchanged(
    released, tmp_path, golden
):
    weights = random_weights(**SIZES, vectors=6, cutoffs=CUTS)
    del weights["module.layers.0.attn.proj_key.weight"]
    weights["module.layers.1.norm1.weight"] = torch.ones(3)
    weights["module.layers.2.norm1.weight"] = torch.ones(WIDTH)
    weights["module.out_emb.out_projs.1"] = torch.zeros(WIDTH, 4)
    model = build(ALL_ATTN, **{**AROUND, **CLUSTERS, **TIED})
    before = [each.detach().clone() for each in model.parameters()]
    with golden.raises(ActivememError):
        released.load_adaptive_span_weights(model, saved(tmp_path / "program.pt", weights))
    assert all(ours.equal(kept) for ours, kept in zip(model.parameters(), before, strict=True))


def test_a_model_that_the_program_does_not_have_is_refused_with_all_reasons(released, golden):
    other = "sa(pos=relative, span=12, heads=2, head_width=4, self=true, pos_values=true)"
    model = build(
        f"{other} >> ff(4, act=gelu) >> ff(4) >> attn_split(N=2) >> all_attn(N=0)",
        d_model=16,
        vocab=9,
        output_bias=False,
    )
    with golden.raises(ActivememError):
        released.load_adaptive_span_weights(model, "nothing.pt")


def test_a_file_that_holds_no_weights_is_reported(released, tmp_path):
    model = build(ALL_ATTN, **AROUND)
    torch.save([1, 2], tmp_path / "list.pt")
    (tmp_path / "text.pt").write_text("weights")
    for name, told in (
        ("list.pt", "dict of tensors"),
        ("text.pt", "cannot be read"),
        ("none.pt", "No such file"),
    ):
        with pytest.raises(ActivememError, match=f"{name}.* {told}"):
            released.load_adaptive_span_weights(model, tmp_path / name)


LINES = ["b a c", "a b", "d b"]


@pytest.mark.parametrize(
    ("by_frequency", "theirs"),
    [(False, ["b", "a", "c", "<eos>", "d"]), (True, ["<eos>", "b", "a", "d", "c"])],
)
def test_symbols_are_numbered_as_they_appear_or_by_frequency_the_last_first(released, by_frequency, theirs):
    words = [word for line in LINES for word in [*line.split(), "<eos>"]]
    ours = ["<eos>", "a", "b", "c", "d"]
    tokens = torch.tensor([ours.index(word) for word in words])
    numbers = released.adaptive_span_symbols(tokens, by_frequency=by_frequency)
    assert [theirs[number] for number in numbers[tokens].tolist()] == words
    if by_frequency:  # as the program sorts them
        counts = {word: words.count(word) for word in dict.fromkeys(words)}
        assert [word for word, _ in sorted(counts.items(), key=lambda each: each[1])[::-1]] == theirs


def test_a_symbol_that_the_text_lacks_has_no_number(released, golden):
    with golden.raises(ActivememError):
        released.adaptive_span_symbols(torch.tensor([0, 3, 1]), by_frequency=False)
