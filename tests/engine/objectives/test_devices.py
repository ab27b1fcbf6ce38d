"""Data of a trial are generated on the CPU, independent of the training device."""

import pytest
import torch

from activemem.engine.objectives.base import on_device
from activemem.engine.objectives.build import build_objective
from activemem.studies.schema.settings import TrialSettings

CUDA = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))
CURRICULUM = {"curriculum": {"start": 41}}
TRIALS = {
    "tagging": ({"name": "multiply"}, {"recipe": "ff(8)"}, CURRICULUM),
    "regression": ({"name": "recall_addition"}, {"recipe": "mean_pool"}, {}),
    "varied": ({"name": "recall_multiplication", "variable": True}, {"recipe": "mean_pool"}, {}),
    "seq2seq": ({"name": "reverse_copy"}, {"recipe": "seq2seq(gru, gru)"}, {"sampling": 0.5}),
    "stream": ({"name": "language_model", "corpus": "paradise-lost"}, {"recipe": "conv(k=3)"}, {}),
}


class GivenError(Exception):
    """Raised by a model with its inputs."""


class Model:
    """A model whose calls raise an exception with their inputs."""

    def __call__(self, *given):
        raise GivenError(*given)

    def __getattr__(self, name):
        return self


def objective(kind, device, folder):
    task, model, train = TRIALS[kind]
    settings = {
        "model": {"d_model": 8, **model},
        "task": task,
        "train": {
            "optimizer": {"name": "adam", "lr": 0.01},
            "batch_size": 4,
            "epochs": 1,
            "steps_per_epoch": 1,
            **train,
        },
    }
    return build_objective(TrialSettings.model_validate(settings), torch.device(device), folder)


def first_batch(trained):
    """Return the model's input tensors in the first step."""
    trained.begin_batch(1)
    with pytest.raises(GivenError) as given:
        trained.loss(Model(), 0, 1)
    return [each for each in given.value.args if isinstance(each, torch.Tensor)]


@pytest.mark.parametrize("kind", TRIALS)
def test_no_generator_of_data_is_on_another_device_than_the_cpu(kind, tmp_path, monkeypatch):
    made = []
    real = torch.Generator

    def recording(device="cpu"):
        made.append(torch.device(device).type)
        return real(device)

    monkeypatch.setattr(torch, "Generator", recording)
    assert {each.device.type for each in first_batch(objective(kind, "meta", tmp_path))} == {"meta"}
    assert set(made) <= {"cpu"}


@pytest.mark.parametrize("device", [CUDA])
@pytest.mark.parametrize("kind", TRIALS)
def test_the_first_batch_is_the_same_on_a_gpu(kind, device, tmp_path):
    here, there = (first_batch(objective(kind, each, tmp_path)) for each in ("cpu", device))
    assert {each.device.type for each in there} == {device}
    assert all(one.equal(other.cpu()) for one, other in zip(here, there, strict=True))


@pytest.mark.parametrize(
    "rows",
    [
        torch.arange(12).view(3, 4)[:, 1:],  # as inputs and targets of a stream are parts of one text
        torch.arange(3).expand(2, 3),  # pinned as it is torch would refuse it
        torch.arange(12).view(3, 4).mT,
    ],
)
def test_rows_are_side_by_side_where_a_gpu_reads_them_or_it_is_waited_for(rows, monkeypatch):
    pinned = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda each: pinned.append(each) or each)
    monkeypatch.setattr(torch.Tensor, "to", lambda each, device, non_blocking: (each, device, non_blocking))
    given, *told = on_device(rows, torch.device("cuda"))
    assert told == [torch.device("cuda"), True]
    assert given is pinned[0]
    assert given.is_contiguous()
    assert given.equal(rows)


@pytest.mark.parametrize("device", [CUDA])
def test_rows_of_any_strides_are_the_same_on_a_gpu(device):
    for rows in (torch.arange(12).view(3, 4)[:, 1:], torch.arange(3).expand(2, 3)):
        assert on_device(rows, torch.device(device)).cpu().equal(rows)
