"""`activemem recipe`: a recipe checked, and taken apart, from its text alone."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from .options import AsJson
from .streams import WRONG_INPUT, give, give_json, say, wrong_input

app = typer.Typer(help="Check recipes and take them apart, without building anything.", no_args_is_help=True)

RecipeText = Annotated[str, typer.Argument(metavar="RECIPE", help='A recipe, as "4 * (sa >> ff(512))".')]


class Norm(StrEnum):
    """Where a sub-layer's normalisation stands."""

    PRE = "pre"
    POST = "post"


@app.command()
def check(recipe: RecipeText, as_json: AsJson = False) -> None:
    """Print a recipe's canonical text and its id, or all of its faults."""
    from ..grammar import RecipeError, parse

    try:
        found = parse(recipe)
    except RecipeError as error:
        if as_json:
            faults = [{"start": f.start, "end": f.end, "message": f.message} for f in error.faults]
            give_json({"text": error.text, "faults": faults})
        say(str(error))
        raise typer.Exit(WRONG_INPUT) from error
    if not as_json:
        give(f"{found.text}   id {found.id}")
        return
    dimensions = [name for name, _ in found.dimensions]
    give_json({"recipe": found.text, "id": found.id, "holes": found.holes, "dimensions": dimensions})


@app.command()
def show(
    *,
    recipe: RecipeText,
    d_model: Annotated[int, typer.Option("--d-model", min=1, metavar="N", help="Width of the model.")],
    length: Annotated[int, typer.Option("--length", min=1, metavar="N", help="Tokens of a sequence.")],
    vocab: Annotated[int, typer.Option("--vocab", min=1, metavar="N", help="Symbols of the vocabulary.")],
    causal: Annotated[bool, typer.Option("--causal", help="Hide the future from every position.")] = False,
    norm: Annotated[Norm, typer.Option("--norm", help="Where a sub-layer is normalised.")] = Norm.PRE,
    as_json: AsJson = False,
) -> None:
    """Show what each part of a recipe costs and how far it sees.

    FLOPs are those of a forward pass; state counts what generation keeps of a past token, in 16-bit numbers.
    """
    from ..grammar import RecipeError, analyse, parse
    from . import anatomy

    with wrong_input(RecipeError):
        found = parse(recipe)
        analysis = analyse(found, d_model=d_model, length=length, vocab=vocab, causal=causal, norm=norm.value)
    if as_json:
        give_json(anatomy.data(found, analysis, d_model=d_model, vocab=vocab, causal=causal, norm=norm.value))
    else:
        give(anatomy.picture(found, analysis, causal=causal, norm=norm.value))
