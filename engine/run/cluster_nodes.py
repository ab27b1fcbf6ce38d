"""Nodes of a cluster, each checked before it runs a trial."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import ray
import ray.exceptions
import torch
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ... import __version__
from ...errors import ActivememError
from ...plugins import loaded_files
from ...storage import Store
from ...storage.files import temporary_name
from ...studies.schema.settings import TrialSettings
from ..core.events import ClusterNode, Listener
from ..core.resources import Machine
from .gpu_share import Accelerators, share
from .ray_connection import look_at_code

ANSWER_S = 300.0
"""The time limit for a node's report; the node may have to read its corpora first."""

LOOK_S = 2.0
"""The interval of the checks for new nodes, in seconds."""

_SEES_GPUS = {"env_vars": {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}}
"""Older versions of Ray hide a node's GPUs from tasks that request none, unless this is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePlace:
    """The folder or address of the store, and the path of its marker file.

    Only a store folder used by a cluster has a marker; nodes look for it to verify that they share the
    folder.
    """

    root: str
    marker: str | None = None


class NodeError(ActivememError):
    """Nodes of a cluster that cannot train the study; the message names each with its reason."""


_Answer = dict[str, Any]
"""A node's report: its versions, its problem ("" without one), and the free bytes of its fullest GPU."""


def inspect_nodes(
    place: StorePlace, machine: Machine, settings: Sequence[TrialSettings]
) -> list[ClusterNode]:
    """Check every node of the connected cluster that has resources for a trial.

    A task on each node makes these checks:

    - The node has the same versions of activemem and torch.
    - It loads the plug-ins.
    - It sees the store's marker, or reaches the store's address.
    - It has the corpora.
    """
    machine = with_device(machine)
    inspector, nodes = _Inspector(place, machine, settings), _find_nodes(machine)
    answers = [inspector.ask(node) for node in nodes]
    return [_describe(node, answer) for node, answer in zip(nodes, answers, strict=True)]


def with_device(machine: Machine) -> Machine:
    """Resolve "auto" GPUs: use GPUs if any node has one.

    All trials of a study then run on nodes with GPUs.
    """
    if machine.gpus != "auto":
        return machine
    nodes = _find_nodes(replace(machine, gpus=0.0))
    return replace(machine, gpus=1.0 if any(_gpus(node) >= 1 for node in nodes) else 0.0)


