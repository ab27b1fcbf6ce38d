"""`activemem agent-guide`: one page for coding agents."""

from __future__ import annotations

from importlib.resources import files

from .output import print_stdout


def agent_guide() -> None:
    """Print a guide for coding agents: how to plan and run studies."""
    print_stdout(files("activemem.cli").joinpath("agent_guide.md").read_text(encoding="utf-8").rstrip())
