"""The tools of agents by the Model Context Protocol: all that reads, and with a budget what trains."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...errors import ActivememError
from ..machine_settings import ResolvedSettings
from .tools import AgentTools, Page
from .training import TrainingBudget

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

RUN_S = 60.0
"""So long a run trains where a call does not say it: clients give up calls that take longer."""

INSTRUCTIONS = """\
activemem trains and compares sequence models. A recipe is one line of text, "4 * (sa >> ff(512))"; a study
is a file with a task, a recipe with holes, and factors or a search. Check ideas with idea_check before you
train them: it says whether an idea is known, what it costs, and how large a difference must be to be more
than noise. Results come from trainings alone, and a difference below the noise floor is none."""


def make_server(settings: ResolvedSettings, budget_s: float | None = None) -> MCPServer[Any]:
    """A server of the tools; those that hand in points and train are there with a budget alone."""
    from mcp.server.mcpserver import MCPServer
    from mcp_types import ToolAnnotations

    server: MCPServer[Any] = MCPServer(
        "activemem", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    tools = AgentTools(settings)
    read_only = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for tool in (
        tools.recipe_check,
        tools.recipe_nearest,
        tools.study_list,
        tools.study_show,
        tools.study_plan,
        tools.study_status,
        tools.study_results,
        tools.search_propose,
        tools.idea_check,
    ):
        server.tool(annotations=read_only)(_told(tool))
    if budget_s is not None:
        server.tool()(_told(tools.search_tell))
        server.tool()(_run_tool(tools, settings.store.place, TrainingBudget(budget_s)))
    return server


def _told(tool: Callable[..., Page]) -> Callable[..., Page]:
    """The tool; what its caller got wrong is told, not withheld as a fault of the program is."""
    from mcp.server.mcpserver.exceptions import ToolError

    @functools.wraps(tool)
    def call(*arguments: Any, **named: Any) -> Page:  # noqa: ANN401 -- as the tool has them
        try:
            return tool(*arguments, **named)
        except (ActivememError, OSError) as error:
            raise ToolError(str(error)) from error

    return call


def _run_tool(tools: AgentTools, place: str, budget: TrainingBudget) -> Callable[..., Any]:
    """The tool that trains."""
    from mcp.server.mcpserver.exceptions import ToolError

    async def study_run(study: str, seconds: float = RUN_S, max_trials: int | None = None) -> Page:
        """Train what a study lacks, points that were handed in first, for at most so many seconds.

        What is unfinished then goes on in the next call. The seconds are of the budget that the server was
        started with; the answer says how many are left, and how the study stands.
        """
        arguments = ["study", "run", study, "--local", "--results", place]
        arguments += [] if max_trials is None else ["--max-trials", str(max_trials)]
        try:
            end = await budget.run(arguments, seconds)
            status = _told(tools.study_status)(study)
        except ActivememError as error:
            raise ToolError(str(error)) from error
        outcome = {"exit_status": end.status, "timed_out": end.timed_out, "log": end.log}
        return {**status, **outcome, "budget_left_s": budget.left}

    return study_run
