"""`activemem block`: checks of a block against its equation and its specification."""

from __future__ import annotations

from typing import Annotated

import typer

from ..json_output import print_json
from ..options import JsonOption
from ..output import EXIT_FAILED, print_stdout, waiting

_OWN = (
    "A block of your own is a class under @activemem.register_block in a Python file, which --plugin FILE "
    "loads: see docs/how-to/plug-ins.md."
)

app = typer.Typer(
    help=f"Check that blocks compute what their specifications state.\n\n{_OWN}", no_args_is_help=True
)


@app.command(epilog=_OWN)
def verify(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help='A block; that of a plug-in may have arguments, such as "smoothing(k=3)".'
        ),
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """Check a plug-in's block, or show the recorded checks of a built-in block.

    The checks are: outputs, gradients, steps (processing a sequence in pieces), initial weights, no leak from
    the future, reach and costs. Outputs and gradients are compared with a slow reference. If NAME has no
    arguments, the command uses small values; it then also checks a plug-in's block with its default
    arguments, as a study does. A check is skipped if the block has no reference, or states no reach. Exits
    with 1 if a check fails.
    """
    from ..views.passport import format_passport

    with waiting(f"checking {name}"):
        from ...blocks.testing.passport import verify_block  # loads torch

        found = verify_block(name)
    if as_json:
        print_json(found, passed=found.passed)
    else:
        print_stdout(format_passport(found))
    if not found.passed:
        raise typer.Exit(EXIT_FAILED)
