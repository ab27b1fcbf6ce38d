"""A precision applies to all operations, is recorded, and is never changed silently."""

import json

import pytest
import torch
from torch.nn import functional

from activemem import load_study, run_study
from activemem.engine import Machine, PrecisionError
from activemem.engine.core.models import check_precision, float32_products
from activemem.engine.run.preflight import check_device
from activemem.engine.trial import training
from activemem.engine.trial.training import Training
from activemem.storage import Store
from activemem.studies.resolve.trial import settings_to_json

CPU = torch.device("cpu")
NO_GPU = "precision 'tf32' needs a GPU that supports it, such as NVIDIA's since Ampere, got no GPU"
CHOSEN = {"float32": "ieee", "tf32": "tf32", "bf16": "ieee"}


def precisions():
    """Return torch's precision of float32 products, by operation."""
    of_matrices, cudnn, mkldnn = torch.backends.cuda.matmul, torch.backends.cudnn, torch.backends.mkldnn
    operations = (of_matrices, cudnn.conv, cudnn.rnn, mkldnn.matmul, mkldnn.conv, mkldnn.rnn)
    return [operation.fp32_precision for operation in operations]


@pytest.fixture
def choose():
    """Return a function that sets this process's precision through torch's older API during a test."""
    yield torch.set_float32_matmul_precision
    torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("chosen", ["highest", "high", "medium"])
@pytest.mark.parametrize(("precision", "expected"), CHOSEN.items())
def test_all_operations_have_one_precision_and_then_that_of_the_process(choose, chosen, precision, expected):
    choose(chosen)
    before = precisions()
    with pytest.raises(KeyError), float32_products(precision):
        assert set(precisions()) == {expected}
        raise KeyError
    assert precisions() == before


@pytest.mark.parametrize(("precision", "expected"), CHOSEN.items())
def test_a_training_has_its_precision_forward_backward_and_in_evaluation(
    settings, monkeypatch, precision, expected
):
    monkeypatch.setattr(training, "check_precision", lambda *_: None)
    before, seen = precisions(), set()
    trained = Training.begin(settings(precision=precision), CPU)
    model = trained.model
    model.register_forward_hook(lambda *_: seen.add((model.training, "forward", *precisions())))
    next(model.parameters()).register_hook(lambda _: seen.add((model.training, "backward", *precisions())))
    trained.advance()
    assert seen == {
        (learns, way, *[expected] * 6)
        for learns, way in [(True, "forward"), (True, "backward"), (False, "forward")]
    }
    assert precisions() == before


@pytest.mark.usefixtures("bf16_at_any_size")
def test_two_precisions_take_turns_without_disturbing_each_other(settings):
    def losses(*trainings):
        turns = [[each.advance()["loss"] for each in trainings] for _ in range(4)]
        return list(zip(*turns, strict=True))

    float32, bf16 = (settings(precision=precision) for precision in ("float32", "bf16"))
    alone = [losses(Training.begin(each, CPU))[0] for each in (float32, bf16)]
    assert losses(Training.begin(float32, CPU), Training.begin(bf16, CPU)) == alone
    assert alone[0] != alone[1]


def test_steps_that_are_too_small_for_bf16_are_float32_to_the_last_bit(settings):
    def losses(precision, length):
        train = {
            "precision": precision,
            "batch_size": 32,
            "steps_per_epoch": 1,
            "curriculum": {"start": length},
        }
        training = Training.begin(settings("sa(heads=2) + conv(k=3) >> ff(16)", **train), CPU)
        return [training.advance()["loss"] for _ in range(2)]

    last_short, first_long = 319, 320  # of 32 sequences at width 16
    assert losses("bf16", last_short) == losses("float32", last_short)
    assert losses("bf16", first_long) != losses("float32", first_long)


def test_the_parts_of_an_accumulated_batch_decide_about_bf16(settings):
    def loss(precision, parts):
        train = {"precision": precision, "batch_size": 32, "steps_per_epoch": 1, "curriculum": {"start": 320}}
        return Training.begin(settings(accumulate=parts, **train), CPU).advance()["loss"]

    assert loss("bf16", 2) == loss("float32", 2)
    assert loss("bf16", 1) != loss("float32", 1)


def test_a_trial_learns_the_same_whatever_its_process_has_chosen(settings, choose):
    def loss(chosen):
        choose(chosen)
        return Training.begin(settings(recipe="gru >> conv(k=3) >> ff(16)"), CPU).advance()["loss"]

    assert loss("highest") == loss("medium")


def test_a_precision_that_the_device_lacks_is_refused(settings, monkeypatch):
    for precision in ("float32", "bf16"):
        check_precision(precision, CPU)
    with pytest.raises(PrecisionError) as error:
        Training.begin(settings(precision="tf32"), CPU)
    assert str(error.value) == NO_GPU
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    with pytest.raises(PrecisionError) as error:
        check_precision("tf32", torch.device("cuda"))
    assert str(error.value) == (
        "precision 'tf32' is switched off by NVIDIA_TF32_OVERRIDE=0 in the environment"
    )


def test_a_gpu_without_the_precision_is_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Tesla V100")
    gpu, here = torch.device("cuda"), []
    monkeypatch.setattr(torch.cuda, "is_tf32_supported", lambda: bool(here))
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or bool(here)
    )
    for precision in ("tf32", "bf16"):
        with pytest.raises(PrecisionError, match=rf"^precision '{precision}' needs .* got Tesla V100$"):
            check_precision(precision, gpu)
    here.append("it")
    for precision in CHOSEN:
        check_precision(precision, gpu)


def test_a_study_is_refused_before_anything_is_trained(tiny, tmp_path, settings, notes):
    study = load_study(tiny, ["train.precision=tf32"])
    store = Store(tmp_path / "results")
    with pytest.raises(PrecisionError) as error:
        run_study(study, store, Machine(gpus=0.0), notes, local=True)
    assert str(error.value) == NO_GPU
    assert store.records.latest() is None
    check_device([settings(precision="tf32")], Machine(address="elsewhere:6379"))


def test_the_row_has_the_precision(settings):
    assert json.loads(settings_to_json(settings(precision="bf16")))["train"]["precision"] == "bf16"
    assert json.loads(settings_to_json(settings()))["train"]["precision"] == "float32"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_float32_is_float32_in_every_operation_of_a_gpu():
    generator = torch.Generator().manual_seed(0)
    x, weights = (torch.randn(*shape, generator=generator).cuda() for shape in ((8, 256, 64), (256, 256, 3)))
    lstm = torch.nn.LSTM(64, 256).cuda()
    operations = (
        lambda dtype: x.to(dtype).mT @ weights[..., 0].to(dtype),
        lambda dtype: functional.conv1d(x.to(dtype), weights.to(dtype)),
        lambda dtype: lstm.to(dtype)(x.to(dtype))[0],
    )
    with float32_products("float32"):
        for operation in operations:
            exact = operation(torch.float64)
            assert (operation(torch.float32) - exact).norm() < 1e-5 * exact.norm()
