"""Optimisers: the rule of Adagrad, and clipping of gradients and steps per map."""

import sys

import torch

from activemem.blocks import Linear
from activemem.engine.optimisers.build import build_optimizer
from activemem.engine.optimisers.weights import clip_gradients_per_map, take_clipped_step
from activemem.studies.catalog.optimisers import OwnOptimizerSettings as OptimizerSettings


def weights(*gradients):
    made = [torch.nn.Parameter(torch.zeros(len(gradient))) for gradient in gradients]
    for weight, gradient in zip(made, gradients, strict=True):
        weight.grad = torch.tensor(gradient)
    return made


def test_each_gradient_is_clipped_by_itself():
    large, small = weights([3.0, 4.0], [0.01, 0.0])
    clip_gradients_per_map(torch.nn.ParameterList([large, small, torch.nn.Parameter(torch.zeros(1))]), 0.5)
    torch.testing.assert_close(large.grad, torch.tensor([0.3, 0.4]))
    torch.testing.assert_close(small.grad, torch.tensor([0.01, 0.0]))


def test_the_maps_of_one_weight_are_clipped_one_by_one():
    merged = Linear(2, 1, bias=False, maps=3)
    merged.weight.grad = torch.tensor([[3.0, 4.0], [0.1, 0.0], [0.0, 2.0]])
    clip_gradients_per_map(merged, 0.5)
    torch.testing.assert_close(merged.weight.grad, torch.tensor([[0.3, 0.4], [0.1, 0.0], [0.0, 0.5]]))


def test_gradients_are_clipped_bit_for_bit_as_all_at_once():
    drawn = torch.Generator().manual_seed(0)
    gradients = [
        torch.randn(size, generator=drawn) * scale for size in (1, 7, 640) for scale in (1e-6, 1.0, 1e6)
    ]
    scales = [(0.03 / (norm + 1e-6)).clamp(max=1.0) for norm in torch._foreach_norm(gradients)]  # pyright: ignore[reportPrivateImportUsage]
    expected = torch._foreach_mul(gradients, scales)  # pyright: ignore[reportPrivateImportUsage]
    made = weights(*(gradient.tolist() for gradient in gradients))
    clip_gradients_per_map(torch.nn.ParameterList(made), 0.03)
    for weight, gradient in zip(made, expected, strict=True):
        assert weight.grad is not None
        assert torch.equal(weight.grad, gradient)


def test_adagrad_steps_as_duchi_et_al_wrote_it():
    (weight,) = weights([2.0, -1.0])
    made = build_optimizer(
        OptimizerSettings(name="adagrad", lr=0.1, eps=1e-10), torch.nn.ParameterList([weight])
    )
    total, expected = torch.zeros(2), torch.zeros(2)
    for gradient in ([2.0, -1.0], [1.0, 1.0]):
        weight.grad = torch.tensor(gradient)
        made.step()
        total += torch.tensor(gradient) ** 2
        expected -= 0.1 * torch.tensor(gradient) / total.sqrt()
    torch.testing.assert_close(weight.detach(), expected)


def test_adagrad_holds_no_copies_of_all_weights_at_once_on_a_gpu_either(monkeypatch):
    rule, several = sys.modules[torch.optim.Adagrad.__module__], []
    # as torch chooses for weights on a GPU, where nothing is said
    monkeypatch.setattr(rule, "_default_to_fused_or_foreach", lambda *_, **__: (False, True))
    monkeypatch.setattr(rule, "_multi_tensor_adagrad", lambda *_, **__: several.append("copies"))
    (weight,) = weights([2.0, -1.0])
    made = build_optimizer(
        OptimizerSettings(name="adagrad", lr=0.1, eps=1e-10), torch.nn.ParameterList([weight])
    )
    weight.grad = torch.ones(2)
    made.step()
    assert several == []


def test_steps_are_shrunk_map_by_map_while_adagrad_sums_gradients_as_they_are():
    settings = OptimizerSettings(name="adagrad", lr=0.1, eps=1e-10)
    merged, alone = Linear(3, 2, bias=False, maps=2), Linear(3, 2, bias=False)
    model = torch.nn.ModuleList([merged, alone])
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape))
    maps = [*merged.weight.detach().clone().chunk(2), alone.weight.detach().clone()]
    sums = [torch.zeros_like(weight) for weight in maps]
    rule = build_optimizer(settings, model)
    for scale in (1e-3, 1.0, 0.1):
        gradients = [scale * size * torch.randn(2, 3) for size in (1.0, 1e-3, 2.0)]
        merged.weight.grad, alone.weight.grad = torch.cat(gradients[:2]), gradients[2]
        take_clipped_step(rule, model, 0.03)
        for weight, total, gradient in zip(maps, sums, gradients, strict=True):
            total += gradient**2
            rate = 0.1 * min(1.0, 0.03 / float(gradient.norm()))
            weight -= rate * gradient / (total.sqrt() + 1e-10)
    torch.testing.assert_close(merged.weight.detach(), torch.cat(maps[:2]))
    torch.testing.assert_close(alone.weight.detach(), maps[2])
