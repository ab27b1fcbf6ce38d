"""Checks that every transducer must pass; any test can run them, as it can run the checks of blocks.

    @pytest.mark.parametrize("check", TRANSDUCER_CHECKS)
    def test_my_transducer_conforms(check):
        check("my_transducer(layers=2)")

A check takes the text of a transducer with small arguments and raises AssertionError if the module, the
specification and the contract do not agree. Weights are drawn from seeds, in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call
from torch.testing import assert_close

from activemem import build
from activemem.blocks import TransductionModel
from activemem.blocks.core.transducer import AnyTransducer
from activemem.blocks.testing.fixtures import (
    VOCAB,
    assert_dropout_acts,
    assert_flops_counted,
    assert_memory_stated,
    assert_seed_decides,
    assert_state_dict_restores,
    count_saved_bytes,
    make_generator,
    make_transducer,
    parse_block,
    prefix_mask,
    random_sequences,
    use_plain_operations,
)
from activemem.blocks.testing.references import apply_reference
from activemem.grammar import Analysis, Norm, analyse

SOURCE_LENGTHS, TARGET_LENGTHS = (7, 1, 3, 6), (2, 5, 1, 5)
"""The valid lengths of the sources and the targets of a padded batch."""


def transduction_equals_the_reference(text: str) -> None:
    """Check that the outputs of batches of pairs equal the reference."""
    node, transducer = parse_block(text), make_transducer(text)
    for lengths in (((5, 5), (2, 2)), ((4, 4), (4, 4)), ((6, 1, 4), (3, 5, 2))):
        source, target = (random_sequences(len(each), max(each), seed=max(each)) for each in lengths)
        whole = all(len(set(each)) == 1 for each in lengths)
        masks = (None, None) if whole else tuple(prefix_mask(each, max(each)) for each in lengths)
        with torch.no_grad():
            found = transducer(source, target, *masks)
            for row, (n, m) in enumerate(zip(*lengths, strict=True)):
                expected = apply_reference(node, transducer, source[row, :n], target[row, :m])
                assert_close(found[row, :m], expected, rtol=1e-10, atol=1e-10)


def run_stepwise(
    transducer: AnyTransducer, source: Tensor, target: Tensor, source_mask: Tensor | None, lengths: Tensor
) -> Tensor:
    """Return all outputs, one step at a time, permuting the rows of the batch after each step."""
    state, outputs = transducer.begin(source, source_mask, lengths), []
    order = torch.arange(len(source), device=source.device)  # which sequence each row of the state is of
    for place in range(target.shape[1]):
        output, state = transducer.step(state, target[order, place])
        outputs.append(output[order])  # each order is its own inverse
        state, order = state.select_rows(torch.arange(len(order), device=order.device).flip(0)), order.flip(0)
    return torch.stack(outputs, 1)


def steps_give_what_forward_gives(text: str) -> None:
    """Check that outputs step by step equal the outputs of one pass, with and without padding."""
    transducer = make_transducer(text)
    source, target = _padded_pair()
    masks = prefix_mask(SOURCE_LENGTHS, 7), prefix_mask(TARGET_LENGTHS, 5)
    full, valid = (torch.tensor(lengths) for lengths in ((5,) * 4, TARGET_LENGTHS))
    expected = transducer(source, target)
    assert expected.shape == (4, 5, transducer.output_width), (
        "expected outputs as wide as the transducer says"
    )
    assert_close(run_stepwise(transducer, source, target, None, full), expected, rtol=1e-10, atol=1e-10)
    found = run_stepwise(transducer, source, target, masks[0], valid)
    assert_close(found[masks[1]], transducer(source, target, *masks)[masks[1]], rtol=1e-10, atol=1e-10)


def later_targets_are_hidden(text: str) -> None:
    """Check that outputs do not depend on later targets, and do depend on the source."""
    transducer, (source, target) = make_transducer(text), _padded_pair()
    expected = transducer(source, target)
    for place in range(5):
        other = target.clone()
        other[:, place] += 1.0
        moved = (transducer(source, other) != expected).any(-1).any(0)
        assert not moved[:place].any(), "a later target changes an output"
    other = source + 1.0
    assert (transducer(other, target) != expected).any(), "no output depends on the source"


def padding_changes_nothing(text: str) -> None:
    """Check that a padded batch equals its single pairs, with arbitrary values as padding."""
    transducer, (source, target) = make_transducer(text), _padded_pair()
    masks = prefix_mask(SOURCE_LENGTHS, 7), prefix_mask(TARGET_LENGTHS, 5)
    outputs = transducer(source, target, *masks)
    for row, (n, m) in enumerate(zip(SOURCE_LENGTHS, TARGET_LENGTHS, strict=True)):
        alone = transducer(source[row : row + 1, :n], target[row : row + 1, :m])
        assert_close(outputs[row, :m], alone[0], rtol=1e-10, atol=1e-10)
    junk = [
        torch.where(mask[..., None], x, 1e4 * torch.ones_like(x))
        for x, mask in zip((source, target), masks, strict=True)
    ]
    assert transducer(*junk, *masks)[masks[1]].equal(outputs[masks[1]]), "padding changes an output"


def gradients_are_right(text: str) -> None:
    """Check that the gradients equal finite differences."""
    transducer = make_transducer(text, width=3)
    source, target = (random_sequences(2, 3, width=3, seed=seed).requires_grad_() for seed in (1, 2))
    names, values = zip(*transducer.named_parameters(), strict=True)
    masks = prefix_mask([3, 1], 3), prefix_mask([1, 3], 3)

    def function(source: Tensor, target: Tensor, *values: Tensor) -> Tensor:
        weights = dict(zip(names, values, strict=True))
        return functional_call(transducer, weights, (source, target, *masks))[masks[1]]

    checked = torch.autograd.gradcheck(function, (source, target, *values), fast_mode=True)
    assert checked, "the gradients are wrong"


def parameters_are_counted(text: str) -> None:
    """Check that the number of parameters equals that of the analysis."""
    model, analysis = _build_and_analyse(text, length=4)
    counted = sum(parameter.numel() for parameter in model.parameters())
    assert counted == analysis.parameters, f"expected {analysis.parameters} as stated, got {counted}"


def flops_are_counted(text: str) -> None:
    """Check that FLOPs agree within one percent, at two lengths of source and target."""
    for length, batch in ((3, 200), (20, 50)):  # what is done once a batch must not count
        model, analysis = _build_and_analyse(text, length=length)
        run = partial(use_plain_operations(model).eval(), *_tokens(batch, length))
        assert_flops_counted(run, batch=batch, length=length, stated=analysis.flops)


def training_memory_is_stated(text: str) -> None:
    """Check that the analysis states the memory for the backward pass within one percent, for all norms.

    Sources and targets have at least two positions, because a view of a single position may keep a whole
    image.
    """
    cases: tuple[tuple[Norm, int, float], ...] = (
        ("pre", 2, 0.0),
        ("pre", 9, 0.1),
        ("post", 20, 0.1),
    )
    for norm, length, dropout in cases:
        model, analysis = _build_and_analyse(text, length=length, norm=norm, dropout=dropout)
        loss = partial(use_plain_operations(model, keeps_kernels=True).train().nll, *_tokens(3, length))
        stated = analysis.memory(3).activations
        assert_memory_stated(count_saved_bytes(model, loss), length=length, stated=stated)


def state_dict_restores(text: str) -> None:
    """Check that a state dict restores the outputs, and that a copy shares no weights."""
    assert_state_dict_restores(lambda seed: make_transducer(text, seed=seed), *_padded_pair())


def seed_decides(text: str) -> None:
    """Check that the weights depend on the seed, and on nothing else."""
    assert_seed_decides(lambda seed: make_transducer(text, seed=seed), *_padded_pair())


def dropout_acts_in_training(text: str) -> None:
    """Check that dropout is random in training and off in evaluation."""
    dropping, plain = (_build(text, dropout=rate) for rate in (0.5, 0.0))
    assert_dropout_acts(dropping, plain, *_tokens(2, 7))


def gpu_gives_the_same(text: str) -> None:
    """Check that a GPU gives the same outputs and steps; run separately from the other checks."""
    here, there = make_transducer(text), make_transducer(text).cuda()
    pair, full = _padded_pair(), torch.full((4,), 5)
    masks = prefix_mask(SOURCE_LENGTHS, 7), prefix_mask(TARGET_LENGTHS, 5)
    moved = [each.cuda() for each in (*pair, *masks)]
    expected = here(*pair, *masks)[masks[1]]
    assert_close(there(*moved)[moved[3]].cpu(), expected, rtol=1e-9, atol=1e-9)
    stepped = run_stepwise(there, moved[0], moved[1], None, full.cuda())
    assert_close(stepped.cpu(), here(*pair), rtol=1e-9, atol=1e-9)


TRANSDUCER_CHECKS: tuple[Callable[[str], None], ...] = (
    steps_give_what_forward_gives,
    later_targets_are_hidden,
    padding_changes_nothing,
    gradients_are_right,
    parameters_are_counted,
    flops_are_counted,
    training_memory_is_stated,
    state_dict_restores,
    seed_decides,
    dropout_acts_in_training,
    transduction_equals_the_reference,
)
"""Every check; each is called as `check(text)`."""


def _padded_pair() -> tuple[Tensor, Tensor]:
    return random_sequences(4, 7, seed=1), random_sequences(4, 5, seed=2)


def _tokens(batch: int, length: int) -> tuple[Tensor, Tensor]:
    source, target = (
        torch.randint(1, VOCAB, (batch, length), generator=make_generator(seed)) for seed in (2, 3)
    )
    return source, target


def _build(text: str, **settings: Any) -> TransductionModel:
    model = build(text, d_model=8, vocab=VOCAB, **settings, source_vocab=VOCAB, generator=make_generator(1))
    assert isinstance(model, TransductionModel)
    return model


def _build_and_analyse(
    text: str, *, length: int, norm: Norm = "pre", dropout: float = 0.0
) -> tuple[TransductionModel, Analysis]:
    settings: dict[str, Any] = {"norm": norm, "dropout": dropout, "attention_dropout": dropout}
    return _build(text, **settings), analyse(text, d_model=8, vocab=VOCAB, **settings, length=length)
