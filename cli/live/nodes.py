"""The nodes of a cluster as a run begins: what each brings, and where it puts its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...engine.core.events import ClusterNode


def format_nodes(nodes: Sequence[ClusterNode]) -> Iterator[str]:
    """A line for each node, below a heading."""
    width = max(4, *(len(node.host) for node in nodes)) if nodes else 4
    yield f"{'node':<{width}}   CPUs   GPUs   results"
    for node in nodes:
        where = f"left out: {node.problem}" if node.problem else _describe_store(node)
        yield f"{node.host:<{width}}   {node.cpus:>4g}   {node.gpus:>4g}   {where}"


def _describe_store(node: ClusterNode) -> str:
    return "to the store itself" if node.sees_store else "through the driver"
