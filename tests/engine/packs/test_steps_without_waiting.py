"""A training step never synchronises with the device, and keeps all tensors on one device."""

from contextlib import nullcontext

import pytest
import torch
from torch.func import functional_call
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from activemem.blocks.core import KeyCall, record_dropout, replay_dropout
from activemem.blocks.testing import example_block
from activemem.engine.packs import StackedSteps
from activemem.engine.trial import Training
from activemem.grammar import render

from ...blocks.example_blocks import SEQUENCE_BLOCKS

CPU, META = torch.device("cpu"), torch.device("meta")
WAITING = ("_local_scalar_dense", "is_nonzero", "nonzero", "masked_select", "unique", "bincount", "equal")


class NothingIsAwaited(TorchDispatchMode):
    """A mode of torch that rejects operations which would synchronise with a GPU."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        packet = func.overloadpacket
        assert packet.__name__ not in WAITING, f"{func} asks for a value"
        if packet in (torch.ops.aten.index, torch.ops.aten.index_put):
            rows = [each for each in tree_leaves(args[1]) if isinstance(each, torch.Tensor)]
            assert not any(each.dtype in (torch.bool, torch.uint8) for each in rows), (
                f"{func} counts its rows"
            )
        return func(*args, **(kwargs or {}))


@pytest.fixture
def make(settings):
    """Return a factory of trainings with dropout."""

    def made(seed, recipe, position="timing"):
        chosen = settings(recipe, seed=seed, task="reverse")
        model = {"dropout": 0.1, "attention_dropout": 0.1, "position": position}
        model |= {} if position == "timing" else {"max_positions": 50}
        return Training.begin(chosen.model_copy(update={"model": chosen.model.model_copy(update=model)}), CPU)

    return made


CASES = [(render(example_block(name)), "timing") for name in SEQUENCE_BLOCKS]
CASES += [("sa(heads=2)", position) for position in ("learned", "randomised")]
CASES += [("sa(heads=2, head_width=4, pos=rope)", "randomised_pairs")]
CASES = [pytest.param(*case, marks=[pytest.mark.heavy] * (place % 3 > 0)) for place, case in enumerate(CASES)]


@pytest.mark.parametrize(("recipe", "position"), CASES)
def test_no_step_waits_for_a_value(make, recipe, position):
    trainings = [make(seed, recipe, position) for seed in range(2)]
    first = trainings[0]
    batch = first.objective.draw()
    with StackedSteps(trainings) as stacked, NothingIsAwaited():
        stacked.add_gradients([torch.stack([rows, rows]) for rows in batch])
        first.objective.loss_of(first.model.train(), *batch).backward()


@pytest.mark.parametrize(
    "ask", [torch.Tensor.item, torch.nonzero, lambda x: x[x > 0], lambda x: 1 if x.sum() else 0]
)
def test_operations_that_wait_for_the_device_are_detected(ask):
    number = torch.ones(1)
    with NothingIsAwaited(), pytest.raises(AssertionError):
        ask(number)


@pytest.mark.parametrize(("recipe", "position"), CASES)
def test_all_tensors_of_a_step_are_of_its_device(make, recipe, position, monkeypatch):
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # torch has none of that device
    model = make(0, recipe, position).model.train()
    with record_dropout() as calls, torch.no_grad():
        model(torch.zeros(4, 11, dtype=torch.int64))
    model = model.to(META)
    rows = torch.zeros(3, 4, 11, dtype=torch.int64, device=META)
    drawn = [
        torch.zeros(3, each.count, dtype=torch.int64, device=META)
        if isinstance(each, KeyCall)
        else torch.zeros(3, *each.shape, device=META)
        for each in calls
    ]
    weights = {name: torch.stack([weight] * 3) for name, weight in model.named_parameters()}

    def loss(weights, drawn, rows):
        with replay_dropout(drawn):
            found = functional_call(model, weights, (rows,))
        return functional.cross_entropy(found.flatten(0, 1), rows.flatten())

    torch.vmap(loss)(weights, drawn, rows).sum().backward()
    functional.cross_entropy(model(rows[0]).flatten(0, 1), rows[0].flatten()).backward()
    assert {weight.grad.device for weight in model.parameters() if weight.grad is not None} == {META}
