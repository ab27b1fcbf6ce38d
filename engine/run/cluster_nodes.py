"""The nodes of a cluster before the first trial: each proves that it can train what is asked for."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from secrets import token_hex
from typing import Any, TypedDict

import ray
import ray.exceptions
import torch
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ... import __version__
from ...errors import ActivememError
from ...plugins import loaded_files
from ...storage import Store
from ...storage.paths import Layout
from ...studies.schema.settings import TrialSettings
from ..core.events import ClusterNode
from ..core.resources import Machine
from .remote_store import StorePlace

ANSWER_S = 300.0
"""So long a node may take to answer, in which it may have to read its corpora for the first time."""


class NodeError(ActivememError):
    """Nodes of a cluster that cannot train what is asked for; the message has all, with their reasons."""


class _Question(TypedDict):
    """What a node is asked: for these versions, the pickled plug-ins and settings, the corpora and a file."""

    versions: dict[str, str]
    plugins: bytes
    settings: bytes
    data: str
    marker: str | None
    store: str


class _Answer(TypedDict):
    """What a node says of itself; its problem is empty if there is none."""

    sees_store: bool
    versions: dict[str, str]
    problem: str


def inspect_nodes(
    place: StorePlace, machine: Machine, settings: Sequence[TrialSettings]
) -> list[ClusterNode]:
    """Every node of the connected cluster that could train a trial, with what is wrong with it.

    A task on each finds out whether it has the same versions of activemem and torch, can load the plug-ins,
    sees the store, known by its marker or reached by its address, and has the corpora.
    """
    nodes = [node for node in ray.nodes() if node["Alive"] and _has_room(node["Resources"], machine)]
    asked: _Question = {
        "versions": {"activemem": __version__, "torch": torch.__version__},
        "plugins": pickle.dumps(loaded_files()),
        "settings": pickle.dumps(list(settings)),
        "data": str(machine.data),
        "marker": place.marker,
        "store": place.root,
    }
    look = ray.remote(_make_look())
    answers = {
        node["NodeID"]: look.options(
            num_cpus=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
            max_retries=0,
        ).remote(asked)
        for node in nodes
    }
    return [_describe(node, answers[node["NodeID"]]) for node in nodes]


def check_nodes(nodes: Sequence[ClusterNode], *, skip: bool) -> list[str]:
    """The ids of the nodes that are left out since something is wrong with them.

    Raises NodeError if there are any and they must not be skipped, or if no node is left.
    """
    unfit = [node for node in nodes if node.problem]
    if unfit and (not skip or len(unfit) == len(nodes)):
        what = (
            "no node of the cluster can train" if len(unfit) == len(nodes) else "expected every node to fit"
        )
        hint = "" if len(unfit) == len(nodes) else "\nleave them out with --skip-unfit-nodes"
        raise NodeError("\n".join([what, *(f"  {node.host}: {node.problem}" for node in unfit)]) + hint)
    if not nodes:
        raise NodeError("no node of the cluster has the CPUs and GPUs of a trial")
    return [node.id for node in unfit]


def _has_room(resources: dict[str, float], machine: Machine) -> bool:
    return resources.get("CPU", 0.0) >= machine.cpus and resources.get("GPU", 0.0) >= machine.gpus


@contextmanager
def marked(store: Store) -> Iterator[str]:
    """The path of a file that is in the store meanwhile, by which it is known."""
    layout = Layout(store.root)
    layout.unfinished.mkdir(parents=True, exist_ok=True)
    path = layout.unfinished.resolve() / f".seen.{token_hex(8)}"
    path.touch()
    try:
        yield str(path)
    finally:
        path.unlink(missing_ok=True)


def _describe(node: dict[str, Any], answer: ray.ObjectRef[_Answer]) -> ClusterNode:
    """A node with its answer; one that does not answer is described as such."""
    host = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
    found: _Answer = {"sees_store": False, "versions": {}, "problem": ""}
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


def _make_look() -> Callable[[_Question], _Answer]:
    """The task of a node; a function within one travels as it is, to nodes that have no activemem either."""

    def look(asked: _Question) -> _Answer:
        import pickle  # noqa: PLC0415 -- all of these are those of the node
        from pathlib import Path  # noqa: PLC0415

        seen = asked["marker"] is None or Path(asked["marker"]).exists()
        found: _Answer = {"sees_store": seen, "versions": {}, "problem": ""}
        try:
            import torch  # noqa: PLC0415

            from ... import __version__  # noqa: PLC0415

            found["versions"] = {"activemem": __version__, "torch": torch.__version__}
            if found["versions"] != asked["versions"]:
                has = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
                wanted = ", ".join(f"{name} {version}" for name, version in asked["versions"].items())
                found["problem"] = f"expected {wanted}, got {has}"
                return found
            from ...plugins import load_plugin_files  # noqa: PLC0415
            from .preflight import prepare_corpora  # noqa: PLC0415

            if asked["marker"] is None:
                from ...storage import Store  # noqa: PLC0415

                Store(asked["store"]).last_study()
            load_plugin_files(pickle.loads(asked["plugins"]))
            prepare_corpora(pickle.loads(asked["settings"]), Path(asked["data"]))
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is this node's
            found["problem"] = f"{type(error).__name__}: {error}"
        return found

    return look
