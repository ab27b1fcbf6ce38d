"""Fixtures of tests: blocks, sequences and masks, and common checks."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from ...grammar import Analysis, Role, analyse, configure, lookup, nodes, parse
from ...grammar.signature import example
from ...grammar.vocabulary.spec import sees_unstated, spec_of
from ..core.block import Block, Context, build_block
from ..core.initialisation import drawn_by, initialise
from ..core.transducer import AnyTransducer, build_transducer_block
from ..layers.convolutions import Convolution
from ..layers.recurrent import Recurrent
from ..models.model import Model, build

ModuleT = TypeVar("ModuleT", bound=nn.Module)

WIDTH = 6
"""The width of the models in tests."""

VOCAB = 5
"""The number of symbols of the models in tests."""


def assert_close(found: Tensor, expected: Tensor, *, rtol: float, atol: float) -> None:
    """Check that two tensors are nearly equal. An error names the first number that differs, with its place.

    The place of an output is its batch entry, if there is a batch, its position and its channel, from 0.
    """
    wanted, given = ((tuple(each.shape), each.dtype) for each in (expected, found))
    assert given == wanted, f"expected a shape and a type {wanted}, got {given}"
    found, expected = found.detach(), expected.detach()
    differs = ~torch.isclose(found, expected, rtol=rtol, atol=atol)
    if differs.any():
        place = tuple(differs.nonzero()[0].tolist())
        right, wrong = float(expected[place]), float(found[place])
        digits = 6 if f"{right:.6g}" != f"{wrong:.6g}" else 17
        values = f"expected {right:.{digits}g} at {list(place)}, got {wrong:.{digits}g}"
        raise AssertionError(f"{values}; {int(differs.sum())} of {differs.numel()} numbers differ")


def parse_block(text: str) -> nodes.BlockNode:
    """Parse the text of a single block; raise ValueError for any other text."""
    root = parse(text).root
    if not isinstance(root, nodes.BlockNode):
        raise ValueError(f"expected one block, got {text}")
    return root


def example_block(name: str) -> nodes.BlockNode:
    """Return the named block with small values: 4 for required whole numbers, 2 for optional ones."""
    spec, arguments = spec_of(name), list[tuple[str, nodes.Value]]()
    required = dict(example(spec).arguments)
    for parameter in spec.parameters:
        if parameter.name in required:
            arguments.append((parameter.name, required[parameter.name]))
        elif parameter.kind == "integer":
            low, high = parameter.low or 0, math.inf if parameter.high is None else parameter.high
            number = (parameter.name, int(min(max(2, low), high)))
            chosen = spec.settings(nodes.BlockNode(name, (*arguments, number)))
            if spec.check is None or spec.check(chosen) is None:
                arguments.append(number)
    return nodes.BlockNode(name, tuple(arguments))


def is_pool(text: str) -> bool:
    """Return whether the block is a pool."""
    spec = lookup(parse_block(text).name)
    return spec is not None and spec.role is Role.POOL


def states_reach(text: str) -> bool:
    """Return whether a block's specification states a reach. A plug-in's specification need not."""
    return spec_of(parse_block(text).name).reach is not sees_unstated


def reach_words(left: float, right: float, length: float = math.inf) -> str:
    """Return in words how far a block sees. Measured in a sequence of this length, it may see further."""
    numbers = ("all" if math.isinf(side) else f"{side:g}" for side in (left, right))
    texts = (f"{n} or more" if n == f"{length - 1:g}" else n for n in numbers)
    return f"{next(texts)} to the left and {next(texts)} to the right"


def valid_outputs(y: Tensor, valid: int | Tensor) -> Tensor:
    """Return only the outputs at valid positions.

    `valid` is a length, or a mask that is true at valid positions. A pool has no positions; its whole output
    is returned.
    """
    pooled = y.dim() == (1 if isinstance(valid, int) else 2)
    return y if pooled else y[:valid] if isinstance(valid, int) else y[valid]


def idle_parameters(block: Block, x: Tensor) -> list[str]:
    """Return the names of a block's parameters that get no gradient from its outputs at x."""
    with torch.enable_grad():
        total = block(x).sum()
        if total.requires_grad:
            total.backward()
    return [name for name, each in block.named_parameters() if each.requires_grad and each.grad is None]


