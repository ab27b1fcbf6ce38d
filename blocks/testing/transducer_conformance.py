"""What every transducer must hold to, whoever wrote it: checks that any test can run, as those of blocks.

    @pytest.mark.parametrize("check", TRANSDUCER_CHECKS)
    def test_my_transducer_conforms(check):
        check("my_transducer(layers=2)")

A check takes the text of a transducer with small arguments and raises AssertionError where the module, its
specification and the contract do not agree. Weights are drawn from seeds, in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from ...grammar import Analysis, ModelConfig, analyse
from ..core.block import Context
from ..core.initialisation import initialise
from ..core.transducer import AnyTransducer, build_transducer_block
from ..layers.recurrent import disable_fused_kernels
from ..models.seq2seq_model import TransductionModel
from ..models.sequence_model import build
from .conformance import parse_block
from .fixtures import WIDTH, count_saved_bytes, make_generator, prefix_mask, random_sequences

SOURCE_LENGTHS, TARGET_LENGTHS = (7, 1, 3, 6), (2, 5, 1, 5)
"""The valid lengths of the sources and the targets of a padded batch."""

VOCAB = 6


def make_transducer(
    text: str, *, seed: int = 0, width: int = WIDTH, dropout: float = 0.0, dtype: torch.dtype = torch.float64
) -> AnyTransducer:
    """A transducer with drawn weights, in evaluation; biases are moved too, so that none is zero."""
    made = build_transducer_block(
        parse_block(text), Context(config=ModelConfig(d_model=width, dropout=dropout, position="none"))
    )
    generator = make_generator(seed)
    initialise(made, generator)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if name.endswith("bias"):
                parameter.add_(torch.rand(parameter.shape, generator=generator) - 0.5)
    return made.to(dtype).eval()


def run_stepwise(
    transducer: AnyTransducer, source: Tensor, target: Tensor, source_mask: Tensor | None, lengths: Tensor
) -> Tensor:
    """All outputs, each from a step of its own; behind each step the rows change places."""
    state, outputs = transducer.begin(source, source_mask, lengths), []
    order = torch.arange(len(source))  # which sequence each row of the state is of
    for place in range(target.shape[1]):
        output, state = transducer.step(state, target[order, place])
        outputs.append(output[order])  # each order is its own inverse
        state, order = state.select_rows(torch.arange(len(order)).flip(0)), order.flip(0)
    return torch.stack(outputs, 1)


def steps_give_what_forward_gives(text: str) -> None:
    """Step by step the outputs are those of all at once, with and without padding."""
    transducer = make_transducer(text)
    source, target = _padded_pair()
    masks = prefix_mask(SOURCE_LENGTHS, 7), prefix_mask(TARGET_LENGTHS, 5)
    whole, steps = (torch.tensor(lengths) for lengths in ((5,) * 4, TARGET_LENGTHS))
    expected = transducer(source, target)
    assert expected.shape == (4, 5, transducer.output_width), (
        "expected outputs as wide as the transducer says"
    )
    assert_close(run_stepwise(transducer, source, target, None, whole), expected, rtol=1e-10, atol=1e-10)
    found = run_stepwise(transducer, source, target, masks[0], steps)
    assert_close(found[masks[1]], transducer(source, target, *masks)[masks[1]], rtol=1e-10, atol=1e-10)


def later_targets_are_hidden(text: str) -> None:
    """No output moves with a target behind it, and some output moves with the source."""
    transducer, (source, target) = make_transducer(text), _padded_pair()
    expected = transducer(source, target)
    for place in range(5):
        other = target.clone()
        other[:, place] += 1.0
        moved = (transducer(source, other) != expected).any(-1).any(0)
        assert not moved[:place].any(), "a later target moves an output"
    other = source + 1.0
    assert (transducer(other, target) != expected).any(), "the source moves no output"


def padding_changes_nothing(text: str) -> None:
    """A padded batch gives what its pairs give alone, whatever stands at the padding."""
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
    assert transducer(*junk, *masks)[masks[1]].equal(outputs[masks[1]]), "padding moves an output"


def gradients_are_right(text: str) -> None:
    """The gradients are those of finite differences."""
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
    """The model has exactly as many numbers as the analysis says."""
    model, analysis = _build_and_analyse(text, length=4)
    counted = sum(parameter.numel() for parameter in model.parameters())
    assert counted == analysis.parameters, f"expected {analysis.parameters} as stated, got {counted}"


def flops_are_counted(text: str) -> None:
    """Products and sums are counted to one percent, at two lengths of source and target."""
    for length, batch in ((3, 200), (20, 50)):  # what is done once a batch must not count
        model, analysis = _build_and_analyse(text, length=length)
        with FlopCounterMode(display=False) as counter:
            disable_fused_kernels(model).eval()(*_tokens(batch, length))
        counted = counter.get_total_flops() / batch
        message = f"expected {analysis.flops} FLOPs as stated at length {length}, got {counted:g}"
        assert math.isclose(counted, analysis.flops, rel_tol=0.01), message


def training_memory_is_stated(text: str) -> None:
    """What training keeps for the backward pass is stated to a fifth."""
    for length in (5, 30):
        model, analysis = _build_and_analyse(text, length=length, dropout=0.1)
        disable_fused_kernels(model).train()
        tokens, stated = _tokens(3, length), analysis.memory(3).activations
        saved = count_saved_bytes(model, lambda model=model, tokens=tokens: model.nll(*tokens))
        message = f"expected {stated} bytes as stated at length {length}, got {saved}"
        assert math.isclose(saved, stated, rel_tol=0.2), message


def state_dict_restores(text: str) -> None:
    """A state dict makes another transducer the same; another seed draws other weights."""
    transducer, other, pair = make_transducer(text), make_transducer(text, seed=5), _padded_pair()
    expected = transducer(*pair)
    assert not other(*pair).equal(expected), "another seed draws the same weights"
    other.load_state_dict(transducer.state_dict())
    assert other(*pair).equal(expected), "the state dict does not restore the outputs"


def seed_decides(text: str) -> None:
    """The same seed draws the same weights, and the global generator is left alone."""
    state = torch.get_rng_state()
    one, same = (make_transducer(text, seed=3)(*_padded_pair()) for _ in range(2))
    assert torch.get_rng_state().equal(state), "weights were drawn from the global generator"
    assert one.equal(same), "the same seed draws other weights"


def weights_can_be_stacked(text: str) -> None:
    """Three trials as one batched computation give the outputs of each by itself."""
    made = [make_transducer(text, seed=seed) for seed in range(3)]
    source, target = (torch.stack([random_sequences(3, 5, seed=s + k) for s in range(3)]) for k in (0, 9))
    masks = prefix_mask([5, 2, 4], 5), prefix_mask([3, 5, 1], 5)
    weights, buffers = stack_module_state(made)
    base = deepcopy(made[0])

    def one(weights: dict[str, Tensor], source: Tensor, target: Tensor) -> Tensor:
        return functional_call(base, (weights, buffers), (source, target, *masks))

    together = torch.vmap(one, randomness="error")(weights, source, target)
    alone = torch.stack([each(*pair, *masks) for each, *pair in zip(made, source, target, strict=True)])
    assert_close(together[:, masks[1]], alone[:, masks[1]], rtol=1e-9, atol=1e-9)


def dropout_acts_in_training(text: str) -> None:
    """In evaluation nothing is dropped; in training something is, each time something else."""
    dropping, plain = (_build_and_analyse(text, length=7, dropout=rate)[0] for rate in (0.5, 0.0))
    pair = _tokens(2, 7)
    assert dropping.eval()(*pair).equal(plain.eval()(*pair)), "something is dropped in evaluation"
    assert not dropping.train()(*pair).equal(dropping.train()(*pair)), "nothing is dropped in training"


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
    weights_can_be_stacked,
    dropout_acts_in_training,
)
"""Every check; each is called as `check(text)`."""


def _padded_pair() -> tuple[Tensor, Tensor]:
    """A source (4, 7, WIDTH) and a target (4, 5, WIDTH)."""
    return random_sequences(4, 7, seed=1), random_sequences(4, 5, seed=2)


def _tokens(batch: int, length: int) -> tuple[Tensor, Tensor]:
    """A source and a target (batch, length) without padding."""
    source, target = (
        torch.randint(1, VOCAB, (batch, length), generator=make_generator(seed)) for seed in (2, 3)
    )
    return source, target


def _build_and_analyse(text: str, *, length: int, dropout: float = 0.0) -> tuple[TransductionModel, Analysis]:
    """A model around a transducer, and its analysis."""
    model = build(
        text, d_model=8, source_vocab=VOCAB, vocab=VOCAB, dropout=dropout, generator=make_generator(1)
    )
    assert isinstance(model, TransductionModel)
    return model, analyse(text, d_model=8, vocab=VOCAB, dropout=dropout, length=length)
