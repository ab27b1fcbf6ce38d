"""`activemem recipe`: commands that need only the text of a recipe."""

from __future__ import annotations

from typing import Annotated

import typer

from ... import grammar
from ..help_panels import EVERY_DAY
from ..json_output import print_json
from ..options import (
    BatchOption,
    CausalOption,
    JsonOption,
    LengthOption,
    RecipeText,
    VocabOption,
    WidthOption,
)
from ..output import bold, print_stdout

app = typer.Typer(help="Check and analyse recipes without building a model.", no_args_is_help=True)


@app.command()
def check(recipe: RecipeText, as_json: JsonOption = False) -> None:
    """Print a recipe's canonical text, its id, and how many architectures it describes.

    For a wrong recipe, print all of its faults.
    """
    try:
        found = grammar.parse(recipe)
    except grammar.RecipeError as error:
        if as_json:
            print_json(text=error.text, id=None, holes=(), dimensions=(), space=None, faults=error.faults)
        raise
    if as_json:
        dimensions, space = [name for name, _ in found.dimensions], grammar.Space(found).count
        keys = {"text": found.text, "id": found.id, "holes": found.holes}
        print_json(**keys, dimensions=dimensions, space=space, faults=())
        return
    print_stdout(f"{found.text}   id {found.id}")
    if found.dimensions:
        print_stdout(str(grammar.Space(found).count))


@app.command(rich_help_panel=EVERY_DAY)
def show(
    *,
    recipe: RecipeText,
    d_model: WidthOption = 128,
    length: LengthOption = 40,
    vocab: VocabOption = 20,
    causal: CausalOption = False,
    batch: BatchOption = 32,
    as_json: JsonOption = False,
) -> None:
    """Show the cost of each part of a recipe, and its reach: how far back and ahead it sees.

    FLOPs are those of a forward pass. Memory is the size of the activations that a batch stores for its
    backward pass, in 32-bit numbers. The last two columns show what a model keeps in memory while it
    generates, in 16-bit numbers. `cache` is the memory for each token, such as the keys and values of
    attention. `fixed state` is memory of a fixed size, such as the last inputs of a convolution or the hidden
    vector of a recurrent layer.
    """
    from ...reporting.recipes.display import show_recipe

    config = grammar.configure(d_model=d_model, vocab=vocab, causal=causal)
    shown = show_recipe(recipe, config, length=length, batch=batch)
    if as_json:
        print_json(shown.costs)
    else:
        heading, line_end, lines = str(shown).partition("\n")
        print_stdout(f"{bold(heading)}{line_end}{lines}", styled=True)


@app.command()
def compare(
    *,
    recipes: Annotated[
        list[str],
        typer.Argument(metavar="RECIPE…", help="Two or more recipes; all are compared with the first."),
    ],
    d_model: WidthOption = 128,
    length: LengthOption = 40,
    vocab: VocabOption = 20,
    causal: CausalOption = False,
    batch: BatchOption = 32,
    as_json: JsonOption = False,
) -> None:
    """Compare the costs, the memory and the reach of several recipes with those of the first.

    The reach is how many tokens to the left and right an output depends on. The quantities are the same as
    in `recipe show`.
    """
    from ...reporting.recipes.display import compare_recipes

    config = grammar.configure(d_model=d_model, vocab=vocab, causal=causal)
    compared = compare_recipes(recipes, config, length=length, batch=batch)
    if as_json:
        print_json(recipes=compared.costs)
    else:
        print_stdout(str(compared))
