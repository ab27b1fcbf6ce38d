"""What a plan says of trials that cannot take their steps on several GPUs: as a run, which refuses them."""

import json
from functools import partial
from pathlib import Path

import pytest

from activemem.cli import plan_devices
from activemem.cli.machine_settings import load_settings
from activemem.cli.plan_costs import plan_here
from activemem.cli.plan_devices import find_refusal
from activemem.cli.views.plan import format_plan
from activemem.engine.core.gpus import Gpu
from activemem.engine.replicas.faults import ReplicaError, check_replicas
from activemem.studies.planning.memory_estimates import fits
from activemem.studies.study import load_study
from activemem.studies.study_files import find_study_file

from ...study_texts import study_text

GPU_BYTES = 80 * 10**9
ONE = "batch_size: expected at least 2, as accumulate = 1 on 2 devices is as many parts, got 1"
MUON = "optimizer: expected adam, adamw, adagrad, sgd, lion, which move each number by itself, got muon"


@pytest.fixture(name="plan")
def _plan(run, monkeypatch):
    """The plan of a small study as one line, or as data, with several GPUs for each trial."""

    def plan(*arguments, gpus=2, **train):
        monkeypatch.setenv("ACTIVEMEM_GPUS", f"{gpus}")
        text = study_text(
            model={"recipe": "2 * ({mixer} >> ff(32))", "d_model": 16},
            task={"name": "reverse"},
            train=train,
            factors={"mixer": ["sa(heads=2)", "conv(k=3)"], "seed": [0, 1, 2]},
        )
        Path("several.toml").write_text(text, encoding="utf-8")
        result = run("study", "plan", "several.toml", *arguments)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout) if "--json" in arguments else " ".join(result.stdout.split())

    return plan


def test_a_plan_refuses_what_a_run_would_and_says_whether_one_gpu_is_enough(plan):
    told = plan("--device-memory", "80GB", batch_size=1)
    assert f"; on 2 GPUs each 6 of 6 trials are refused ({ONE}); with gpus = 1 a step fits into" in told
    assert "a step holds 6" not in told and "on each of 2" not in told
    device = plan("--device-memory", "80GB", "--json", batch_size=1)["device"]
    assert device["refused"] == {"trials": 6, "of": 6, "reasons": [ONE]}
    assert "refused" not in plan("--device-memory", "80GB", batch_size=8)
    assert plan("--device-memory", "80GB", "--json", batch_size=7)["device"]["refused"] is None
    assert "refused" not in plan("--device-memory", "80GB", gpus=1, batch_size=1)


def test_weights_that_cannot_be_sharded_are_refused_where_they_must_be(plan):
    muon = {"optimizer": {"name": "muon", "lr": 0.1}, "batch_size": 8}
    assert "refused" not in plan("--device-memory", "80GB", **muon)
    told = plan("--device-memory", "600MB", **muon)
    assert f"6 of 6 trials are refused ({MUON}, where not all weights fit on each" in told
    assert told.count("with gpus = 1 a step does not fit into 600.0 MB") == 1


@pytest.mark.parametrize("address", [None, "elsewhere:1"])
def test_trials_that_are_refused_train_nowhere(plan, monkeypatch, address):
    gpu = Gpu(name="NVIDIA H100", bytes=GPU_BYTES, free=GPU_BYTES)
    monkeypatch.setattr(plan_devices, "gpu_here", lambda: (gpu, 2))
    if address is not None:
        monkeypatch.setenv("ACTIVEMEM_ADDRESS", address)
    assert f"where nowhere: on 2 GPUs each 6 of 6 trials are refused ({ONE})" in plan(batch_size=1)


def test_trials_that_are_not_asked_for_are_not_looked_at(plan):
    assert "on 2 GPUs each 2 of 2 trials are refused" in plan(
        "--only", "seed=1", "--device-memory=8GB", batch_size=1
    )


@pytest.mark.heavy
@pytest.mark.parametrize(
    "path", sorted(find_study_file("algorithmic").parent.glob("*.toml")), ids=lambda path: path.stem
)
def test_every_study_is_accepted_on_eight_gpus_of_80_gb_or_refused_as_by_a_run_and_fits_on_one(
    path, monkeypatch
):
    monkeypatch.setenv("ACTIVEMEM_GPUS", "8")
    study, settings = load_study(path.stem), load_settings()
    seed = study.seeds[0]
    only = (
        {trial.id for trial in study.trials if trial.settings.seed == seed} if study.search is None else None
    )
    plan = plan_here(study, settings, only, for_gpu=True)
    refuse = partial(find_refusal, study, plan, settings)
    told = " ".join(
        format_plan(study, plan, settings.values, device_bytes=GPU_BYTES, find_refusal=refuse).split()
    )
    trials = [each.trial for each in plan.trials] or study.boundary_trials()
    assert plan.memory is not None
    held = plan.memory[1]
    try:
        check_replicas([trial.settings for trial in trials], 8, GPU_BYTES)
    except ReplicaError as error:
        assert (
            f"on 8 GPUs each {len(trials)} of {len(trials)} trials are refused ({'; '.join(error.reasons)})"
            in told
        )
        assert "; with gpus = 1 a step fits into 80.0 GB" in told
        assert held.parts_on_each(1, GPU_BYTES) is not None
    else:
        assert "refused" not in told
        assert "which fits" in told
        assert held.parts_on_each(8, GPU_BYTES) is not None or fits(held.sharded(8), GPU_BYTES)
