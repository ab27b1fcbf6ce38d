"""The commands `list` and `show` of the names that studies can use, and `agent-guide`."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated

import typer

from ...errors import ActivememError, hint
from ...plugins import broken_plugins
from ..json_output import print_json
from ..options import JsonOption
from ..output import print_stdout
from ..plugin_loading import report_broken_plugins

KINDS = (
    *("blocks", "norms", "positions", "tasks", "metrics", "optimizers", "schedules"),
    *("loss_terms", "callbacks", "samplers", "schedulers", "designs", "tables", "curves"),
)
"""The kinds of names that the commands list."""


def list_(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"One of {', '.join(KINDS)}.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """List all names of one kind, such as all blocks, all tasks or all metrics.

    The command prints a description of each name, or its publication. A name from a plug-in also has the name
    of the plug-in. Plug-ins that cannot be used are listed on standard error.
    """
    broken = broken_plugins()
    from ..views import catalog

    if kind not in KINDS:
        raise ActivememError(f"expected one of {', '.join(KINDS)}, got '{kind}'{hint(kind, KINDS)}")
    names = catalog.list_names(kind)
    if as_json:
        print_json(kind=kind, names=names, problems=broken_plugins())
    else:
        print_stdout("\n".join(catalog.format_kind(names)))
    report_broken_plugins(broken)


def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help='A name from `activemem list`, a block with arguments, such as "conv(k=20)", or a table or '
            "key of study files, such as claim, grow_at or train.keep.",
        ),
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """Show a block, a task, a metric, a key of study files or another name.

    The command prints where NAME was published, and which keys a study file can set for it. For a block, it
    also prints the equation, and the cost and the reach in a small model; `recipe show` prints those in other
    models. Required parameters that you leave out get small values. For a task from a plug-in, the command
    prints a generated example.
    """
    from ..views import catalog, study_keys

    keys, table = study_keys.find_keys(name), study_keys.find_table(name)
    kinds = catalog.kinds_with(name, KINDS, is_key=bool(keys or table))
    names = [catalog.describe_name(each, name) for each in kinds]
    if as_json:
        print_json(names=names, keys=keys, table=table)
        return
    shown = ["\n".join(catalog.format_name(each)) for each in names]
    tables = [study_keys.format_table(table)] if table else []
    print_stdout("\n\n".join([*shown, *tables, *map(study_keys.format_key, keys)]))


def agent_guide() -> None:
    """Print a guide for coding agents: how to plan and run studies."""
    print_stdout(files("activemem.cli").joinpath("agent_guide.md").read_text(encoding="utf-8").rstrip())
