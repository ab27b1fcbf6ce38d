"""Gradients are added across replicas: small ones together, large ones where they are."""

import pytest
import torch
from torch import nn

from activemem.engine.replicas import share
from activemem.engine.replicas.share import Share


@pytest.fixture
def summed(monkeypatch):
    """What is added across two replicas that have the same, by its place in memory."""
    found = []

    def all_reduce(tensor):
        found.append(tensor.data_ptr())
        tensor.mul_(2)

    monkeypatch.setattr(share.distributed, "all_reduce", all_reduce)
    monkeypatch.setattr(share, "BUCKET", 50)
    return found


def test_every_gradient_is_the_sum_and_what_fills_a_bucket_is_not_copied(summed):
    model = nn.ModuleList([nn.Linear(3, 5), nn.Linear(8, 8), nn.Linear(9, 9)])
    for number, weight in enumerate(model.parameters(), 1):
        weight.grad = torch.full_like(weight, float(number))
    model[2].weight.grad = torch.full((9, 9), 5.0).t()[:, torch.arange(9)].t()  # in another order
    loss = Share(0, 1, begin=lambda: None).sum_gradients(model, torch.tensor(3.0))
    assert loss == 6.0
    for number, weight in enumerate(model.parameters(), 1):
        assert torch.equal(weight.grad, torch.full_like(weight, 2.0 * number))
    gradients = [weight.grad.data_ptr() for weight in model.parameters()]
    assert summed[0] == gradients[2]
    assert len(summed) == 3
    assert not {*summed[1:]} & {*gradients}
