"""`activemem block`: a check of a block against its specification."""

from __future__ import annotations

from typing import Annotated

import typer

from ... import cli
from ..json_output import print_json
from ..options import JsonOption, number_option
from ..output import EXIT_FAILED, EXIT_WRONG_INPUT, print_stdout, waiting

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
            metavar="NAME", help='A block, with or without arguments, such as "delta(gate=true)".'
        ),
    ],
    *,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="LAYER",
            help="A layer of another package to compare with: package.Layer or package.Layer(name=value).",
        ),
    ] = None,
    d_model: Annotated[int, number_option("--d-model", help="Width of both layers, for --against.")] = 32,
    as_json: JsonOption = False,
) -> None:
    """Check a block against its slow reference and its specification.

    The checks are: outputs, gradients, steps (processing a sequence in pieces), initial weights, no leak from
    the future, reach and costs. If NAME has no arguments, the command uses small values; it then also checks
    a plug-in's block with its default arguments, as a study does. With --against, the command copies the
    weights of the other layer to the block. It then checks that outputs and gradients are equal in single
    precision, and that both layers draw initial weights from the same distributions. To run Triton kernels
    without a GPU, set the environment variable TRITON_INTERPRET=1. A check is skipped if the block has no
    reference, or states no reach. Exits with 1 if a check fails, and with 2 if the layers cannot be compared.
    """
    with waiting(f"checking {name}"):
        from ...blocks.testing.passport import verify_block  # loads torch

        found = verify_block(name, against=against, width=d_model)
    if as_json:
        print_json(found)
    else:
        print_stdout(cli.format_passport(found))
    if not found.passed:
        raise typer.Exit(EXIT_FAILED)
    if not found.comparable:
        raise typer.Exit(EXIT_WRONG_INPUT)
