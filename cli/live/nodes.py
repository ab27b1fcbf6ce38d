"""The nodes of a cluster as a run begins: what each brings, and which are left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...engine.core.events import ClusterNode


def format_nodes(nodes: Sequence[ClusterNode]) -> Iterator[str]:
    """Yield a heading and a line for each node."""
    width = max(4, *(len(node.host) for node in nodes)) if nodes else 4
    yield f"{'node':<{width}}   CPUs   GPUs"
    for node in nodes:
        line = f"{node.host:<{width}}   {node.cpus:>4g}   {node.gpus:>4g}"
        yield f"{line}   left out: {node.problem}" if node.problem else line