def use_plain_operations(model: ModuleT, *, keeps_kernels: bool = False) -> ModuleT:
    """Disable fast computations in a model, and return the model. Torch cannot count their FLOPs.

    With `keeps_kernels`, recurrent layers still use fused kernels, whose memory is stated.
    """
    for part in model.modules():
        if isinstance(part, Recurrent):
            part.use_fused = keeps_kernels
        elif isinstance(part, Convolution):
            part.use_frequencies = False
    return model


def make_generator(seed: int) -> torch.Generator:
    """Return a generator with this seed."""
    return torch.Generator().manual_seed(seed)


def make_block(
    node: nodes.BlockNode,
    *,
    causal: bool,
    seed: int = 0,
    width: int = WIDTH,
    dropout: float = 0.0,
    dtype: torch.dtype = torch.float64,
) -> Block:
    """Return a block in evaluation mode, with random weights, none of them zero."""
    with drawn_by(make_generator(seed)):
        block = build_block(node, Context(config=configure(d_model=width, causal=causal, dropout=dropout)))
    _draw(block, seed)
    block.after_optimiser_step()
    return block.to(dtype).eval()


def seeded(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return outputs for which dropout draws the same numbers whenever the shape is the same."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return function(x)


def make_transducer(
    text: str, *, seed: int = 0, width: int = WIDTH, dropout: float = 0.0, dtype: torch.dtype = torch.float64
) -> AnyTransducer:
    """Return a transducer in evaluation mode, with random weights, none of them zero."""
    context = Context(config=configure(d_model=width, dropout=dropout, position="none"))
    transducer = build_transducer_block(parse_block(text), context)
    _draw(transducer, seed)
    return transducer.to(dtype).eval()


def _draw(module: nn.Module, seed: int) -> None:
    generator = make_generator(seed)
    initialise(module, generator)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.endswith("bias"):
                parameter.uniform_(-0.5, 0.5, generator=generator)
            elif bool((parameter == parameter.flatten()[0]).all()):
                parameter.add_(0.5 * torch.rand(parameter.shape, generator=generator))


def build_small(text: str, *, seed: int = 1, **settings: Any) -> Model:  # noqa: ANN401 -- of a model
    """Return the model of a recipe for a small vocabulary; `settings` are passed to `build`."""
    model = build(text, vocab=VOCAB, **settings, generator=make_generator(seed))
    assert isinstance(model, Model), f"expected a block of one sequence, got {text}"
    return model


def build_and_analyse(text: str, *, length: int, **settings: Any) -> tuple[Model, Analysis]:  # noqa: ANN401 -- of a model
    """Return the model of a recipe, by default without dropout, and its analysis."""
    settings = {"dropout": 0.0} | settings
    return build_small(text, **settings), analyse(text, vocab=VOCAB, **settings, length=length)


def random_sequences(
    batch: int, length: int, *, width: int = WIDTH, seed: int = 1, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Return standard normal numbers (batch, length, width)."""
    return torch.randn(batch, length, width, generator=make_generator(seed), dtype=dtype)


def prefix_mask(lengths: Sequence[int], length: int) -> Tensor:
    """Return the mask of valid positions for these lengths: (batch, length)."""
    return torch.arange(length) < torch.tensor(lengths)[:, None]


def saved_bytes(model: Model, *, batch: int, length: int) -> int:
    """Return the bytes saved for the backward pass of a batch of this size."""
    device, config = next(model.parameters()).device, model.config
    inputs = torch.zeros(batch, length, dtype=torch.int64, device=device)
    if config.interface.columns is not None:
        inputs = torch.zeros(batch, length, config.interface.columns, device=device)
    places = (batch,) if model.pooled else (batch, length)

    def loss() -> Tensor:
        if config.interface.targets is None:
            return model.train().nll(inputs, torch.zeros(places, dtype=torch.int64, device=device))
        outputs = model.train()(inputs)
        return functional.mse_loss(outputs, torch.zeros(*places, config.interface.targets, device=device))

    return count_saved_bytes(model, loss)


def count_saved_bytes(model: nn.Module, loss: Callable[[], Tensor]) -> int:
    """Return how many bytes computing a loss stores for the backward pass.

    Parameters do not count, and each storage counts once. A tensor that was saved and freed during the
    forward pass does not count.
    """
    own = {parameter.untyped_storage() for parameter in model.parameters()}
    saved: weakref.WeakSet[torch.UntypedStorage] = weakref.WeakSet()

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage not in own:
            saved.add(storage)
        return tensor.detach()  # the node's own output would keep itself alive

    with saved_tensors_hooks(note, lambda tensor: tensor):
        computed = loss()
    assert computed.requires_grad, "expected a loss with a gradient"
    return sum(storage.nbytes() for storage in saved)


def assert_state_dict_restores(make: Callable[[int], nn.Module], *inputs: Tensor) -> None:
    """Check that a state dict restores a module, and that a deep copy shares no weights with it."""
    module, other = make(0), make(5)
    expected = module(*inputs)
    assert not (_has_parameters(module) and other(*inputs).equal(expected)), (
        "another seed draws the same weights"
    )
    other.load_state_dict(module.state_dict())
    assert other(*inputs).equal(expected), "the state dict does not restore the outputs"
    copy = deepcopy(module)
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter.add_(1.0)
    assert module(*inputs).equal(expected), "a copy shares weights with the original"


def assert_seed_decides(make: Callable[[int], nn.Module], *inputs: Tensor) -> None:
    """Check that the weights depend on the seed, and on nothing else."""
    one, same, other = (make(seed)(*inputs) for seed in (3, 3, 4))
    assert one.equal(same), "the same seed draws different weights"
    assert not (_has_parameters(make(3)) and one.equal(other)), "another seed draws the same weights"


def assert_flops_counted(run: Callable[[], object], *, batch: int, length: int, stated: int) -> None:
    """Check that calling `run` takes `stated` FLOPs per sequence, within one percent."""
    assert_flops_stated(count_flops(run) / batch, length=length, stated=stated)


def count_flops(run: Callable[[], object]) -> int:
    """Return the FLOPs that torch counts while it calls `run`.

    Attention uses plain products, because torch does not count fused attention on a CPU (torch 2.13).
    """
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


def assert_flops_stated(counted: float, *, length: int, stated: int) -> None:
    """Check that a sequence's `stated` FLOPs are within one percent of its `counted` FLOPs."""
    message = f"expected {stated} FLOPs as stated at length {length}, got {counted:g}"
    assert math.isclose(counted, stated, rel_tol=0.01), message


def assert_memory_stated(saved: int, *, length: int, stated: int) -> None:
    """Check that `stated` bytes for the backward pass are within one percent of the `saved` bytes."""
    message = f"expected {stated} bytes as stated at length {length}, got {saved}"
    assert math.isclose(saved, stated, rel_tol=0.01, abs_tol=16), message


def assert_dropout_acts(dropping: nn.Module, plain: nn.Module, *inputs: Tensor) -> None:
    """Check that dropout acts in training but not in evaluation, and that nothing else acts in training.

    Few numbers may get the same mask twice in a row, so several passes are compared.
    """
    evaluated = plain.eval()(*inputs)
    assert dropping.eval()(*inputs).equal(evaluated), "dropout acts in evaluation"
    assert plain.train()(*inputs).equal(evaluated), "without dropout, training changes outputs"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        first, *others = (dropping.train()(*inputs) for _ in range(4))
    assert not all(first.equal(each) for each in others), "dropout does not act in training"


def _has_parameters(module: nn.Module) -> bool:
    return any(True for _ in module.parameters())