class FitNodes:
    """The nodes on which trials may run: those that passed the check, including nodes that join later.

    `machine` is the requested one with its share of a GPU, which depends on the nodes and on how many trials
    can train `at_once`. Raise NodeError as `check_nodes` does. A node that joins and cannot train is reported
    once and left out.
    """

    def __init__(
        self,
        place: StorePlace,
        machine: Machine,
        settings: Sequence[TrialSettings],
        listener: Listener,
        at_once: int | None = None,
    ) -> None:
        automatic, machine = machine.gpus == "auto", with_device(machine)
        self.machine, self._listener, self._settings = machine, listener, settings
        self._inspector = _Inspector(place, machine, settings)
        nodes = inspect_nodes(place, machine, settings)
        listener.on_nodes(nodes)
        if not nodes:
            raise NodeError(_lacking_room(machine))
        unfit = check_nodes(nodes, skip=machine.skip_unfit_nodes)
        self._known = self._alive = {node.id for node in nodes}
        self._fit = self._known - set(unfit)
        fit = [node for node in nodes if node.id in self._fit]
        least = min(each.gpu_bytes for each in fit)
        if automatic and machine.gpus:
            brought = [
                Accelerators(count=each.gpus, device_bytes=each.gpu_bytes, cpus=each.cpus) for each in fit
            ]
            self.machine = replace(machine, gpus=share(machine, brought, settings, at_once))
        if self.machine.gpus != "auto" and 0 < self.machine.gpus < 1:  # else a worker has all of its GPU
            self.machine = replace(self.machine, gpu_bytes=least)
        self._pending: list[tuple[dict[str, Any], ray.ObjectRef[_Answer]]] = []
        self._looked_at = time.monotonic()

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of the fit nodes that are alive."""
        return tuple(sorted(self._fit & self._alive or self._fit))

    def have_left(self, ids: Collection[str]) -> bool:
        """Return whether all these nodes are gone while another fit node is alive."""
        return self._alive.isdisjoint(ids) and not self._alive.isdisjoint(self._fit)

    def look(self) -> None:
        """Check at intervals which nodes have joined or left, and inspect new ones."""
        if time.monotonic() - self._looked_at < LOOK_S:
            return
        self._looked_at, nodes = time.monotonic(), _find_nodes(self.machine)
        self._alive = {node["NodeID"] for node in nodes}
        joined = [node for node in nodes if node["NodeID"] not in self._known]
        self._known = self._known | {node["NodeID"] for node in joined}
        self._pending += [(node, self._inspector.ask(node)) for node in joined]
        waiting = self._pending
        self._pending = []
        for node, answer in waiting:
            if ray.wait([answer], timeout=0)[0]:
                self._take(_describe(node, answer))
            else:
                self._pending.append((node, answer))

    def _take(self, node: ClusterNode) -> None:
        self._fit = self._fit if node.problem else self._fit | {node.id}
        self._listener.on_nodes([node])


def check_nodes(nodes: Sequence[ClusterNode], *, skip: bool) -> list[str]:
    """Return the ids of unfit nodes to skip.

    Raise NodeError if there are any and `skip` is False, or if no fit node is left.
    """
    unfit = [node for node in nodes if node.problem]
    if unfit and (not skip or len(unfit) == len(nodes)):
        what = (
            "no node of the cluster can train" if len(unfit) == len(nodes) else "expected every node to fit"
        )
        hint = "" if len(unfit) == len(nodes) else "\nskip them with --skip-unfit-nodes"
        raise NodeError("\n".join([what, *(f"  {node.host}: {node.problem}" for node in unfit)]) + hint)
    return [node.id for node in unfit]


class _Inspector:
    def __init__(self, place: StorePlace, machine: Machine, settings: Sequence[TrialSettings]) -> None:
        self._question: dict[str, Any] = {
            "gpu": bool(machine.gpus),
            "versions": {"activemem": __version__, "torch": torch.__version__},
            "code": look_at_code(),
            "plugins": pickle.dumps(loaded_files()),  # which a node without activemem cannot read
            "settings": pickle.dumps(list(settings)),
            "data": str(machine.data),
            "marker": place.marker,
            "store": place.root,
        }
        self._look = ray.remote(_make_look())

    def ask(self, node: dict[str, Any]) -> ray.ObjectRef[_Answer]:
        """Start the check of a node; return the reference of its report."""
        return self._look.options(
            num_cpus=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
            max_retries=0,
            runtime_env=_SEES_GPUS if self._question["gpu"] else None,
        ).remote(self._question)


def _find_nodes(machine: Machine) -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"] and _has_room(node["Resources"], machine)]


def _has_room(resources: dict[str, float], machine: Machine) -> bool:
    gpus = 0.0 if machine.gpus == "auto" else machine.gpus
    return resources.get("CPU", 0.0) >= machine.cpus and resources.get("GPU", 0.0) >= gpus


def _gpus(node: dict[str, Any]) -> float:
    return node["Resources"].get("GPU", 0.0)


def _lacking_room(machine: Machine) -> str:
    gpus = 0.0 if machine.gpus == "auto" else machine.gpus
    found = [node for node in ray.nodes() if node["Alive"]]
    counts = [(min(_gpus(node), gpus), node["Resources"].get("CPU", 0.0), _gpus(node)) for node in found]
    _, cpus, most = max(counts, default=(0.0, 0.0, 0.0))
    expected = f"expected {_describe_room(machine.cpus, gpus)} on one node for each trial"
    got = f"got {_describe_room(cpus, most)} on the largest"
    message = f"no node of the cluster has room for a trial: {expected}, {got}"
    return f"{message}; gpus = 0 trains on CPUs" if gpus and not most else message


def _describe_room(cpus: float, gpus: float) -> str:
    counts = ((cpus, "CPU"), (gpus, "GPU"))
    return " and ".join(f"{count:g} {what}{'' if count == 1 else 's'}" for count, what in counts)


@contextmanager
def marked(store: Store) -> Iterator[str]:
    """Yield the path of a marker file that exists in the store within the context."""
    folder = store.root.resolve() / "unfinished"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / temporary_name("seen")
    path.touch()
    try:
        yield str(path)
    finally:
        path.unlink(missing_ok=True)


def _describe(node: dict[str, Any], answer: ray.ObjectRef[_Answer]) -> ClusterNode:
    host = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
    found: _Answer = {"gpu_bytes": 0, "versions": {}, "problem": ""}
    try:
        found = ray.get(answer, timeout=ANSWER_S)
    except ray.exceptions.GetTimeoutError:
        found["problem"] = f"no answer within {ANSWER_S:g} s"
    except ray.exceptions.RayError as error:
        found["problem"] = str(error).strip().splitlines()[-1]
    resources = node["Resources"]
    return ClusterNode(
        id=node["NodeID"],
        host=host,
        cpus=resources.get("CPU", 0.0),
        gpus=resources.get("GPU", 0.0),
        **found,
    )


def _make_look() -> Callable[[dict[str, Any]], _Answer]:
    """Return the task that checks a node.

    An inner function is pickled by value, even for nodes without activemem.
    """

    def look(asked: dict[str, Any]) -> _Answer:
        import pickle  # noqa: PLC0415 -- all of these are those of the node
        from pathlib import Path  # noqa: PLC0415

        found: _Answer = {"gpu_bytes": 0, "versions": {}, "problem": ""}
        try:
            import torch  # noqa: PLC0415

            from ... import __version__  # noqa: PLC0415

            found["versions"] = {"activemem": __version__, "torch": torch.__version__}
            if found["versions"] != asked["versions"]:
                has = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
                wanted = ", ".join(f"{name} {version}" for name, version in asked["versions"].items())
                found["problem"] = f"expected {wanted}, got {has}"
                return found
            from .ray_connection import code_fault, look_at_code  # noqa: PLC0415

            if (fault := code_fault(asked["code"], look_at_code())) is not None:
                found["problem"] = fault
                return found
            from ..core.gpus import gpu_fault  # noqa: PLC0415
            from .gpu_share import free_bytes  # noqa: PLC0415

            found["gpu_bytes"] = free_bytes() if asked["gpu"] else 0
            if asked["gpu"] and not found["gpu_bytes"]:
                fails = f", because CUDA fails: {fault}" if (fault := gpu_fault()) is not None else ""
                found["problem"] = f"expected the GPU that Ray reports, but torch finds none there{fails}"
                return found
            from ...plugins import load_plugin_files  # noqa: PLC0415
            from ...studies.resolve.trial import code_fault as plugin_fault  # noqa: PLC0415
            from .preflight import prepare_corpora  # noqa: PLC0415

            if asked["marker"] is None:
                from ...storage import Store  # noqa: PLC0415

                Store(asked["store"]).records.latest()
            elif not Path(asked["marker"]).exists():
                found["problem"] = (
                    f"expected to see the results in {asked['store']}, which this node cannot see: "
                    "use a folder that all nodes share, or a bucket"
                )
                return found
            load_plugin_files(pickle.loads(asked["plugins"]))
            settings = pickle.loads(asked["settings"])
            faults = [fault for each in settings if (fault := plugin_fault(each)) is not None]
            if faults:
                found["problem"] = faults[0]
                return found
            prepare_corpora(settings, Path(asked["data"]))
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is this node's
            found["problem"] = f"{type(error).__name__}: {error}"
        return found

    return look
