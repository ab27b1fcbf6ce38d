"""Options that several commands have, each with one name and one meaning."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for a program to read.")]

ResultsOption = Annotated[
    str | None,
    typer.Option(
        "--results", metavar="PATH", help="The store: a folder or s3://BUCKET/NAME; else as configured."
    ),
]

DataOption = Annotated[
    str | None, typer.Option("--data", metavar="PATH", help="The folder of the corpora; else as configured.")
]

LastRunStudy = Annotated[
    str | None, typer.Argument(metavar="[STUDY]", help="A study by its name or file; else the last one.")
]

OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="FACTOR=LEVEL",
        help="Take trials with this level alone. Repeatable; of one factor, any level will do.",
    ),
]

OverridesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a key of the file, as train.epochs=2. Repeatable."
    ),
]

RecipeText = Annotated[str, typer.Argument(metavar="RECIPE", help='A recipe, as "4 * (sa >> ff(512))".')]

WidthOption = Annotated[int, typer.Option("--d-model", min=1, metavar="N", help="Width of the model.")]

LengthOption = Annotated[int, typer.Option("--length", min=1, metavar="N", help="Tokens of a sequence.")]

VocabOption = Annotated[int, typer.Option("--vocab", min=1, metavar="N", help="Symbols of the vocabulary.")]

CausalOption = Annotated[bool, typer.Option("--causal", help="Hide the future from every position.")]

BatchOption = Annotated[
    int, typer.Option("--batch", min=1, metavar="N", help="Sequences of a training step.")
]

DropoutOption = Annotated[
    float, typer.Option("--dropout", min=0.0, max=0.99, metavar="P", help="Rate of dropout in training.")
]


Norm = Literal["pre", "post"]

NormOption = Annotated[Norm, typer.Option("--norm", help="Where a sub-layer is normalised.")]
