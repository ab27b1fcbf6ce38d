"""The commands `list` and `show` of the names that studies can use, and `agent-guide`."""

from __future__ import annotations

from collections.abc import Sequence
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

LISTED = (*KINDS, "keys")
"""What `list` lists: the kinds of names, and the keys of a first study."""


def list_(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"One of {', '.join(LISTED)}.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """List all names of one kind, such as all blocks, all tasks or all metrics.

    The command prints a description of each name, or its publication. For `keys`, it lists only the keys that
    a first study needs. A name from a plug-in also has the name of the plug-in. Plug-ins that cannot be used
    are listed on standard error.
    """
    from ..views import catalog

    broken = broken_plugins()
    _check_kind(kind, LISTED)
    page = catalog.kind_page(kind)
    if as_json:
        print_json(page)
    else:
        print_stdout("\n".join(catalog.format_kind(page)))
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
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="The kind of NAME, such as tasks; needed only if several kinds have this name.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a block, a task, a metric, a key of study files or another name.

    The command prints where NAME was published, and which keys a study file can set for it. For a block, it
    also prints the equation, and the cost and the reach in a small model; `recipe show` prints those in other
    models. Required parameters that you leave out get small values. For a task from a plug-in, the command
    prints a generated example.
    """
    from ..views import catalog, study_keys

    chosen = KINDS if kind is None else [_check_kind(kind)]
    keys = study_keys.find_keys(name) if kind is None else []
    table = study_keys.find_table(name) if kind is None else None
    kinds = catalog.kinds_with(name, chosen, is_key=bool(keys or table))
    if as_json and len(kinds) > 1:
        choices = " or ".join(f"--kind {each}" for each in kinds)
        raise ActivememError(f"several kinds have the name '{name}': add {choices}")
    pages = [catalog.name_page(each, name) for each in kinds]
    if as_json:
        print_json(pages[0] if pages else study_keys.KeysPage(keys=keys, table=table))
        return
    shown = ["\n".join(catalog.format_name(each)) for each in pages]
    tables = [study_keys.format_table(table)] if table else []
    print_stdout("\n\n".join([*shown, *tables, *map(study_keys.format_key, keys)]))


def _check_kind(kind: str, known: Sequence[str] = KINDS) -> str:
    if kind not in known:
        raise ActivememError(f"expected one of {', '.join(known)}, got '{kind}'{hint(kind, known)}")
    return kind


def agent_guide() -> None:
    """Print a guide for coding agents: how to plan and run studies."""
    print_stdout(files("activemem.cli").joinpath("agent_guide.md").read_text(encoding="utf-8").rstrip())
