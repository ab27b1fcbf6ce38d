"""Unfit nodes of a cluster, and nodes without access to the store, are reported."""

import os
import pickle
import subprocess
import sys

import pytest
import ray
import torch

from activemem.engine import Machine
from activemem.engine.core.events import NOBODY, ClusterNode
from activemem.engine.core.resources import ONE_CPU
from activemem.engine.run import cluster_nodes
from activemem.engine.run.cluster_nodes import NodeError, StorePlace, check_node, fit_to_cluster
from activemem.engine.run.ray_connection import look_at_code
from activemem.storage import Store

from .ray_nodes import ENVIRONMENT, can_mount, head, other_version, worker


def node(host, problem=""):
    return ClusterNode(host=host, cpus=1, gpus=0, problem=problem)


def test_nodes_that_cannot_train_end_the_run_before_it_begins(monkeypatch, tmp_path, golden):
    nodes = [node("a"), node("b", "no corpus"), node("c", "no torch")]
    monkeypatch.setattr(cluster_nodes, "inspect_nodes", lambda *_: nodes)
    with golden.raises(NodeError):
        fit_to_cluster(StorePlace(root=str(tmp_path)), Machine(gpus=0.0), [], NOBODY)


class _Check:
    """A task of Ray that checks a node; it fails on node 2."""

    def options(self, *, scheduling_strategy, **_options):
        self.node = scheduling_strategy.node_id
        return self

    def remote(self, *_given):
        return self.node


@pytest.mark.parametrize("dies", [True, False])
def test_only_a_node_that_is_still_there_counts_as_unfit(monkeypatch, tmp_path, dies):
    keys = {"NodeManagerHostname": "a", "NodeManagerAddress": "10.0.0.1", "Resources": {"CPU": 1.0}}
    nodes = [{"NodeID": f"{number:056}", "Alive": True, **keys} for number in (1, 2)]

    def answer(node, **_options):
        if node == nodes[1]["NodeID"]:
            nodes[1] = nodes[1] | {"Alive": not dies}
            raise ray.exceptions.TaskUnschedulableError("the node does not exist any more")
        return ""

    monkeypatch.setattr(ray, "nodes", lambda: list(nodes))
    monkeypatch.setattr(ray, "remote", lambda _task: _Check())
    monkeypatch.setattr(ray, "get", answer)
    found = cluster_nodes.inspect_nodes(StorePlace(root=str(tmp_path)), Machine(gpus=0.0), [])
    assert [bool(each.problem) for each in found] == ([False] if dies else [False, True])


FOUR_GPUS = {"CPU": 1.0, "GPU": 4.0}


@pytest.mark.parametrize(
    ("asked", "nodes"),
    [
        ({"gpus": 1.0}, [{"CPU": 2.0}]),
        ({"gpus": 0.0, "cpus": 4.0}, [{"CPU": 2.0}, FOUR_GPUS]),
        ({"gpus": 1.0, "cpus": 2.0}, [FOUR_GPUS]),
    ],
    ids=["no GPU", "CPUs", "both"],
)
def test_requests_that_no_node_can_meet_are_reported_with_a_request_that_fits(
    monkeypatch, tmp_path, asked, nodes, golden
):
    found = [{"Alive": True, "Resources": each} for each in nodes]
    monkeypatch.setattr(ray, "nodes", lambda: found)
    with golden.raises(NodeError):
        fit_to_cluster(StorePlace(root=str(tmp_path)), Machine(**asked), [], NOBODY)


def look(place, machine=ONE_CPU, *, code=None, torch_version=torch.__version__, settings=None):
    """Return the problem that this process reports as a node."""
    settings = pickle.dumps([]) if settings is None else settings
    return check_node((code or look_at_code(), torch_version), place, machine, (), settings)


def test_a_node_reports_its_versions_its_access_to_the_store_and_problems(tmp_path, monkeypatch, golden):
    with cluster_nodes.located(Store(tmp_path), Machine(address="10.0.0.1:6379")) as place:
        assert look(place) == ""
    golden(look(StorePlace(root="/home/me/results", marker=place.marker)))
    assert look(place) == look(StorePlace(root=str(tmp_path), marker="another"))
    place = StorePlace(root=str(tmp_path))
    assert look(place, torch_version="1.0").endswith(f" 1.0, got {torch.__version__}")
    edited = {**look_at_code(), "digest": "0" * 16}
    assert f" (files 00000000), in {edited['folder']}; got activemem " in look(place, code=edited)
    if not torch.cuda.is_available():
        assert "torch finds none" in look(place, Machine(gpus=1.0))
        monkeypatch.setattr(cluster_nodes, "gpu_fault", lambda: "Error 805")
        golden(look(place, Machine(gpus=1.0)))
    assert look(place, settings=b"") == "EOFError: Ran out of input"


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore:Tip. In future versions of Ray")  # 2.50 says it of what is chosen here,
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # and leaves files open
def test_a_node_that_is_asked_sees_its_gpus_whatever_ray_hides_from_who_asks_for_none(monkeypatch):
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")  # as it is in Ray 2.50
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    ray.init(address="local", num_cpus=1, num_gpus=1, include_dashboard=False, log_to_driver=False)
    try:
        monkeypatch.setattr(cluster_nodes, "check_node", lambda *_: os.environ["CUDA_VISIBLE_DEVICES"])
        place = StorePlace(root="/nowhere")
        seen = [
            each.problem
            for gpus in (1.0, 0.0)
            for each in cluster_nodes.inspect_nodes(place, Machine(gpus=gpus), [])
        ]
    finally:
        ray.shutdown()
    assert seen == ["0", ""]


@pytest.mark.slow  # four programs with Ray
@pytest.mark.skipif(not can_mount(), reason="needs mounts of its own")
def test_nodes_without_the_store_or_of_another_version_are_named(tmp_path, tiny):
    work, packages = tmp_path / "work", tmp_path / "packages"
    for folder in (work, packages):
        folder.mkdir()
    (work / "tiny.toml").write_text(tiny, encoding="utf-8")
    with (
        other_version(packages) as path,
        head() as address,
        worker(address, 2, without=work),
        worker(address, 3, path=path),
    ):
        command = [sys.executable, "-m", "activemem", "study", "run", "tiny.toml", "--address", address]
        run = {"cwd": work, "env": ENVIRONMENT, "capture_output": True, "text": True, "check": False}
        refused = subprocess.run(command, **run)
    assert refused.returncode == 2
    assert "(127.0.0.3): expected activemem " in refused.stderr
    assert "(127.0.0.2): this node cannot " in refused.stderr
    assert not any((work / "results" / "unfinished").glob("*"))
