"""`activemem mcp`: a server of the Model Context Protocol on standard input and output, for agents."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import ResultsOption


def mcp(
    *,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget", metavar="TIME", help="How long an agent may train in all, as 20m; else it only reads."
        ),
    ] = None,
    results: ResultsOption = None,
) -> None:
    """Serve agents by the Model Context Protocol, on standard input and output, until they hang up.

    They check recipes, read plans, tables and claims, find what is nearest to an idea, whether it is known,
    what it costs and what difference is more than noise. With --budget they hand in points and train.
    Needs the extra: pip install 'activemem[mcp]'.
    """
    from ...studies.text.units import parse_duration
    from ..machine_settings import SettingsError, load_settings
    from .server import make_server

    try:
        budget_s = None if budget is None else parse_duration(budget)
    except ValueError as error:
        raise typer.BadParameter(f"--budget: {error}") from error
    settings = load_settings({"results": results})
    try:
        server = make_server(settings, budget_s)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(("mcp", "anyio")):
            raise
        message = f"expected the extra of agents, pip install 'activemem[mcp]', got none: {error}"
        raise SettingsError(message) from error
    server.run("stdio")
