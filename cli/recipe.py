"""`activemem recipe`: recipes checked, rendered, taken apart and compared, from their text alone."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, Batch, Causal, Dropout, Length, Norm, NormPlace, RecipeText, Vocab, Width
from .sampling import counted, sample
from .streams import WRONG_INPUT, give, give_json, say, wrong_input

if TYPE_CHECKING:
    from ..grammar import Recipe

app = typer.Typer(help="Check recipes and take them apart, without building anything.", no_args_is_help=True)


class Format(StrEnum):
    """How a recipe is drawn."""

    TEXT = "text"
    MERMAID = "mermaid"
    SVG = "svg"


@app.command()
def check(recipe: RecipeText, as_json: AsJson = False) -> None:
    """Print a recipe's text, its id and how many architectures its choices give, or all of its faults."""
    from ..grammar import RecipeError, Space, parse

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
        if found.dimensions:
            give(str(Space(found).count))
        return
    dimensions = [name for name, _ in found.dimensions]
    page = {"recipe": found.text, "id": found.id, "holes": found.holes, "dimensions": dimensions}
    give_json({**page, **counted(Space(found).count)})


@app.command()
def render(recipe: RecipeText) -> None:
    """Print a recipe's canonical text, which is rendered as it is."""
    from ..grammar import RecipeError, parse

    with wrong_input(RecipeError):
        give(parse(recipe).text)


@app.command()
def show(
    *,
    recipe: RecipeText,
    d_model: Width,
    length: Length,
    vocab: Vocab,
    causal: Causal = False,
    norm: NormPlace = Norm.PRE,
    batch: Batch = 32,
    dropout: Dropout = 0.1,
    form: Annotated[Format, typer.Option("--format", help="How the parts are drawn.")] = Format.TEXT,
    as_json: AsJson = False,
) -> None:
    """Show what each part of a recipe costs and how far it sees.

    FLOPs are those of a forward pass. Memory is what training keeps of a batch for the backward pass, in
    32-bit numbers. Generation keeps a state for each past token, and a window of fixed size, in 16-bit ones.
    """
    from ..grammar import Frame, RecipeError, parse
    from . import anatomy, diagram, mermaid
    from .sizes import Sizes

    if as_json and form is not Format.TEXT:
        raise typer.BadParameter(f"expected --json or --format {form.value}, got both")
    frame = Frame(d_model=d_model, vocab=vocab, causal=causal, norm=norm.value, dropout=dropout)
    sizes = Sizes(frame=frame, length=length, batch=batch)
    with wrong_input(RecipeError):
        found = parse(recipe)
        analysis = sizes.analyse(found)
    if as_json:
        give_json(anatomy.data(found, analysis, sizes))
    else:
        drawn = {Format.TEXT: anatomy, Format.MERMAID: mermaid, Format.SVG: diagram}[form]
        give(drawn.picture(found, analysis, sizes))


@app.command()
def compare(
    *,
    recipes: Annotated[
        list[str],
        typer.Argument(metavar="RECIPE…", help="Two or more; differences are from the first."),
    ],
    d_model: Width,
    length: Length,
    vocab: Vocab,
    causal: Causal = False,
    norm: NormPlace = Norm.PRE,
    batch: Batch = 32,
    dropout: Dropout = 0.1,
    as_json: AsJson = False,
) -> None:
    """Show several recipes side by side: what they cost, keep and see, beside the first of them.

    Figures are those of `recipe show`.
    """
    from ..grammar import Frame
    from . import comparison
    from .sizes import Sizes

    if len(recipes) < 2:
        raise typer.BadParameter("expected at least two recipes, got one")
    frame = Frame(d_model=d_model, vocab=vocab, causal=causal, norm=norm.value, dropout=dropout)
    sizes = Sizes(frame=frame, length=length, batch=batch)
    found = _all_read(recipes)
    analyses = [sizes.analyse(recipe) for recipe in found]
    if as_json:
        give_json(comparison.data(found, analyses, sizes))
    else:
        give(comparison.picture(found, analyses, sizes))


def _all_read(texts: list[str]) -> list[Recipe]:
    """The recipes; if any is wrong or still open, the faults of all are told."""
    from ..grammar import RecipeError, analyse, parse

    recipes: list[Recipe] = []
    wrong: list[RecipeError] = []
    for text in texts:
        try:
            recipe = parse(text)
            analyse(recipe, d_model=1, length=1, vocab=1)
            recipes.append(recipe)
        except RecipeError as error:
            wrong.append(error)
    if wrong:
        say("\n\n".join(map(str, wrong)))
        raise typer.Exit(WRONG_INPUT)
    return recipes


app.command()(sample)
