"""Checks of the nodes of a cluster before a run begins.

The node with the fewest resources decides each trial's share of a GPU.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import ray
import ray.exceptions
import torch
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ...errors import ActivememError
from ...plugins import PluginFile, load_plugin_files, loaded_files
from ...storage import Store
from ...storage.place import has_marker, keeping_marker
from ...studies.resolve.trial import code_fault as plugin_fault
from ...studies.schema.settings import TrialSettings
from ..core.events import ClusterNode, Event, Listener
from ..core.resources import Machine, gpu_fault, has_gpu
from .preflight import prepare_corpora
from .ray_connection import Code, code_fault, look_at_code

ANSWER_S = 300.0
"""The time limit for a node's report; the node may have to read its corpora first."""


_SEES_GPUS = {"env_vars": {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}}
"""Older versions of Ray hide a node's GPUs from tasks that request none, unless this is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePlace:
    """The location from which workers open a store: a folder or an address.

    A store that a cluster uses has a `marker`: the name of a file that nodes look for, to verify that they
    share the store.
    """

    root: str
    marker: str | None = None

    def open(self) -> Store:
        """Open the store on this node. Raise NodeError if this node does not share it with the driver."""
        store = Store(self.root)
        if self.marker is not None and not has_marker(store.files.place, self.marker):
            raise NodeError(
                f"this node cannot see the results in {self.root}: "
                "use a folder that all nodes share, or a bucket"
            )
        return store


class NodeError(ActivememError):
    """Error for nodes of a cluster that cannot train the study, with the reason of each."""


def fit_to_cluster(
    place: StorePlace, machine: Machine, settings: Sequence[TrialSettings], listener: Listener
) -> Machine:
    """Check the nodes of the cluster, and replace `gpus = "auto"` by a GPU for each trial if a node has one.

    Only nodes with room for a trial are checked. Raise NodeError if a node cannot train, or if none has room.
    A node that joins later is checked by the workers that run on it.
    """
    if machine.gpus == "auto":
        has_gpus = any(_gpus(node) >= 1 for node in _find_nodes(replace(machine, gpus=0.0)))
        machine = replace(machine, gpus=1.0 if has_gpus else 0.0)
    nodes = inspect_nodes(place, machine, settings)
    listener(Event(kind="nodes", nodes=tuple(nodes)))
    if not nodes:
        raise NodeError(_lacking_room(machine))
    if unfit := [f"  {node.host}: {node.problem}" for node in nodes if node.problem]:
        raise NodeError("\n".join(["these nodes of the cluster cannot train the study", *unfit]))
    return machine


def inspect_nodes(
    place: StorePlace, machine: Machine, settings: Sequence[TrialSettings]
) -> list[ClusterNode]:
    """Check, by a Ray task, each node of the connected cluster that has the resources for a trial.

    Nodes that have died by the end of the checks are left out.
    """
    nodes, pickled = _find_nodes(machine), pickle.dumps(list(settings))
    given = (look_at_code(), str(torch.__version__)), place, machine, loaded_files(), pickled
    task = ray.remote(check_node)
    answers = [
        task.options(
            num_cpus=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
            max_retries=0,
            runtime_env=_SEES_GPUS if machine.gpus else None,
        ).remote(*given)
        for node in nodes
    ]
    found = {node["NodeID"]: _describe(node, answer) for node, answer in zip(nodes, answers, strict=True)}
    return [found[node["NodeID"]] for node in _find_nodes(machine) if node["NodeID"] in found]


def check_node(
    driver: tuple[Code, str],
    place: StorePlace,
    machine: Machine,
    plugins: tuple[PluginFile, ...],
    settings: bytes,
) -> str:
    """Check this node; return why it cannot train trials, or "".

    The check runs on the node as a Ray task. The node needs the code and the version of torch of the
    `driver`, the store, the plug-ins and the corpora. The pickled settings may need the plug-ins.
    """
    try:
        code, torch_version = driver
        if (fault := code_fault(code, look_at_code())) is not None:
            raise NodeError(fault)
        if torch.__version__ != torch_version:
            raise NodeError(f"expected torch {torch_version}, got {torch.__version__}")
        if machine.gpus and not has_gpu():
            fails = f", because CUDA fails: {fault}" if (fault := gpu_fault()) is not None else ""
            raise NodeError(f"expected the GPU that Ray reports, but torch finds none{fails}")
        # read something, so that a store that cannot be reached is found here
        place.open().records.latest()
        load_plugin_files(plugins)
        # only now, because the settings may have classes of plug-ins
        trials = pickle.loads(settings)
        if faults := [fault for each in trials if (fault := plugin_fault(each)) is not None]:
            raise NodeError(faults[0])
        prepare_corpora(trials, machine.data)
    except NodeError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 -- any error is this node's problem
        return f"{type(error).__name__}: {error}"
    return ""


def _describe(node: dict[str, Any], answer: ray.ObjectRef[str]) -> ClusterNode:
    try:
        problem = ray.get(answer, timeout=ANSWER_S)
    except ray.exceptions.GetTimeoutError:
        problem = f"no answer within {ANSWER_S:g} s"
    except ray.exceptions.RayError as error:  # for example if the package is missing
        problem = str(error).strip().splitlines()[-1]
    return ClusterNode(
        host=f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})",
        cpus=node["Resources"].get("CPU", 0.0),
        gpus=_gpus(node),
        problem=problem,
    )


def _find_nodes(machine: Machine) -> list[dict[str, Any]]:
    gpus = 0.0 if machine.gpus == "auto" else machine.gpus
    return [
        node
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get("CPU", 0.0) >= machine.cpus and _gpus(node) >= gpus
    ]


def _gpus(node: dict[str, Any]) -> float:
    return node["Resources"].get("GPU", 0.0)


def _lacking_room(machine: Machine) -> str:
    needed = machine.cpus, 0.0 if machine.gpus == "auto" else machine.gpus
    found = [(each["Resources"].get("CPU", 0.0), _gpus(each)) for each in ray.nodes() if each["Alive"]]
    expected, *got = (
        f"cpus = {cpus:g} and gpus = {gpus:g}" for cpus, gpus in dict.fromkeys([needed, *found])
    )
    return (
        f"no node of the cluster has room for a trial: expected {expected} on one node for each trial, "
        f"got {', '.join(got)}"
    )


@contextmanager
def located(store: Store, machine: Machine) -> Iterator[StorePlace]:
    """Yield the location from which workers open a store.

    It is an absolute folder or an address. A store that a cluster uses has a marker file during the context.
    """
    root = store.absolute_place
    if machine.address is None:
        yield StorePlace(root=root)
        return
    with keeping_marker(store.files.place) as marker:
        yield StorePlace(root=root, marker=marker)
