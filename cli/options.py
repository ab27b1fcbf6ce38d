"""Options that several commands have, each with one name and one meaning."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for a program to read.")]

Results = Annotated[
    str | None, typer.Option("--results", metavar="PATH", help="The folder of the store; else as configured.")
]

Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a key of the file, as train.epochs=2. Repeatable."
    ),
]
